// bench.contenders.stepping.mjs: the same chart in XState: snapshot restored from plain data, one transition, persisted.
// For: `step callers seconds` a line, answered as the contenders in Python answer.
// Never: keeps a machine between two steps: beside it stands a chart whose steps survive a restart.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [, , dist, chart] = process.argv;
const { assign, setup, transition, initialTransition } = await import(pathToFileURL(dist).href);
const LUMP = 60;
const EVENTS = ["Packed", "Paid", "Left", "Paid", "Refunded", "Returned"].map((type) => ({ type }));

const machine = setup({
  guards: { enough: ({ context }) => context.paid >= 1, early: ({ context }) => context.paid > 1 },
  actions: {
    pay: assign({ paid: ({ context }) => context.paid + 1 }),
    reset: assign({ paid: 0 }),
    count: assign({ parcels: ({ context }) => context.parcels + 1 }),
  },
}).createMachine({ ...JSON.parse(readFileSync(chart, "utf8")), context: { paid: 0, parcels: 0 } });

let state = machine.getPersistedSnapshot(initialTransition(machine)[0]);

function once(event) {
  const restored = machine.restoreSnapshot(state, scope);
  state = machine.getPersistedSnapshot(transition(machine, restored, event)[0]);
}

const scope = { self: {}, system: {}, logger: () => {}, defer: () => {}, emit: () => {}, stopChild: () => {} };

function steps(seconds) {
  const latencies = [];
  const begun = performance.now();
  let before = begun;
  while ((before - begun) / 1000 < seconds) {
    for (let round = 0; round < LUMP / EVENTS.length; round++) for (const event of EVENTS) once(event);
    const after = performance.now();
    latencies.push((after - before) / LUMP);
    before = after;
  }
  if (!state.context.parcels) throw new Error("the chart did not go round");
  const sorted = latencies.sort((a, b) => a - b);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * share) / 100))];
  const count = sorted.length * LUMP;
  return { rate: (count * 1000) / (before - begun), p50: at(50), p99: at(99), count };
}

console.log(JSON.stringify({ ready: true }));
for await (const line of createInterface({ input: process.stdin })) {
  const seconds = Number(line.split(" ")[2]);
  try {
    console.log(JSON.stringify(steps(seconds)));
  } catch (fault) {
    console.log(JSON.stringify({ failed: String(fault) }));
  }
}
