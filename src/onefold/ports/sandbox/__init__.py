"""ports.sandbox - files deployed by others, each in a warm process of its own under bubblewrap.

For: `problem`, why no file can be deployed here; `describe`, what a file holds; `Deployment`, its actuators as values
whose runs are like any other's: the same steps, keys and journal.
Imports: actuators, kernel's blobs and ports, store's contract, ports.egress, terms.  Imported by: host.
Never: runs a line of such a file in this process; a sandbox that is not there taken for one.
Was wrong once: a file deployed and run like the host's own. It read the store, which held everybody's.

    box         what the process sees of this machine      worker      the process, from the host's side
    filter      the system calls that it is refused        serving     one pass of it, from the host's side
    gate        its only way out, a proxy                  judging     what it says, looked at as a stranger's
    words       what both sides say                        described   its actuators, as values
    inside      the process itself                         deployment  one version of a file
    acting      a run's actor, as a pass in there sees it
"""

from __future__ import annotations

from onefold.ports.sandbox.box import problem
from onefold.ports.sandbox.deployment import Deployment, describe
from onefold.ports.sandbox.described import Described

__all__ = ["Deployment", "Described", "describe", "problem"]
