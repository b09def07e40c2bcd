// The other interpreter: reads {"chart", "events"} a line, runs it in XState, answers with what it came to.
// For: the differential test. Charts are Onefold's JSON; what XState writes as functions is made here.
// Usage: node xstate_oracle.mjs DIST [FOLDER]: XState as it is, or amended (amendments.mjs) in that folder.
// Never: knows what Onefold answered.
import { createInterface } from "node:readline";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { amended } from "./amendments.mjs";

const [, , dist, folder] = process.argv;
const source = folder ? amended(dist, folder) : join(dist, "xstate.development.esm.js");
const { assign, and, createActor, createMachine, enqueueActions, forwardTo, not, or, raise, sendParent, sendTo, stateIn } =
  await import(pathToFileURL(source).href);

const MAX = 200;
let trace = [];

const reach = (root, names) => names.reduce((value, name) => value[name], root);

function fill(raw, scope) {
  if (Array.isArray(raw)) return raw.map((item) => fill(item, scope));
  if (raw === null || typeof raw !== "object") return raw;
  if ("$" in raw) {
    const [root, ...names] = raw.$.split(".");
    const found = reach(scope[root], names);
    return found === undefined ? null : found;
  }
  return Object.fromEntries(Object.entries(raw).map(([key, item]) => [key, fill(item, scope)]));
}

const event = (raw) => (scope) => (typeof raw === "string" ? { type: raw } : fill(raw, scope));

// "lt_x_3": x < 3 · "odd_x": x is odd
function guardNamed(name) {
  const [kind, field, limit] = name.split("_");
  return ({ context }) => (kind === "lt" ? context[field] < Number(limit) : context[field] % 2 === 1);
}

function guard(raw) {
  if (raw === undefined) return undefined;
  if (typeof raw === "string") return guardNamed(raw);
  if ("not" in raw) return not(guard(raw.not));
  if ("and" in raw) return and(raw.and.map(guard));
  if ("or" in raw) return or(raw.or.map(guard));
  return stateIn(raw.in);
}

// "add_x": x + 1 · "do_a": an effect · "boom": raises
function actionNamed(name, path) {
  const [kind, field] = name.split("_");
  if (kind === "add") return assign(({ context }) => ({ [field]: context[field] + 1 }));
  if (kind === "boom") return assign(() => { throw new Error("boom"); });
  return ({ context }) => { trace.push([path, name, context.x]); };
}

function action(raw, path) {
  if (typeof raw === "string") return actionNamed(raw, path);
  if ("raise" in raw) return raise(event(raw.raise));
  if ("sendTo" in raw) {
    return raw.sendTo === "#self" ? sendTo(({ self }) => self, event(raw.event)) : sendTo(raw.sendTo, event(raw.event));
  }
  if ("sendParent" in raw) return sendParent(event(raw.sendParent));
  if ("forwardTo" in raw) return forwardTo(raw.forwardTo);
  return enqueueActions(({ enqueue, check }) => {
    const branch = raw.choose.find((item) => item.guard === undefined || check(guard(item.guard)));
    for (const item of branch ? list(branch.actions) : []) enqueue(action(item, path));
  });
}

const list = (raw) => (raw === undefined ? [] : Array.isArray(raw) ? raw : [raw]);

function arrow(raw, path) {
  if (typeof raw === "string") return raw;
  return { ...raw, guard: guard(raw.guard), actions: list(raw.actions).map((item) => action(item, path)) };
}

const arrows = (raw, path) => list(raw).map((item) => arrow(item, path));

function state(raw, path, actors) {
  const made = { ...raw };
  delete made.actors;
  for (const key of ["entry", "exit"]) if (key in raw) made[key] = list(raw[key]).map((item) => action(item, path));
  if ("on" in raw) made.on = Object.fromEntries(Object.entries(raw.on).map(([name, item]) => [name, arrows(item, path)]));
  for (const key of ["always", "onDone"]) if (key in raw) made[key] = arrows(raw[key], path);
  if (raw.initial && typeof raw.initial === "object") {
    made.initial = { ...raw.initial, actions: list(raw.initial.actions).map((item) => action(item, path)) };
  }
  if ("output" in raw) made.output = (scope) => fill(raw.output, scope);
  if ("invoke" in raw) {
    made.invoke = list(raw.invoke).map((item) => ({
      ...item,
      src: machine(actors[item.src], [...path, item.id], actors),
      input: (scope) => fill(item.input ?? null, scope),
      ...("onDone" in item ? { onDone: arrows(item.onDone, path) } : {}),
      ...("onError" in item ? { onError: arrows(item.onError, path) } : {}),
    }));
  }
  if ("states" in raw) {
    made.states = Object.fromEntries(Object.entries(raw.states).map(([key, item]) => [key, state(item, path, actors)]));
  }
  return made;
}

function machine(raw, path, outer) {
  const actors = { ...outer, ...raw.actors };
  return createMachine({
    ...state(raw, path, actors),
    context: (scope) => fill(raw.context ?? {}, scope),
    options: { maxIterations: MAX },
  });
}

function shown(snapshot) {
  const told = { status: snapshot.status };
  if (snapshot.status === "error") return told;
  told.value = snapshot.value;
  told.context = snapshot.context;
  if (snapshot.output !== undefined && snapshot.output !== null) told.output = snapshot.output;
  if (snapshot.status === "active") {
    const children = Object.entries(snapshot.children).map(([id, child]) => [id, shown(child.getSnapshot())]);
    if (children.length) told.children = Object.fromEntries(children);
  }
  return told;
}

function run({ chart, events }) {
  const told = [];
  trace = [];
  let said = 0;
  // Two actors that answer each other for ever are not counted by maxIterations.
  const inspect = ({ type }) => {
    if (type === "@xstate.event" && ++said > MAX * 20) throw new Error("endless");
  };
  const actor = createActor(machine(chart, [], {}), { inspect });
  actor.subscribe({ error() {} });
  actor.start();
  told.push({ ...shown(actor.getSnapshot()), effects: trace });
  for (const name of events) {
    if (actor.getSnapshot().status !== "active") break;
    trace = [];
    said = 0;
    actor.send({ type: name });
    told.push({ ...shown(actor.getSnapshot()), effects: trace });
  }
  const error = actor.getSnapshot().error;
  if (error) told.push(String(error.message ?? error).slice(0, 200));
  actor.stop();
  return told;
}

console.warn = () => {};
for await (const line of createInterface({ input: process.stdin })) {
  let told;
  try {
    told = run(JSON.parse(line));
  } catch (error) {
    told = [String(error.stack ?? error)];
  }
  process.stdout.write(JSON.stringify(told) + "\n");
}
