"""cli.serve - an app in production: one process, no reload.

For: `onefold serve TARGET`.
Never: listens beyond this machine without keys; prints an approval link; restarts itself (what
starts it does that: everything it accepted is in the store).
Was wrong once: links in the log, "for convenience". The log was shipped to a third party, and with it
the right to approve.
"""

from __future__ import annotations

import gc
from pathlib import Path

import click

from onefold.cli.options import target_of


@click.command("serve", short_help="Serve an app, in production.")
@click.argument("target", required=False)
@click.option("--listen", metavar="HOST:PORT", help="Where to listen; by default 127.0.0.1:8600.")
@click.option("--store", help="The store: a folder, postgres://…, or memory: for one that ends with the process.")
@click.option("--node", metavar="NAME", help="Be a node of this name in the fleet that shares the store.")
@click.option("--advertise", metavar="URL", help="Where the other nodes reach this one; by default where it listens.")
def serve(target: str | None, listen: str | None, store: str | None, node: str | None, advertise: str | None) -> None:
    """Serve TARGET (file.py, file.py:name or package.module:name) until SIGTERM."""
    from onefold.cli import stage

    start = Path.cwd()
    staged = stage.stage(target_of(target, start), {"listen": listen, "store": store, **_node(node, advertise)}, start)
    stage.fit_to_serve(staged.config)
    listening = stage.bound(staged.config.listen)
    staged = staged.on(listening)

    def serving(_: object) -> None:
        gc.freeze()  # why: looking again through all that a start loaded held every answer up for 11 ms now and then
        host, port = staged.config.listen
        click.echo(f"onefold serves {staged.title} on http://{f'[{host}]' if ':' in host else host}:{port}")

    stage.run(stage.serve(staged, listening, serving=serving))


def _node(name: str | None, advertise: str | None) -> dict[str, str | None]:
    return {"node.name": name, "node.advertise": advertise}
