"""host.opening - from settings and parts to a host that runs.

For: choosing the world, the clock, the secrets and the ways to reach people.
Never: starts anything by being imported; opens a store that another process holds.
Was wrong once: choices spread over the doors. `serve` and `call` opened one folder differently.
"""

from __future__ import annotations

import logging
import os
import platform
import secrets  # noqa: TID251 - minted here, once, and handed down
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from onefold.actuators.carried import Ask
from onefold.actuators.executing import run_pass
from onefold.host.catalog import Catalog, catalog
from onefold.host.clock import Clock, WallClock
from onefold.host.config import Config
from onefold.host.core import Passing, nowhere
from onefold.host.host import Host
from onefold.host.links import Choice
from onefold.host.secret import signing
from onefold.host.settings import on_postgres
from onefold.kernel.port import StandIn
from onefold.ports.callback import callback_port
from onefold.ports.notify import Links, Reaching, Way, alert_port, notify_port
from onefold.ports.webhook import posting_port, signature, webhook_way
from onefold.reflex.seams import Effect
from onefold.store.contract import World
from onefold.terms.errors import BadArguments, Finding, LoadRefused

log = logging.getLogger("onefold")

if TYPE_CHECKING:
    from onefold.host.enlisting import Enlisted


async def open_host(
    config: Config,
    parts: Iterable[object],
    *,
    title: str = "onefold",
    world: World | None = None,
    clock: Clock | None = None,
    chance: Callable[[int], bytes] = secrets.token_bytes,
    say: Callable[[str], None] | None = None,
    show_links: bool = False,
    accept_rollback: bool = False,
    twice: bool = False,
    failpoint: Callable[[str], None] | None = None,
    stand_in: StandIn | None = None,
    run_pass: Passing = run_pass,
) -> Host:
    """Open an application. `say` takes one text for the console; `show_links` lets it hold approval links; `twice` runs
    the functions of modules twice and compares. For tests: `failpoint` is called by name where a crash must lose
    nothing, `stand_in` gives what is called in the place of a step, `run_pass` runs the passes. Raises: LoadRefused,
    StoreLocked, StoreRolledBack, StoreTooNew, StoreUnavailable.
    """
    known = catalog(parts, config.people, title)
    member = _enlisted(config, clock, known)
    ticking = clock or (member.clock if member else WallClock())
    clocks = WallClock() if member else ticking  # a file's own clock is the machine's: a node's follows it
    stands_on = world or make_world(config, clocks, accept_rollback=accept_rollback, failpoint=failpoint)
    host = Host(
        config,
        known,
        stands_on,
        ticking,
        signing=signing(config, secrets.token_bytes),
        chance=chance,
        point=failpoint or nowhere,
        twice=twice,
        stand_in=stand_in,
        run_pass=run_pass,
        member=member,
    )
    try:
        await _open(host, config, known, ticking, say or _log, show_links=show_links)
    except BaseException:
        await _let_go(host, stands_on)
        raise
    return host


async def _open(
    host: Host, config: Config, known: Catalog, ticking: Clock, say: Callable[[str], None], *, show_links: bool
) -> None:
    """With every way out that the settings give it."""
    reaching = _reaching(host, config, ticking, say, show_links=show_links)
    await host.open(
        notify=notify_port(reaching, partial(_links, host, config)),
        alert=alert_port(reaching) if config.alerts else None,
        ended=callback_port(signature(host.signing), ticking.now, here=not config.keys),
        posts=partial(posting_port, signature(host.signing), ticking.now),
        outward=partial(_outward, config, known, host.signing, ticking, reaching),
    )


async def _let_go(host: Host, world: World) -> None:
    """Of what was opened so far."""
    if host.fleet is not None:
        await host.fleet.abandon()
    await world.close()


def _enlisted(config: Config, clock: Clock | None, known: Catalog) -> Enlisted | None:
    if config.node.name is None:
        return None
    from onefold.host.enlisting import enlisted  # only a fleet pays for it

    return enlisted(config, clock, known.actuators, lambda: make_world(config, WallClock()))


def make_world(
    config: Config,
    clock: Clock,
    *,
    accept_rollback: bool = False,
    failpoint: Callable[[str], None] | None = None,
) -> World:
    """The store that the settings name, and those of the spaces that they move.

    Raises: LoadRefused.
    """
    make = partial(_world, config, clock, accept_rollback, failpoint)
    main = make("store", config.store)
    worlds = {config.store: main}
    for name, store in config.spaces.items():
        if store not in worlds:
            worlds[store] = make(f"spaces.{name}", store)
    if len(worlds) == 1:
        return main
    from onefold.store.apart import Apart

    return Apart(main, {name: worlds[store] for name, store in config.spaces.items()})


def _world(
    config: Config,
    clock: Clock,
    accept_rollback: bool,
    failpoint: Callable[[str], None] | None,
    said: str,
    store: str,
) -> World:
    if store == "memory:":
        from onefold.store.memory import MemoryWorld

        return MemoryWorld(clock=clock.now, failpoint=failpoint)
    if not on_postgres(store):
        from onefold.store.sqlite import SqliteWorld

        return SqliteWorld(
            store,
            clock=clock.now,
            durability=config.durability,
            accept_rollback=accept_rollback,
            shared=config.node.name is not None,
            node=config.node.name or "",
            failpoint=failpoint,
        )
    from onefold.store.postgres import PostgresWorld

    named = f"process {os.getpid()} on {platform.node()}"
    if config.node.name is not None:
        named = f"node {config.node.name}, {named}"
    try:
        return PostgresWorld(
            store,
            node=named.encode("ascii", "replace").decode(),
            durability=config.durability,
            accept_rollback=accept_rollback,
            alone=config.node.name is None,
            shared=config.node.name is not None,
            settings=None if config.node.name is None else _soon_over(config.node.lease),
            failpoint=failpoint,
        )
    except BadArguments as bad:
        raise LoadRefused([Finding(said, fault.problem) for fault in bad.faults]) from None


def _soon_over(lease_ms: int) -> dict[str, str]:
    """A commit that a node of a fleet began and does not go on with ends by itself before the lease does.

    Was wrong once: ten seconds for everybody. A node that was cut off in the middle of a commit held its rows for as
    long, and nobody could take its place.
    """
    return {"idle_in_transaction_session_timeout": f"{min(10_000, lease_ms // 2)}ms"}


def _links(host: Host, config: Config, ask: Ask) -> Links:
    def link(choice: Choice) -> str:
        return f"{config.public_url}/approve/{host.link(ask, choice)}"

    return Links(link("approve"), link("reject"))


def _reaching(host: Host, config: Config, clock: Clock, say: Callable[[str], None], *, show_links: bool) -> Reaching:
    hook = webhook_way(signature(host.signing), clock.now)
    ways: dict[str, Way] = {"https": hook, "http": hook}
    if config.smtp is not None:
        from onefold.ports.mail import mail_way

        named = config.smtp.url_env
        ways["mailto"] = mail_way(lambda: config.secret(named, "smtp.url_env", least=1), config.smtp.sender)
    people = {name: person.notify for name, person in config.people.items()}
    return Reaching(people, ways, say, show_links=show_links)


def _outward(
    config: Config, known: Catalog, secrets: Sequence[bytes], clock: Clock, reaching: Reaching
) -> Sequence[Effect]:
    from onefold.host.reflex_outward import outward  # only who has reflexes pays for it

    return outward(config, known.reflexes, secrets, clock.now, reaching)


def _log(text: str) -> None:
    log.info("%s", text)
