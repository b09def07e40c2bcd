"""host.reflex_outward - the effects that leave the app: `http` to the origins that it lists, `notify` to its people.

For: both, made of the settings and of what `Reflexes` say.
Never: an origin, a token or an address that a reflex names.
Was wrong once: a token read at the start and kept. It stood in a dump of the process, rotated long before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from onefold.host.config import Config
from onefold.ports.egress import origins_of, target_of
from onefold.ports.http import HttpEffect
from onefold.ports.notify import Reaching
from onefold.ports.telling import NotifyEffect
from onefold.ports.webhook import signature
from onefold.reflex.part import Reflexes
from onefold.reflex.seams import Effect
from onefold.terms.errors import Finding, LoadRefused

EGRESS: Final = "egress of Reflexes"
_VARIABLE: Final = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)


def outward(
    config: Config, parts: Sequence[Reflexes], signing: Sequence[bytes], now: Callable[[], int], reaching: Reaching
) -> list[Effect]:
    """The effects. Raises: LoadRefused for an origin that is none, and a token that is not set."""
    named = {origin: variable for part in parts for origin, variable in part.egress.items()}
    origins = origins_of(named, EGRESS)
    bearers = {target_of(origin).origin: _variable(origin, said, config) for origin, said in named.items() if said}

    def bearer(origin: str) -> str | None:
        return config.secret(bearers[origin], EGRESS) if origin in bearers else None

    return [HttpEffect(origins, signature(signing), now, bearer=bearer), NotifyEffect(reaching, config.people)]


def _variable(origin: str, said: str, config: Config) -> str:
    if not _VARIABLE.fullmatch(said):
        raise LoadRefused([Finding(EGRESS, f'{origin} has a token that is not "env:NAME", the variable that holds it')])
    name = said.removeprefix("env:")
    config.secret(name, EGRESS)  # a start can refuse before the first call meets it
    return name
