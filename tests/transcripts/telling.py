"""A flow told as it happens: what was asked, what was committed, what was sent, what was answered, and what is left.

For: `Telling`, which plays a flow on the real app and writes down each commit and each send in their order.
Never: invents a line: commits are told by the host after they are durable, sends when they leave, and what is left is
read from the rows.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from onefold.actuators.receipt import Receipt as Shown
from onefold.errors import OnefoldError
from onefold.host.approvals import Verdict
from onefold.kernel.fold import Folded
from onefold.kernel.tables import ALARM, OWED
from onefold.node.resident import Resident
from onefold.store.contract import Query
from onefold.terms.instant import text, up
from onefold.testing import AwaitedApp, Stuck
from onefold.testing.acts import Called
from onefold.testing.clock import START
from tests.transcripts.words import in_words, plain

RUN = re.compile(r"run_[a-z2-7]{20,}")
SCHEDULE = re.compile(r"(?<![0-9a-f])[0-9a-f]{52}(?![0-9a-f])")
DIGEST = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
PARTS = r"(\d+), (\d+), (\d+), (\d+), (\d+)(?:, (\d+))?(?:, (\d+))?"
INSTANT = re.compile(rf"datetime\.datetime\({PARTS}, tzinfo=datetime\.timezone\.utc\)")
REPEATS = 4  # sends in a row from which on the ones between are only counted


class Telling:
    """One flow, its app and its lines."""

    def __init__(self, app: AwaitedApp) -> None:
        self.app = app
        self.lines: list[str] = []
        self._left: list[str] = []
        self._sends: list[tuple[str, str]] = []
        self._commits: list[int] = []  # the line after each commit of an act
        stage = app._stage
        stage.heard.append(self._committed)
        app._acts.heard.append(self._sent)
        app.points.heard.append(lambda point: self._line(f"--- the process is killed: {point} ---"))
        app._lives.heard.append(lambda what: self._line(f"--- {what} ---"))

    # --- acts ---------------------------------------------------------------------------------

    async def act(self, what: str, doing: Awaitable[Any]) -> Any:
        """Do one thing that is answered after its first commit, and tell what came of it; None where it was refused."""
        return await self._act(what, doing, after_commit=True)

    async def to_the_end(self, what: str, doing: Awaitable[Any]) -> Any:
        """The same for what is answered when all of it is over: a call, or a verb that a crash cut."""
        return await self._act(what, doing, after_commit=False)

    async def _act(self, what: str, doing: Awaitable[Any], *, after_commit: bool) -> Any:
        self._flush()
        self.lines += ["", f"[{self._now()}] {what}"]
        self._commits.clear()
        answer = None
        try:
            answer = await doing
            said = self._answer(answer)
        except (OnefoldError, Stuck) as refused:
            said = f"{type(refused).__name__}: {refused}"
        await self.app.settle()
        self._flush()
        # Where on the host's loop the caller was woken is chance; that it was after this commit is not.
        at = self._commits[0] if after_commit and self._commits else len(self.lines)
        self.lines.insert(at, f"    answered   {said}")
        await self._rest()
        return answer

    async def wait(self, duration: str) -> None:
        self._flush()
        self.lines += ["", f"[{self._now()}] {duration} {'passes' if duration.startswith('1 ') else 'pass'}"]
        before = len(self.lines)
        await self.app.clock.advance(duration)
        self._flush()
        if len(self.lines) == before:
            self._line("nothing happens")
        await self._rest()

    async def again(self, what: str, doing: Awaitable[None]) -> None:
        """A restart, told without an answer."""
        self._flush()
        self.lines += ["", f"[{self._now()}] {what}"]
        await doing
        await self.app.settle()
        await self._rest()

    def note(self, words: str) -> None:
        self._flush()
        self.lines += ["", f"    {words}"]

    # --- what is told -------------------------------------------------------------------------

    def _committed(self, resident: Resident, folded: Folded) -> None:
        self._flush()
        at = resident.at
        who = f"{at.kind} {at.key}" if at.principal is None else f"{at.kind} {at.key} of {at.principal}"
        said = [in_words(fact) for fact in folded.facts]
        said += [f"owes {item.port} {plain(item.name)}" for item in folded.owed if item.port != "pass"]
        for index, words in enumerate(words for words in said if words):
            self._line(f"{'committed' if not index else '':<10} {f'{who}: ' if not index else '  '}{words}")
        if not folded.facts and not folded.owed and folded.reply is not None and at.key[:4] != "run_":
            self._line(f"committed  {who}: a decline, its id and its reply")
        self._commits.append(len(self.lines))

    def _sent(self, called: Called) -> None:
        if called.name == "notify":
            (ask,) = called.args
            self._line(f"sent       a notice to {', '.join(ask.notify)}: {ask.message}")
            return
        args = ", ".join([*map(repr, called.args), *(f"{name}={value!r}" for name, value in called.values.items())])
        line = f"sent       {called.name}({args}), attempt {called.attempt}, under {called.key}"
        self._sends.append((called.key, line))

    def _answer(self, answer: Any) -> str:
        if isinstance(answer, Shown):
            return f"a receipt: {answer.run_id} {answer.status}"
        if isinstance(answer, Verdict):
            return f"{answer.outcome}, by {answer.by} at {answer.at:%H:%M}" if answer.by else answer.outcome
        return "done" if answer is None else repr(answer)

    async def _rest(self) -> None:
        """What the rows still hold, where it changed: what is owed and when the next alarm rings."""
        self._flush()
        left = []
        for place in self.app._stage.host._core.places:
            owed, alarms = await place.look(Query(OWED, order=("n",))), await place.look(Query(ALARM, order=("actor",)))
            for row in owed:
                if row[OWED.at["port"]] == "pass":
                    continue
                tried = f", tried {row[OWED.at['tries']]} times" if row[OWED.at["tries"]] else ""
                error = f" ({row[OWED.at['error']]})" if row[OWED.at["error"]] else ""
                left.append(
                    f"owed       {row[OWED.at['port']]} {str(row[OWED.at['key']])[2:]}, {row[OWED.at['state']]}{tried}{error}"
                )
            left += [
                f"alarm      {place.name} at {self._at(row[ALARM.at['at']])}"
                for row in alarms
                if row[ALARM.at["at"]] is not None
            ]
        if left != self._left:
            for line in left or ["left       nothing owed, no alarm"]:
                self._line(line)
        self._left = left

    # --- lines --------------------------------------------------------------------------------

    def _line(self, line: str) -> None:
        self._flush()
        self.lines.append(f"    {line}")

    def _flush(self) -> None:
        """Write the sends that are waiting: of many like each other, the first and the last."""
        sends, self._sends = self._sends, []
        for index, (_, line) in enumerate(sends):
            if len(sends) >= REPEATS and len({key for key, _ in sends}) == 1 and 0 < index < len(sends) - 1:
                if index == 1:
                    self.lines.append(
                        f"    ...        {len(sends) - 2} more under the same key, each later than the one before"
                    )
                continue
            self.lines.append(f"    {line}")

    def _now(self) -> str:
        return self._at(self.app._stage.clock.now())

    def _at(self, ms: Any) -> str:
        gone = timedelta(milliseconds=ms - START)
        days, rest = gone.days, timedelta(seconds=gone.seconds, milliseconds=gone.microseconds // 1000)
        whole, _, part = str(rest).partition(".")
        return f"day {days + 1} {whole.zfill(8)}{f'.{part[:3]}' if part else ''}"

    def whole(self, title: str, intro: str) -> str:
        """The transcript. Run ids are shortened to "run 1", "run 2" in the order in which they are met."""
        self._flush()
        paragraph = textwrap.fill(intro, 100)
        body = "\n".join([title, "=" * len(title), "", paragraph, *self.lines]) + "\n"
        for pattern, name in ((RUN, "run"), (SCHEDULE, "schedule")):
            body = _numbered(body, pattern, name)
        return DIGEST.sub("…", INSTANT.sub(_instant, body))


def _numbered(body: str, pattern: re.Pattern[str], name: str) -> str:
    """Ids shortened to "run 1", "run 2", in the order in which they are met."""
    met: list[str] = []

    def short(match: re.Match[str]) -> str:
        if match[0] not in met:
            met.append(match[0])
        return f"{name} {met.index(match[0]) + 1}"

    return pattern.sub(short, body)


def _instant(match: re.Match[str]) -> str:
    year, month, day, hour, minute, second, micros = (int(part or 0) for part in match.groups())
    at = datetime(year, month, day, hour, minute, second, micros, UTC)
    return text(up(at))


@asynccontextmanager
async def telling(*parts: Any) -> AsyncIterator[Telling]:
    app = AwaitedApp(*parts)
    told = Telling(app)
    async with app:
        yield told
