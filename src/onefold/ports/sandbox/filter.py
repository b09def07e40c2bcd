"""ports.sandbox.filter - the system calls that a deployed file's process is refused, as a program for the kernel.

For: no second process (a fork bomb cannot begin), no memory outside of what its limits count, no new namespaces, no
kind of socket but those that its own network namespace holds.
Never: kills for what a library may try: it is told EPERM, or that there is no such call.
Was wrong once: a limit on processes alone. The kernel counts them for root nowhere, and a host that runs as root had
no limit.
"""

from __future__ import annotations

import struct
from typing import Final

MACHINE: Final = "x86_64"
_ARCH: Final = 0xC000003E  # AUDIT_ARCH_X86_64
_OTHER_ABI: Final = 0x40000000  # the x32 calls, numbered from here
_CLONE, _CLONE3, _SOCKET = 56, 435, 41
_THREAD: Final = 0x00010000  # CLONE_THREAD: in the same process
_FAMILIES: Final = (1, 2, 10)  # unix and internet; others (vsock, netlink, packet) reach past the namespace
_REFUSED: Final = {
    "fork": 57, "vfork": 58, "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311,
    "unshare": 272, "setns": 308, "mount": 165, "umount2": 166, "pivot_root": 155, "move_mount": 429,
    "open_tree": 428, "fsopen": 430, "mount_setattr": 442, "name_to_handle_at": 303, "open_by_handle_at": 304,
    "memfd_create": 319, "memfd_secret": 447, "shmget": 29, "semget": 64, "msgget": 68, "mq_open": 240,
    "io_uring_setup": 425, "bpf": 321, "userfaultfd": 323, "perf_event_open": 298,
    "add_key": 248, "request_key": 249, "keyctl": 250,
}  # fmt: skip
_EPERM, _ENOSYS = 1, 38
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE, _FIRST = 0, 4, 16  # where in what the kernel shows the program


def program() -> bytes:
    """The filter, in the form that bubblewrap loads."""
    steps: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, _ARCH),
        _give(_KILL),
        (_LOAD, 0, 0, _NUMBER),
        *_if(_AT_LEAST, _OTHER_ABI, _give(_ERROR | _EPERM)),
        *_if(_EQUAL, _CLONE3, _give(_ERROR | _ENOSYS)),  # its flags are out of reach; libraries then use clone
        *(step for number in _REFUSED.values() for step in _if(_EQUAL, number, _give(_ERROR | _EPERM))),
        *_if(
            _EQUAL,
            _CLONE,
            (_LOAD, 0, 0, _FIRST),
            *_if(_ANY_BIT, _THREAD, _give(_ALLOW)),
            _give(_ERROR | _EPERM),
        ),
        *_if(
            _EQUAL,
            _SOCKET,
            (_LOAD, 0, 0, _FIRST),
            *(step for family in _FAMILIES for step in _if(_EQUAL, family, _give(_ALLOW))),
            _give(_ERROR | _EPERM),
        ),
        _give(_ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def _if(test: int, value: int, *then: tuple[int, int, int, int]) -> list[tuple[int, int, int, int]]:
    return [(test, 0, len(then), value), *then]


def _give(answer: int) -> tuple[int, int, int, int]:
    return (_RETURN, 0, 0, answer)
