"""serve.mcp - actuators as tools of an agent, over the Model Context Protocol.

For: streamable HTTP without sessions at /mcp and /tools/{name}/mcp, in both eras of the protocol on
one address; a result or a receipt within 25 seconds; tasks for clients that ask for them.
Never: dedupes by the JSON-RPC id (two fresh clients both send 2); ends a run because a stream closed;
validates arguments by a schema (the actuator does, in words).
Was wrong once: sessions. A restart made every client reconnect by hand, and some never did.

`agents` is light and imports the protocol's package when somebody first needs it; `short` answers plain
calls without it, `server` wires it; `listing` says what there is, `calls` and `tasks` do it, `telling`
says how it went.
"""
