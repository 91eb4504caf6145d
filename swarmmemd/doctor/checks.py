"""The questions, one function each. docs/operations.md, "What doctor finds" lists every name given here."""

import contextlib
import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from swarmmemd.access import refused
from swarmmemd.config import Config
from swarmmemd.doctor.findings import Finding
from swarmmemd.doctor.patient import Patient
from swarmmemd.errors import NoJournalError, ServiceError, SwarmmemdError
from swarmmemd.install.program import version_of
from swarmmemd.journal import Filter, Follower
from swarmmemd.layout import JOURNAL, LOG, TOKEN
from swarmmemd.model import parse_iso
from swarmmemd.standing import OLD

Findings = Iterator[Finding]
_LEAST_SPACE = 64 << 20
"""Bytes that must be free: a journal and the memory of a busy day."""
_LEAST_WATCHES = 4096
_LEAST_INSTANCES = 64
_AHEAD_MS = 60_000
_LOOKED_AT = 2000
"""Files of the memory whose owner is looked at, at most."""
_WRONG = (".openclaw/profiles", ".ocplatform/workspace")
_INSTALL = "swarmmemd service install"
_RELOAD = "The daemon goes on with what it read before. When the file is right: swarmmemd service restart"


def examine(patient: Patient) -> list[Finding]:
    """All findings, problems first. What one of the questions cannot look at keeps none of the others from it."""
    found: list[Finding] = []
    for check in _CHECKS if patient.loaded is None else (*_OF_CONFIGURATION, *_CHECKS):
        try:
            found.extend(check(patient))
        except OSError as error:
            found.append(
                Finding(
                    "closed",
                    "problem",
                    f"{error.filename}: {error.strerror}, so doctor cannot look at it",
                    "Check owner and permissions there; something may have run as another user, with sudo.",
                )
            )
    order = {"problem": 0, "warning": 1, "note": 2}
    return sorted(found, key=lambda finding: order[finding.level])


def _roots(patient: Patient) -> Findings:
    config = patient.config
    if not _there(config.profiles_root):
        yield Finding(
            "profiles-missing",
            "problem",
            f"{config.profiles_root} is not there",
            "Is Hermes installed for this user? Else set profiles_root in the configuration.",
        )
    said = refused(config)
    for line in said:
        yield Finding("root-denied", "problem", line, "Check owner and permissions of that folder.")
    for line in patient.answer.problems if patient.answer else ():
        if line not in said:
            yield Finding(
                "daemon-denied",
                "problem",
                f"The daemon cannot use {line}, although this shell can",
                "On macOS let the program into that folder: System Settings, Privacy, Files and Folders."
                " On Linux look at the drop-ins of the unit.",
            )


def _there(path: Path) -> bool:
    """Whether something is there, as far as this account may know: what it may not look at is there."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _places(patient: Patient) -> Findings:
    for text in patient.loaded.notices if patient.loaded else ():
        yield Finding("memory-elsewhere", "warning", text, "Set shared_root in the configuration.")
    for name in _WRONG:
        folder = patient.home / name
        left = sorted(folder.glob("*/memory"))
        if left:
            yield Finding(
                "wrong-place",
                "warning",
                f"{left[0]} looks like a worker's memory in a place where nobody reads it",
                f"The place is {patient.config.profiles_root}. Move what is missing there.",
            )


def _space(patient: Patient) -> Findings:
    config, seen = patient.config, set()
    for path in (config.state_dir, config.profiles_root, config.shared_root):
        there = next(one for one in (path, *path.parents) if _there(one))
        try:
            device, found = there.stat().st_dev, os.statvfs(there)
        except OSError:
            continue  # a root that is closed is a finding of its own
        free = found.f_bavail * found.f_frsize
        if device not in seen and (free < _LEAST_SPACE or (found.f_files and not found.f_favail)):
            yield Finding(
                "space",
                "problem",
                f"{there} has {free >> 20} MiB left",
                "Make room; nothing is lost meanwhile.",
            )
        seen.add(device)


def _state(patient: Patient) -> Findings:
    folder = patient.config.state_dir
    if not os.access(folder, os.R_OK | os.X_OK):
        return
    if patient.open_state:
        yield Finding("state-mode", "problem", f"{folder} can be read by other users", f"chmod 700 {folder}")
    token = folder / TOKEN
    if token.exists() and token.stat().st_mode & 0o077:
        yield Finding("token-mode", "problem", f"{token} can be read by other users", f"chmod 600 {token}")
    rejected = folder / "inbox" / "rejected"
    count = len(list(rejected.glob("*.reason"))) if rejected.is_dir() else 0
    if count:
        yield Finding(
            "rejected",
            "warning",
            f"{rejected} holds {count} requests that were refused",
            "Read the reasons there.",
        )


def _owners(patient: Patient) -> Findings:
    """The first of each kind: there may be thousands."""
    said: set[str] = set()
    for path in _some(_kept(patient.config)):
        try:
            found = path.lstat()
        except FileNotFoundError:
            continue  # a daemon is at work
        if found.st_uid != patient.uid and patient.uid != 0 and "owner" not in said:
            said.add("owner")
            yield Finding(
                "owner",
                "warning",
                f"{path} belongs to user {found.st_uid}, not to you",
                "Something ran as another user, perhaps with sudo. Give it back: chown.",
            )
        if stat.S_ISLNK(found.st_mode) and "link" not in said:
            said.add("link")
            yield Finding(
                "link",
                "warning",
                f"{path} is a link: it is not written through",
                "Put a real file or folder there.",
            )


def _kept(config: Config) -> Iterator[Path]:
    """What swarmmemd writes and nobody else has to own: its state, and the memory of the workers."""
    yield from config.state_dir.glob("*")
    yield from config.profiles_root.glob("*/memory/**/*")


def _some(paths: Iterator[Path]) -> Iterator[Path]:
    for count, path in enumerate(paths):
        if count >= _LOOKED_AT:
            return
        yield path


def _journal(patient: Patient) -> Findings:
    path = patient.config.state_dir / JOURNAL
    if not os.access(path.parent, os.X_OK) or not path.exists():
        return
    try:
        follower = Follower(path)
    except NoJournalError as error:
        if patient.standing.holder is None:  # else it is just being made
            yield Finding("journal", "problem", str(error), error.mend)
        return
    except SwarmmemdError as error:
        yield Finding("journal", "problem", str(error), error.mend)
        return
    try:
        newest = follower.newest(Filter(), 1)
    except SwarmmemdError as error:
        yield Finding("journal", "problem", str(error), error.mend)
        return
    finally:
        follower.close()
    if newest and newest[0].event.at > time.time() * 1000 + _AHEAD_MS:
        yield Finding(
            "clock",
            "warning",
            "The newest event lies in the future: the clock was set back since",
            "Check the clock (timedatectl). Order does not depend on it, times in the memory do.",
        )


def _daemon(patient: Patient) -> Findings:
    standing, overview = patient.standing, patient.overview
    if standing.unseen:
        yield Finding(
            "state-denied",
            "problem",
            f"Whether a daemon runs cannot be told: {standing.unseen}",
            "Something ran as another user, perhaps with sudo. Give the folder back: chown.",
        )
        return
    if standing.holder is None:
        yield from _down(patient)
        return
    figures = standing.figures
    if not standing.running:
        yield Finding(
            "starting", "warning", "The daemon holds its lock and is not up yet", "Ask again in a minute."
        )
        return
    if patient.answer is None:
        yield Finding(
            "silent", "problem", "The daemon does not answer", "swarmmemd service restart, and see its log"
        )
    age = time.time() - (parse_iso(figures.get("written")) or 0) / 1000
    if age > OLD:
        yield Finding(
            "figures-old",
            "problem",
            f"The daemon wrote its figures {age:.0f} s ago",
            "It hangs, or its state folder is full: swarmmemd service restart",
        )
    for trouble in figures.get("troubles", []):
        yield Finding(
            "trouble",
            "warning",
            f"{trouble['what']}: {trouble['reason']}, since {trouble.get('since', '?')}",
            _RELOAD
            if trouble["what"] == "configuration"
            else "It is tried again by itself; the reason says what to look at.",
        )
    polled = figures.get("watching", {}).get("polled", 0)
    if polled:
        yield Finding(
            "polled", "warning", f"{polled} folders cannot be watched and are polled", "See: swarmmemd status"
        )
    if standing.holder.version != overview.installed_version:
        yield Finding(
            "version",
            "warning",
            f"{standing.holder.version} runs, {overview.installed_version} is installed",
            "swarmmemd service restart",
        )


def _down(patient: Patient) -> Findings:
    if (pid := patient.overview.elsewhere) is not None:
        yield Finding(
            "other-state",
            "problem",
            f"The service runs as process {pid}, but holds no lock in {patient.state_dir}",
            f"That folder was moved or removed, or the service has another: {_INSTALL}, then swarmmemd service restart",
        )
        return
    last = patient.standing.last_exit
    if last is not None:
        mend = last.mend or "Mend that, then: swarmmemd service start"
        yield Finding("last-exit", "problem", f"The daemon cannot run: {last.reason}", mend)
        return
    installed = patient.overview.definition.state != "missing"
    mend = "swarmmemd service start" if installed else f"{_INSTALL}, or in the foreground: swarmmemd run"
    yield Finding("not-running", "problem" if installed else "warning", "No daemon runs", mend)


def _another(patient: Patient) -> Findings:
    """The daemon that runs is not the one that this command would be."""
    if not patient.standing.running:
        return
    figures, config = patient.standing.figures, patient.config
    asked = {
        "profiles": str(config.profiles_root),
        "workspace": str(config.workspace_root),
        "shared": str(config.shared_root),
    }
    other = [
        f"{name} {path}" for name, path in figures.get("roots", {}).items() if path != asked.get(name, path)
    ]
    if other:
        yield Finding(
            "other-roots",
            "problem",
            f"The daemon runs with other folders than this command: {', '.join(other)}",
            f"Restart it if the configuration has changed; write what must hold into the file, then {_INSTALL}",
        )
    if figures.get("uid", patient.uid) != patient.uid:
        yield Finding(
            "other-user",
            "problem",
            f"The daemon runs as user {figures['uid']}",
            "Run one as the owner of the profiles.",
        )
    if figures.get("prefix", patient.prefix) != patient.prefix:
        yield Finding(
            "other-environment",
            "warning",
            f"The daemon runs from {figures['prefix']}, this command from {patient.prefix}",
            f"Keep one of the two; then {_INSTALL}, and swarmmemd service restart",
        )


def _service(patient: Patient) -> Findings:
    found, one = patient.overview.definition, patient.overview.supervisor
    if one is None:
        yield Finding(
            "no-manager",
            "note" if found.state == "missing" else "problem",
            patient.overview.unasked,
            "Log in as this user directly, or: loginctl enable-linger. Without a manager: swarmmemd run",
        )
    if patient.older_unit is not None and os.path.lexists(patient.older_unit):
        yield Finding(
            "older-unit",
            "problem",
            f"{patient.older_unit} wins over the installed unit",
            f"{_INSTALL} --force",
        )
    if patient.system_unit.exists():
        yield Finding(
            "two-scopes",
            "warning",
            f"{patient.system_unit} is a service of the system, beside the user's",
            "One of them has to wait for the lock: keep the user's, and disable that one.",
        )
    if found.state == "missing":
        if patient.standing.holder is not None:
            yield Finding("not-installed", "note", "The daemon runs, but not as a service", _INSTALL)
        return
    yield from _file(patient)
    if one is None:
        return
    if not one.loaded:
        yield Finding(
            "not-loaded",
            "problem",
            f"{found.path} is there, but its manager has not loaded it, so it does not start with the login",
            _INSTALL,
        )
        return
    if one.active == "failed":
        gave_up = "; its manager gave up" if one.gave_up else ""
        yield Finding(
            "failed",
            "problem",
            f"The service ended with {one.last_exit} ({one.result}){gave_up}",
            "See swarmmemd service logs, mend it, then: swarmmemd service start",
        )
    if not one.enabled:
        yield Finding("not-enabled", "warning", "The service does not start with the login", _INSTALL)
    if one.outdated:
        yield Finding("reload", "warning", "The manager has not read the unit as it is now", _INSTALL)
    if one.stays is False:
        yield Finding(
            "linger",
            "warning",
            "The service ends at the last logout and does not start at boot",
            f"{_INSTALL} --linger",
        )


def _file(patient: Patient) -> Findings:
    found = patient.overview.definition
    if found.state in ("edited", "foreign"):
        how = "was edited by hand" if found.state == "edited" else "was not made by swarmmemd service install"
        yield Finding(
            f"definition-{found.state}", "warning", f"{found.path} {how}", f"See the difference: {_INSTALL}"
        )
    if found.state == "outdated":
        yield Finding(
            "definition-outdated",
            "warning",
            f"{found.path} is not what would be installed now: another program, flags or version",
            _INSTALL,
        )
    program = Path(found.argv[0]) if found.argv else None
    said = version_of(program, patient.home) if program is not None and program.is_absolute() else None
    if isinstance(said, ServiceError):
        yield Finding(
            "program-broken",
            "problem",
            str(said),
            f"Its Python may be gone after an upgrade. Install swarmmemd again, then {_INSTALL}",
        )
    elif said is not None and said != patient.overview.installed_version:
        yield Finding(
            "program-version",
            "warning",
            f"The service starts version {said}, this command is {patient.overview.installed_version}",
            f"Keep one of the two; then {_INSTALL}, and swarmmemd service restart",
        )


def _kernel(patient: Patient) -> Findings:
    for name, least in (("max_user_watches", _LEAST_WATCHES), ("max_user_instances", _LEAST_INSTANCES)):
        try:
            allowed = int((patient.kernel / name).read_text())
        except (OSError, ValueError):
            continue
        if allowed < least:
            yield Finding(
                "inotify",
                "warning",
                f"fs.inotify.{name} is {allowed}: folders beyond that are polled",
                f"As root: sysctl fs.inotify.{name}={least * 16}, and the same in /etc/sysctl.d",
            )


def _log(patient: Patient) -> Findings:
    folder, log = patient.config.state_dir / LOG, patient.config.log
    allowed = log.files * log.max_mb << 20
    size = sum(map(_size, folder.glob("*")))
    if size > allowed:
        yield Finding(
            "log-size",
            "warning",
            f"{folder} holds {size >> 20} MiB, more than log.files and log.max_mb allow",
            "Files from an earlier setting are not removed: delete the old ones.",
        )


def _size(path: Path) -> int:
    """0 for one that has just been rotated away."""
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_size
    return 0


_OF_CONFIGURATION: tuple[Callable[[Patient], Findings], ...] = (
    *(_roots, _places, _space, _state, _owners, _journal, _another, _log),
)
"""What can only be asked where the configuration says what there should be."""
_CHECKS: tuple[Callable[[Patient], Findings], ...] = (_daemon, _service, _kernel)
NAMES = (
    *(
        "configuration",
        "profiles-missing",
        "root-denied",
        "daemon-denied",
        "state-denied",
        "closed",
        "memory-elsewhere",
        "wrong-place",
    ),
    *("space", "state-mode", "token-mode", "rejected", "owner", "link", "journal", "clock"),
    *("not-running", "last-exit", "starting", "silent", "figures-old", "trouble", "polled"),
    *("other-state", "other-roots", "other-user", "other-environment", "version"),
    *("no-manager", "older-unit", "two-scopes", "not-installed", "definition-edited", "definition-foreign"),
    *(
        "definition-outdated",
        "program-broken",
        "program-version",
        "failed",
        "not-loaded",
        "not-enabled",
        "reload",
        "linger",
    ),
    *("inotify", "log-size", "self-test"),
)
"""The name of every finding there can be."""
