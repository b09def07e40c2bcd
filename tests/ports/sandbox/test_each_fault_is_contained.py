"""A file that dies, hangs, floods or lies takes its own pass along, by name, and nothing else. The next worker goes on."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from onefold.ports.sandbox import Deployment, describe, worker
from onefold.ports.sandbox.deployment import Outside
from onefold.terms.errors import LoadRefused, PortFailed
from tests.ports.sandbox.home import TOP, BoxedWorld, only

QUICK = Outside(silence_s=0.5)


async def falls(body: str, **more: Any) -> str:
    """Why the pass of the one actuator had no outcome. The host is alive, and a second pass fares the same."""
    async with only(body, **more) as (deployment, world):
        with pytest.raises(PortFailed):
            await world.one_pass()
        assert not deployment.warm
        with pytest.raises(PortFailed) as told:
            await world.one_pass()
        return told.value.why


async def fails(body: str, **more: Any) -> tuple[str, str]:
    """The kind and message by which the run failed."""
    async with only(body, **more) as (_, world):
        await world.play()
        assert world.state.status == "failed", world.state.status
        assert world.state.trouble is not None
        return world.state.trouble.kind, world.state.trouble.message


def step(does: str) -> str:
    return f"""
@actuator
async def bad(run: Run) -> str:
    return await run.step(act, retry=Retry(attempts=1))()
def act() -> str:
    {does}
"""


def top(does: str) -> str:
    return f"\n@actuator\nasync def bad(run: Run) -> str:\n    {does}\n    return 'done'\n"


# --- it ends, or is ended -------------------------------------------------------------------------------------


@pytest.mark.parametrize("does", ["os._exit(0)", "os.kill(os.getpid(), 9)", "os.abort()"])
async def test_a_process_that_is_gone_is_a_fault_of_its_pass(does: str) -> None:
    for body in (step(does), top(does)):
        assert "it went away" in await falls(body)


async def test_an_exit_is_the_run_s_own() -> None:
    assert (await fails(step("sys.exit(3)")))[0] == "SystemExit"
    assert (await fails(top("sys.exit(3)")))[0] == "SystemExit"


async def test_memory_without_end_is_refused_to_the_file_alone() -> None:
    for does in ("return 'x' * (4 << 30)", "kept = []\n    while True: kept.append(bytes(1 << 20))"):
        kind, _ = await fails(step(does))
        assert kind == "MemoryError"


async def test_threads_without_end_are_refused_to_the_file_alone() -> None:
    endless = "\n    threading.stack_size(%d)\n    while True: threading.Thread(target=time.sleep, args=(60,)).start()"
    assert await fails(step(endless % (8 << 20))) == ("RuntimeError", "can't start new thread")
    assert "threads; at most 256 are let" in await falls(step(endless % (32 << 10)))


async def test_output_without_end_goes_nowhere() -> None:
    async with only(
        step(
            "for _ in range(2000): print('x' * 100_000, flush=True); sys.stderr.write('y' * 100_000)\n    return 'done'"
        )
    ) as (_, world):
        await world.play()
        assert world.result == "done"


async def test_a_function_that_computes_without_end_fails_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    kind, told = await fails(top("while True: pass"))
    assert kind == "ComputedTooLong"
    assert "compute in a step" in told


async def test_a_loop_that_swallows_its_cut_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "PULSE_S", 0.6)
    deaf = "while True:\n        try:\n            while True: pass\n        except BaseException: pass"
    assert "answered nothing" in await falls(top(deaf))
    assert "answered nothing" in await falls(
        "\n@actuator\nasync def bad(run: Run) -> str:\n    return await run.step(act)()\n"
        "async def act() -> str:\n    while True: pass\n"
    )


async def test_a_step_and_a_plain_function_that_never_end_are_ended() -> None:
    assert "did nothing for 0.5 seconds" in await falls(step("while True: time.sleep(0.01)"), outside=QUICK)
    plain = "\n@actuator\ndef bad(run: blocking.Run) -> str:\n    while True: time.sleep(0.01)\n"
    assert "did nothing for 0.5 seconds" in await falls(plain, outside=QUICK)


async def test_a_run_that_waits_for_the_host_is_not_silent() -> None:
    async with only(step("time.sleep(0.2)\n    return 'slow'"), outside=QUICK) as (_, world):
        await world.play()
        assert world.result == "slow"


async def test_a_worker_killed_in_the_middle_of_a_step_is_replaced_and_the_run_goes_on() -> None:
    body = """
@actuator
async def goes(run: Run) -> list[str]:
    first = await run.step(one)()
    return [first, await run.step(two)(first)]
async def one() -> str:
    return f"{id(object())}"
async def two(step: Step, first: str) -> str:
    await asyncio.sleep(0.2)
    return f"{step.key} {step.attempt} {first}"
"""
    async with only(body) as (deployment, world):
        going = asyncio.create_task(world.one_pass())
        while not len(world.state.journal):  # noqa: ASYNC110 - the first step's commit has no event
            await asyncio.sleep(0.01)
        assert deployment._worker is not None
        os.kill(deployment._worker._process.pid, signal.SIGKILL)
        with pytest.raises(PortFailed, match="it went away"):
            await going
        await world.play()
        first, second = world.result
        assert second == f"~/goes/run_1/s~10~1two 1 {first}"


async def test_other_runs_of_the_file_go_on_after_one_has_killed_their_worker() -> None:
    body = """
class Job(BaseModel):
    die: bool
@actuator
async def job(run: Run, job: Job) -> str:
    return await run.step(act)(job.die)
async def act(die: bool) -> str:
    await asyncio.sleep(0.1)
    if die:
        os._exit(1)
    return "done"
"""
    source = TOP + body
    deployment = Deployment(source, "job.py", await describe(source, "job.py"))
    try:
        actuator = deployment.actuators[0]
        good, bad = [BoxedWorld(actuator, await actuator.checked({"die": die})) for die in (False, True)]
        told = await asyncio.gather(good.one_pass(), bad.one_pass(), return_exceptions=True)
        assert isinstance(told[1], PortFailed)
        await good.play()
        assert good.result == "done"
    finally:
        await deployment.aclose()


async def test_one_that_is_asked_nothing_ends_and_the_next_call_begins_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "IDLE_S", 0.2)
    async with only(step("return 'done'")) as (deployment, world):
        await world.play()
        while deployment.warm:  # noqa: ASYNC110 - its end has no event
            await asyncio.sleep(0.01)
        again = BoxedWorld(deployment.actuators[0])
        await again.play()
        assert (world.result, again.result) == ("done", "done")


async def test_no_process_of_a_box_outlives_its_host() -> None:
    host = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.ports.sandbox.killed", stdout=asyncio.subprocess.PIPE
    )
    assert host.stdout is not None
    pids = [int(pid) for pid in (await host.stdout.readline()).split()]
    assert len(pids) >= 3, "bubblewrap, its own first process, and the worker"
    assert all(map(alive, pids))
    host.kill()
    await host.wait()
    async with asyncio.timeout(30):
        while any(map(alive, pids)):  # noqa: ASYNC110 - the end of another's process has no event here
            await asyncio.sleep(0.01)


def alive(pid: int) -> bool:
    """Whether it runs: one that nobody has buried yet does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# --- it lies --------------------------------------------------------------------------------------------------

PIPE = """
import stat, struct, json
OTHERS = {'call': '0#5', 'kind': 'child', 'name': 'other/run_1', 'digest': 'd'}
def leads_out(fd):
    try:
        if not stat.S_ISSOCK(os.fstat(fd).st_mode):
            return False
        peer = socket.socket(fileno=os.dup(fd)).getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        os.write(fd, b"")
    except OSError:
        return False
    return struct.unpack("3i", peer)[0] != os.getpid()
def write(raw):
    for fd in filter(leads_out, range(3, 256)):
        while raw:
            try:
                raw = raw[os.write(fd, raw):]
            except BlockingIOError:
                time.sleep(0.001)
            except BrokenPipeError:
                break
def say(times=1, **word):
    raw = json.dumps(word).encode()
    write((struct.pack(">I", len(raw)) + raw) * times)
"""


@pytest.mark.parametrize(
    "lie",
    [
        "write(os.urandom(1000))",
        "write(b'\\xff\\xff\\xff\\xff')",
        "say(say='Ready', actuators=[])",
        "say(say='Nothing')",
        "say(say='Fold', run=1, n=900, event={'type': 'Start', 'run': 'run_2', 'program': 'x'})",
        "say(say='Fold', run=1, n=900, event={'type': 'Decided', 'id': 'x', 'run': 'r', 'name': 'm', 'approve': True, 'by': 'me'})",
        "say(say='Fold', run=1, n=900, event={'type': 'Stepped', 'call': '../0#1', 'name': 'a', 'digest': 'd', 'attempt': 1})",
        "say(say='Fold', run=1, n=900, event={'type': 'Stepped', 'call': '0#1', 'name': 'a', 'digest': 'd', 'attempt': -1})",
        "say(say='Ended', run=1, outcome={'type': 'Rested', 'seen': 9})",
        "say(say='Ended', run=1, outcome={'type': 'Returned', 'seen': 0, 'children': ['other/run_1']})",
        "say(say='Ended', run=1, outcome={'type': 'Rested', 'seen': 0, 'waits': [OTHERS]})",
        "say(say='Verb', run=1, n=1, verb='close', sql='', values={})",
    ],
)
async def test_a_word_that_no_worker_says_ends_it(lie: str) -> None:
    assert "what no worker says" in await falls(PIPE + step(f"{lie}\n    time.sleep(5)"))


@pytest.mark.parametrize("word", ["say='Pong'", "say='Checked', n=1, faults=[]", "say='Undo', run=1, n=7"])
async def test_a_flood_of_words_that_nobody_waits_for_ends_it(word: str) -> None:
    assert "what no worker says" in await falls(PIPE + step(f"while True: say(20_000, {word})"))


async def test_words_about_other_runs_reach_none() -> None:
    async with only(PIPE + step("say(say='Broke', run=77, why='x'); say(say='Checked', n=77)\n    return 'done'")) as (
        _,
        world,
    ):
        await world.play()
        assert world.result == "done"


async def test_a_notice_goes_to_no_address_of_the_file_s_own() -> None:
    body = """
@actuator(capabilities=["https://ours.example.com"])
async def asks(run: Run) -> str:
    await run.wait_for_approval("x", "?", notify="WHERE", timeout=None)
    return "asked"
"""
    for where in ("https://evil.example.com/take", "mailto:evil@example.com", "http://10.0.0.1/"):
        kind, told = await fails(body.replace("WHERE", where))
        assert kind == "BadArguments"
        assert "by their names in [people]" in told
    for where in ("boss", "https://ours.example.com/take"):
        async with only(body.replace("WHERE", where)) as (_, world):
            await world.play()
            assert world.rows.notices[0].notify == (where,)


async def test_a_pattern_of_strangers_is_not_searched_with() -> None:
    body = """
from pydantic import Field
class Offer(BaseModel):
    text: str = Field(pattern="^(a+)+$")
@actuator
async def asks(run: Run) -> str:
    await run.wait_for_approval("x", "?", notify="boss", timeout=None, offer=Offer(text="a"))
    return "asked"
"""
    assert "may have no pattern" in (await fails(body))[1]


# --- it cannot be loaded --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source, told",
    [
        ("x = 1", "holds no actuator"),
        ("def f(:", "SyntaxError"),
        ("1 / 0", "bad.py:1: its top level raised ZeroDivisionError"),
        ("import sys; sys.exit(1)", "SystemExit"),
        ("import nothing_of_the_kind", "ModuleNotFoundError"),
        ("from onefold import actuator\n@actuator\nasync def f(x: int) -> int: ...", "must be annotated `onefold.Run`"),
    ],
)
async def test_a_file_that_does_not_load_is_refused_in_words(source: str, told: str) -> None:
    with pytest.raises(LoadRefused) as refused:
        await describe(source, "bad.py")
    assert told in str(refused.value)


async def test_a_file_that_never_ends_loading_or_kills_its_process_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "START_S", 1)
    for source in ("while True: pass", "import os; os._exit(0)"):
        with pytest.raises(PortFailed):
            await describe(source, "bad.py")


async def test_where_no_box_works_nothing_is_deployed(monkeypatch: pytest.MonkeyPatch) -> None:
    from onefold.ports.sandbox import box

    for broken in ("/bin/false", None):
        box.problem.cache_clear()
        monkeypatch.setattr(box, "bwrap", lambda broken=broken: broken)
        with pytest.raises(LoadRefused, match="bubblewrap"):
            await describe(TOP + top("pass"), "good.py")
    box.problem.cache_clear()
