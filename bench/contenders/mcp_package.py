"""bench.contenders.mcp_package - the protocol's own server, without durability, driven by wrk.

For: `mcp callers seconds`: what the package alone can do here.
Never: stores anything.
"""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

from bench.answering import answer
from bench.contenders.served import mcp_body
from bench.measures import Sample
from bench.wrk import free_port, listening, load, script

ROOT = Path(__file__).resolve().parents[2]


def serve(port: int) -> None:
    import uvicorn
    from mcp.server.mcpserver import MCPServer

    logging.disable(logging.WARNING)
    server = MCPServer("bench")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    app = server.streamable_http_app(json_response=True, stateless_http=True)
    uvicorn.run(app, port=port, log_level="error", access_log=False, loop="uvloop", http="httptools")


def main(program: str) -> None:
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "bench.contenders.mcp_package", "serve", str(port)], cwd=ROOT)
    listening(port, process)
    body, headers = mcp_body("n")
    lua = script("'/mcp'", body, headers)

    def mcp(callers: int, seconds: float) -> Sample:
        return load(program, f"http://127.0.0.1:{port}", callers, seconds, lua)

    try:
        answer({"mcp": mcp})
    finally:
        process.terminate()
        process.wait()
        lua.unlink()


if __name__ == "__main__":
    serve(int(sys.argv[2])) if sys.argv[1] == "serve" else main(sys.argv[1])
