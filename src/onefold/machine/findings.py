"""machine.findings - what is wrong with a definition: every fault at once, each with its path and the nearest right word.

For: collecting while a chart is loaded, and one refusal at the end.
Never: stops at the first fault. A chart with five typing errors is mended in one go.
Was wrong once: a path without the chart's name. With children, `states.due.on` stood for two places.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, TypeAlias

from onefold.terms.codec import path_of
from onefold.terms.errors import Finding, LoadRefused
from onefold.terms.ids import nearest

Path: TypeAlias = "tuple[str | int, ...]"

STATE_KEYS: Final = frozenset(
    "id type initial states on always entry exit invoke onDone output history target description meta tags".split()
)
ROOT_KEYS: Final = (STATE_KEYS - {"history", "target", "onDone"}) | {"context", "actors", "version"}
ARROW_KEYS: Final = frozenset("target guard actions reenter description meta".split())
INVOKE_KEYS: Final = frozenset("id src input onDone onError description meta".split())

_WAKE = "a timer does not survive a restart; keep the instant in the context and give it to `wake`"
REFUSED: Final = {
    "after": _WAKE,
    "delay": _WAKE,
    "delays": _WAKE,
    "activities": "it runs beside the chart, in memory; owe an effect instead",
    "cond": "it is called `guard`",
    "in": 'it is the guard {"in": "#id"}',
    "internal": "internal is what happens without `reenter`; write `reenter`: true for the other",
    "params": "a named function takes (context, event, now); give each case a name of its own",
    "data": "it is called `output`, or `input` of an invoke",
    "onEntry": "it is called `entry`",
    "onExit": "it is called `exit`",
    "onSnapshot": "a child tells its parent with `sendParent`",
    "syncSnapshot": "a child tells its parent with `sendParent`",
    "systemId": "there is no system; a child is known by its `id`",
    "spawn": "a child is invoked by a state and ends with it",
    "route": "an event goes by its name",
    "parallel": 'write "type": "parallel"',
}
NO_CODE: Final = "is code; give the function a name and hand it in with guards=, actions= or effects="


class Findings:
    """What is wrong so far with one chart and the charts it invokes."""

    def __init__(self, chart: str) -> None:
        self.chart = chart
        self.found: list[Finding] = []

    def refuse(self, path: Path, problem: str) -> None:
        self.found.append(Finding(f"chart {self.chart}, {path_of(path)}" if path else f"chart {self.chart}", problem))

    def unknown(self, path: Path, kind: str, name: object, known: Collection[str], within: str = "") -> None:
        """Refuse a name, and say the nearest right word, or all of them where they are few."""
        if not isinstance(name, str):
            self.refuse(path, f"the name of a {kind} is text")
            return
        if any(sign in name for sign in ("=>", "(", "{", ";")):
            self.refuse(path, f"{name!r} {NO_CODE}")
            return
        near = nearest(name, known)
        if near is not None:
            hint = f"; the nearest is {near!r}"
        elif not known:
            hint = "; there is none at all"
        else:
            hint = f"; there is {', '.join(repr(k) for k in sorted(known)[:8])}{' and more' if len(known) > 8 else ''}"
        self.refuse(path, f"there is no {kind} {name!r}{within}{hint}")

    def keys(self, raw: Mapping[str, Any], allowed: frozenset[str], path: Path, what: str) -> None:
        """Refuse what does not belong here, with the reason where it is known elsewhere."""
        for key in raw:
            if key in allowed:
                continue
            if key in REFUSED:
                self.refuse((*path, key), REFUSED[key])
            else:
                self.unknown((*path, key), f"key of {what}", key, allowed)

    def end(self) -> None:
        """Raises: LoadRefused with everything found, if anything was."""
        if self.found:
            raise LoadRefused(self.found)
