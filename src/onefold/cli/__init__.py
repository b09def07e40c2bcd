"""cli - `onefold …`: one file a command.

For: a command parses what was typed, says it to the app, and prints what comes back.
Never: decides; reads a store by itself; answers differently from HTTP.
Was wrong once: commands that called the store when no app ran, and HTTP when one did. The two
disagreed within a week. A command now speaks HTTP in both cases: to the app that answers, or to
the one it opens in its own process.

    root      the list of commands, exit codes      line      one open line to the app
    answers   what came back, and what it means     show      how it is printed
    stage     an app on a socket, until told off    files, reload    what `dev` does on a change
"""

from __future__ import annotations

from onefold.cli.root import main

__all__ = ["main"]
