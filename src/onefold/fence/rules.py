"""fence.rules - the rules by name: what each forbids, why, and what to write instead.

For: one table, from which sentences, the command's --rule and the documentation come.
Never: looks at code.
Was wrong once: a reason for each finding, written where it was found. Two places said of one clock that
it was and was not to blame.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from onefold.fence.words import Kind, Place

AGAIN = "an event that is decided again, or replayed from history, would come out differently"
REPLAY = "it runs again in every replay, and would get another answer each time"
UNSEEN = "it runs again in every replay, and does the same thing to the world once more"
OUTSIDE = "a decision is taken back and taken again, so what it does beside returning happens too often"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    forbids: what, in a few words. verb: what the thing found does. why, instead: by kind of place, the
    empty key for all others.
    """

    name: str
    forbids: str
    verb: str
    why: Mapping[Kind | str, str]
    instead: Mapping[Kind | str, str] = field(default_factory=dict)

    def reason(self, place: Place) -> str:
        return self.why.get(place.kind) or self.why.get("", "")

    def cure(self, place: Place) -> str:
        """What to write instead, as the place allows it."""
        if place.pure and not place.now:
            told = self.instead.get(f"{place.kind} without now") or self.instead.get("without now")
            if told:
                return told
        return self.instead.get(place.kind) or self.instead.get("", "")


EVENT = "take it from the event: whoever sends the event puts it in"
ARGUMENT = "hand it in as an argument of the turn"
FACT = "let decide put it into the fact, and read it from there"

_RULES = (
    Rule(
        "clock",
        "reading a clock",
        "reads the clock",
        {"": AGAIN, "actuator": REPLAY},
        {
            "": "use the argument `now`",
            "cell": ARGUMENT,
            "module without now": "let decide put its `now` into the fact, and read it from there",
            "chart without now": "keep the instant in the context: an action is handed `now`",
            "actuator": "use run.now()",
        },
    ),
    Rule(
        "chance",
        "random numbers, random ids, hash() and id()",
        "is left to chance",
        {"": AGAIN, "actuator": REPLAY},
        {
            "": f"{EVENT}; or derive it from the event's id with hashlib.sha256",
            "cell": ARGUMENT,
            "module without now": FACT,
            "actuator": "use run.random, run.uuid(), or hashlib.sha256 of something that stays",
        },
    ),
    Rule(
        "environment",
        "variables of the environment, arguments of the process, the machine and its time zone",
        "depends on the machine it runs on",
        {"": AGAIN, "actuator": "it runs again in every replay, perhaps on another machine or after a new set-up"},
        {
            "": f"{EVENT}, or make it a constant of the code",
            "cell": f"{ARGUMENT}, or make it a constant of the code",
            "actuator": "read it in a step, take it from the input, or make it a constant of the code",
        },
    ),
    Rule(
        "files",
        "files and local databases",
        "reaches for files",
        {"": AGAIN, "actuator": REPLAY},
        {
            "": f"{EVENT}; what must be written is owed to a port",
            "cell": ARGUMENT,
            "actuator": "do it in a step: await run.step(f)(…); rows of your own belong into run.db",
        },
    ),
    Rule(
        "network",
        "the network, and the clients of other services",
        "goes over the network",
        {"": OUTSIDE, "actuator": UNSEEN},
        {
            "": "owe it: Decision(owed=[Owed(port, key, body)]); the answer comes to on_answer",
            "chart": "name an effect that gives Owed(port, key, body); the answer comes as the event Answer",
            "cell": "do it outside and hand the result in as an argument of a turn",
            "actuator": "do it in a step, under its key: await run.step(f)(…)",
        },
    ),
    Rule(
        "threads",
        "threads, locks, executors, and tasks in pure functions",
        "works beside the one that called it",
        {"": "one actor takes one turn at a time, and nothing of it goes on afterwards", "actuator": REPLAY},
        {
            "": "leave it out: a turn is alone with its actor",
            "actuator": "let a step do it; steps side by side are asyncio.gather or a TaskGroup",
        },
    ),
    Rule(
        "process",
        "other processes, signals, ending this one",
        "acts on processes",
        {"": OUTSIDE, "actuator": UNSEEN},
        {
            "": "owe it to a port: Decision(owed=[Owed(port, key, body)])",
            "cell": "do it outside and hand the result in as an argument of a turn",
            "actuator": "do it in a step: await run.step(f)(…)",
        },
    ),
    Rule(
        "sleep",
        "sleeping",
        "waits by the machine's clock",
        {
            "": "a turn holds its actor, and a timer does not survive a restart",
            "actuator": "it waits again in every replay",
        },
        {
            "": "keep the instant in the state and give it to `wake`; on_alarm goes on from there",
            "chart": "keep the instant in the context and give it to `wake`; the event Alarm goes on from there",
            "cell": "let whoever waits send the next turn",
            "actuator": "await run.sleep(…), which waits durably and costs nothing",
        },
    ),
    Rule(
        "terminal",
        "print, input and logging",
        "talks to a terminal or a log",
        {
            "": "what runs again says the same again, also what was taken back",
            "actuator": "it runs again in every replay, and says the same once more",
        },
        {
            "": "say it with a fact, the reply, or a port; for a day's debugging allow it",
            "actuator": "say it in a step, or write it into run.db; for a day's debugging allow it",
        },
    ),
    Rule(
        "global-state",
        "changing what outlives the call: globals, module-level objects, defaults, settings of the process",
        "outlives the call",
        {"": "it is not in the history, so no restart and no other node knows of it"},
        {
            "": "keep it in the state, by a fact",
            "cell": "keep it in a field of the cell",
            "actuator": "keep it in a local variable, or in run.db",
        },
    ),
    Rule(
        "state-written",
        "changing the state, the event or the fact that was handed in",
        "changes what was handed in",
        {
            "": "the same object is also what others read meanwhile, and for a new actor what all actors begin with",
        },
        {"": "make a new one: dataclasses.replace(state, …), or copy the part first"},
    ),
    Rule(
        "set-order",
        "iterating over a set into something that keeps an order",
        "gives its elements in no lasting order",
        {"": "texts hash differently in each process, so the order would differ when it is worked out again"},
        {"": "iterate over sorted(…), or keep a list or a dict"},
    ),
    Rule(
        "float-time",
        "instants as binary fractions",
        "makes a binary fraction of an instant",
        {"": "it no longer compares and adds up exactly, and differs from what is stored in whole milliseconds"},
        {"": "keep the datetime, or make it whole: int(…), round(…)"},
    ),
    Rule(
        "await",
        "await, async and generators where a plain answer is due",
        "waits",
        {"": "a turn waits for nothing: its answer is committed as one"},
        {
            "": "make it a plain function; what must be awaited is owed to a port and comes back to on_answer",
            "chart": "make it a plain function; what must be awaited is an effect and comes back as Answer",
            "cell": "make it a plain method; do the waiting outside and hand the result in",
        },
    ),
    Rule(
        "delayed",
        "delayed transitions in a chart: after, delay",
        "waits in memory",
        {"": "a timer does not survive a restart, and the alarm does"},
        {"": "keep the instant in the context and give it to `wake`; hear the event Alarm"},
    ),
    Rule(
        "outside-step",
        "calling a port, a step function or the app itself outside a step",
        "is for a step",
        {
            "": "a decision sends nothing: it says what is owed, and the kernel sends it after commit",
            "actuator": UNSEEN,
        },
        {
            "": "owe it: Decision(owed=[Owed(port, key, body)])",
            "cell": "let whoever took the turn do it with what the turn gave back",
            "actuator": "await run.step(f)(…), or run.call for another actuator",
        },
    ),
    Rule(
        "swallowed",
        "catching BaseException around run's verbs",
        "swallows the suspension",
        {"": "a pass ends by raising Suspended, a BaseException, through the function; kept here, it never ends"},
        {"": "catch Exception or onefold.Failed, or end with a bare `raise`"},
    ),
    Rule(
        "expired",
        "an outcome of a wait without its Expired",
        "leaves out what happens when nobody decided in time",
        {"": "after the timeout the outcome is Expired, which is neither yes nor no"},
        {"": "tell it apart: match await …: case Approved(): … case Rejected(): … case Expired(): …"},
    ),
    Rule(
        "key-source",
        "an owed key, an event id or an idempotency key made from now, an attempt or chance",
        "changes from one try to the next",
        {"": "the key is how a repeat is known; under another key the same thing is done twice"},
        {
            "": "make it from the event or the state: Owed.join(event.id, …)",
            "step": "use step.key, which is the same on every attempt and replay",
        },
    ),
    Rule(
        "no-snapshot",
        "a module without a snapshot",
        "has no snapshot",
        {"": "an actor is rebuilt from its whole history, so waking it takes longer with every fact"},
        {"": "give Module snapshot=…: state to one fact whose evolve restores it"},
    ),
    Rule("syntax", "a file that is no Python", "cannot be read", {}, {"": "mend it; nothing in the file was checked"}),
    Rule(
        "allow",
        "a comment that allows nothing, no known rule, or gives no reason",
        "allows nothing",
        {},
        {"": "write `# onefold: allow RULE because REASON` on the line, or alone on the line above"},
    ),
)

RULES: Mapping[str, Rule] = {rule.name: rule for rule in _RULES}
"""Every rule by its name, in the order of the documentation."""
