"""ports.sandbox.gate - the egress proxy: the only way out of a box, to the https hosts that its file declares.

For: CONNECT to a declared origin, its name looked up here and every address of it public, then bytes both ways.
Never: reads what goes through; asks for another origin than the one that was named; logs more than an origin.
Was wrong once: the address looked up in the box. The file answered its own question, with the address of this host.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

from onefold.ports.egress import NotAllowed, Resolve, address_of, is_public, looked_up, target_of

log = logging.getLogger("onefold.sandbox")
ASKED: Final = re.compile(rb"CONNECT ([!-~]{1,300}):([0-9]{1,5}) HTTP/1\.[01]\r\n", re.ASCII)
HEAD_BYTES: Final = 16 << 10
HEAD_S: Final = 10
CONNECT_S: Final = 10
AT_ONCE: Final = 64
Public: TypeAlias = "Callable[[str], bool]"
"""Whether an address is one of the open internet."""
PIECE: Final = 64 << 10


class Gate:
    """origins: what may be reached. The rest is for tests."""

    def __init__(
        self,
        origins: frozenset[str],
        *,
        resolve: Resolve = looked_up,
        public: Public = is_public,
    ) -> None:
        self._origins = origins
        self._resolve = resolve
        self._public = public
        self._carrying: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def open(self, at: Path) -> None:
        """Listen on a socket file. Raises: OSError."""
        self._server = await asyncio.start_unix_server(self._came, at, limit=HEAD_BYTES)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for carrying in self._carrying:
            carrying.cancel()

    def _came(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._carrying) >= AT_ONCE:
            writer.transport.abort()
            return
        carrying = asyncio.get_running_loop().create_task(self._carry(reader, writer))
        self._carrying.add(carrying)
        carrying.add_done_callback(self._carrying.discard)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        away: asyncio.StreamWriter | None = None
        try:
            async with asyncio.timeout(HEAD_S):
                head = await reader.readuntil(b"\r\n\r\n")
            there, away = await self._connected(head)
            writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
            await asyncio.gather(_pour(reader, away), _pour(there, writer))
        except NotAllowed as refused:
            log.warning("egress refused: %s", refused.why)
            writer.write(f"HTTP/1.1 403 {refused.why}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # either side went, or the other host does not answer: the box sees its connection end
        finally:
            for end in (writer, away):
                if end is not None:
                    end.close()

    async def _connected(self, head: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Raises: NotAllowed; OSError, TimeoutError when the other side does not answer."""
        asked = ASKED.match(head)
        if asked is None:
            raise NotAllowed("only CONNECT to an https host goes through")
        target = target_of(f"https://{asked[1].decode().lower()}:{int(asked[2])}")
        if target.origin not in self._origins:
            raise NotAllowed(f"{target.origin} is not declared; add it to the capabilities of the file")
        async with asyncio.timeout(CONNECT_S):
            address = await address_of(target, self._resolve, self._public)
            return await asyncio.open_connection(address, target.port)


async def _pour(source: asyncio.StreamReader, into: asyncio.StreamWriter) -> None:
    while piece := await source.read(PIECE):
        into.write(piece)
        await into.drain()
    if into.can_write_eof():
        into.write_eof()
