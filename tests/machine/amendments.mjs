// Where Onefold departs from XState, as edits of XState's own source: with them the two must agree on everything.
// For: xstate_oracle.mjs. Each edit stands for one departure that docs/charts.md explains; one whose text is not
// there exactly once stops the test, so a new XState cannot slip past.
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const EDITS = [
  // 1. Everything in document order, so that a snapshot alone decides.
  ["raise", "  for (const s of stateNodes) {\n    if (!adjList.has(s)) {",
    "  for (const s of [...stateNodes].sort((a, b) => a.order - b.order)) {\n    if (!adjList.has(s)) {"],
  ["raise", "nextState._nodes.filter(isAtomicStateNode)", "nextState._nodes.filter(isAtomicStateNode).sort((a, b) => a.order - b.order)"],
  ["StateMachine", "  start(snapshot) {\n", "  start(snapshot) {\n    return;\n"],
  // 2. The actions of an initial transition run whenever it is followed (SCXML).
  ["raise", "    if (stateNode.type === 'compound') {\n      const [initialState] = stateNode.initial.target;",
    "    if (stateNode.type === 'compound') {\n      statesForDefaultEntry.add(stateNode);\n      const [initialState] = stateNode.initial.target;"],
  ["raise", "          statesToEnter.add(child);\n          addDescendantStatesToEnter",
    "          statesToEnter.add(child);\n          statesForDefaultEntry.add(child);\n          addDescendantStatesToEnter"],
  // 3. `*` does not hear errors.
  ["raise", "  if (descriptor === WILDCARD) {\n    return true;", "  if (descriptor === WILDCARD) {\n    return !eventType.startsWith('xstate.error.');"],
  // 4. What a transition leaves is settled before it leaves it: history that changes on the way has no say.
  ["raise", "computeEntrySet(filteredTransitions, historyValue, statesForDefaultEntry, statesToEnter);",
    "computeEntrySet(filteredTransitions, historyValue, statesForDefaultEntry, statesToEnter, currentSnapshot.historyValue);"],
  ["raise", "function computeEntrySet(transitions, historyValue, statesForDefaultEntry, statesToEnter) {\n  for (const t of transitions) {\n    const domain = getTransitionDomain(t, historyValue);",
    "function computeEntrySet(transitions, historyValue, statesForDefaultEntry, statesToEnter, before) {\n  for (const t of transitions) {\n    const domain = getTransitionDomain(t, before);"],
  ["raise", "targetStates.every(target => target === transition.source || isDescendant(target, transition.source))",
    "targetStates.every(target => (target === transition.source && !transition.target.some(isHistoryNode)) || isDescendant(target, transition.source))"],
  // 5. History that is remembered again as it was is no change, so it keeps no `always` going.
  ["raise", "  return [nextSnapshot, changedHistory || historyValue];",
    "  const kept = (id) => historyValue[id]?.length === changedHistory[id].length && historyValue[id].every(sn => changedHistory[id].includes(sn));\n" +
    "  return [nextSnapshot, changedHistory && !Object.keys(changedHistory).every(kept) ? changedHistory : historyValue];"],
];

// Copies the modules of `dist` into `to`, amended, and gives the one to import.
export function amended(dist, to) {
  rmSync(to, { recursive: true, force: true });
  mkdirSync(to, { recursive: true });
  writeFileSync(join(to, "package.json"), '{"type": "module"}');
  for (const name of readdirSync(dist).filter((name) => name.endsWith(".development.esm.js"))) {
    const edits = EDITS.filter(([file]) => name.startsWith(`${file}-`));
    if (!edits.length) {
      cpSync(join(dist, name), join(to, name));
      continue;
    }
    let text = readFileSync(join(dist, name), "utf8");
    for (const [, from, into] of edits) {
      if (text.split(from).length !== 2) throw new Error(`${name} does not hold once: ${from}`);
      text = text.replace(from, () => into);
    }
    writeFileSync(join(to, name), text);
  }
  return join(to, "xstate.development.esm.js");
}
