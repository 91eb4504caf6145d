"""What the Linux kernel says of watches and mounts, read from /proc. Nothing here knows watchdog.

Elsewhere, and in a sandbox that hides /proc, the answer is "unknown", which is never an error.
docs/architecture.md, "Watching".
"""

import re
from collections.abc import Iterator
from pathlib import Path

FULL_MASK = 0x7C8
"""CLOSE_WRITE, MOVED_FROM, MOVED_TO, CREATE, DELETE, DELETE_SELF: what the event filter asks for."""

_FDINFO_LINE = re.compile(rb"^inotify wd:[0-9a-f]+ ino:([0-9a-f]+) sdev:[0-9a-f]+ mask:([0-9a-f]+)", re.M)
_OCTAL = re.compile(r"\\([0-7]{3})")

# inotify sees what goes through this kernel; these are written by others too (microsoft/WSL#4739).
_FOREIGN = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "fakeowner", "gpfs", "lustre", "nfs", "nfs4", "prl_fs", "smb3"}
    | {"smbfs", "vboxsf", "virtiofs", "vmhgfs"}
)


def fully_armed(proc: Path = Path("/proc/self")) -> frozenset[int] | None:
    """The inodes that an inotify descriptor of this process watches with the whole mask.

    None if the kernel does not tell. The device is not compared: what fdinfo prints may differ from
    `st_dev` (btrfs). Costs about 5 µs for each watch, nearly all of it in the kernel.
    """
    lines = [line for text in _inotify_fdinfo(proc) for line in _FDINFO_LINE.findall(text)]
    if not lines:
        return None
    return frozenset(int(ino, 16) for ino, mask in lines if int(mask, 16) & FULL_MASK == FULL_MASK)


def _inotify_fdinfo(proc: Path) -> Iterator[bytes]:
    try:
        descriptors = list((proc / "fd").iterdir())
    except OSError:
        return
    for descriptor in descriptors:
        try:
            # The link is "anon_inode:inotify", in some kernels with brackets; it names no file.
            if "inotify" in str(descriptor.readlink()):
                yield (proc / "fdinfo" / descriptor.name).read_bytes()
        except OSError:  # closed since it was listed
            continue


def read_mountinfo() -> str:
    """The text of /proc/self/mountinfo, "" where there is none."""
    try:
        return Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


def file_system(path: str, mountinfo: str) -> str:
    """The type of the file system that holds the real path `path`; "" if unknown."""
    best, kind = -1, ""
    for line in mountinfo.splitlines():
        mounted, _, source = line.partition(" - ")
        fields, kinds = mounted.split(" "), source.split(" ")
        if len(fields) < 5 or not kinds[0]:
            continue
        point = _OCTAL.sub(lambda found: chr(int(found[1], 8)), fields[4])
        # Of several mounts on one point the last hides the others.
        if len(point) >= best and _holds(point, path):
            best, kind = len(point), kinds[0]
    return kind


def _holds(point: str, path: str) -> bool:
    return path == point or path.startswith(point if point.endswith("/") else point + "/")


def is_foreign(kind: str) -> bool:
    """Whether files of this file system type can change without this kernel seeing it."""
    return kind in _FOREIGN or kind.startswith("fuse")
