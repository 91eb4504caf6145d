"""Everything that doctor looks at, gathered once: configuration, service, daemon, and what the daemon itself sees."""

import os
import sys
from pathlib import Path

import msgspec

from swarmmemd.config import Config, Loaded
from swarmmemd.inbox import Answer, Request, ask
from swarmmemd.install.overview import Overview
from swarmmemd.standing import Standing

_PATIENCE = 10.0
"""Seconds that a healthy daemon has to answer: it looks into its inbox every second without a hint too."""


class Patient(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to look at. `answer` is None where no daemon runs or it does not answer, `loaded` where the
    configuration cannot be used: then only service, daemon and kernel are looked at."""

    loaded: Loaded | None
    state_dir: Path
    overview: Overview
    home: Path
    answer: Answer | None
    older_unit: Path | None = None
    """Where a unit would win over ours."""
    system_unit: Path = Path("/etc/systemd/system/swarmmemd.service")
    """Where a service of the whole system would stand beside the user's."""
    kernel: Path = Path("/proc/sys/fs/inotify")
    open_state: bool
    """Others could read the state folder before we looked: any use of it closes it again."""
    uid: int
    prefix: str

    @property
    def config(self) -> Config:
        """The configuration of this command, for the questions that are asked only where there is one."""
        assert self.loaded is not None
        return self.loaded.config

    @property
    def standing(self) -> Standing:
        """The daemon as its lock and its files show it."""
        return self.overview.standing


def admit(
    loaded: Loaded | None,
    overview: Overview,
    home: Path,
    older_unit: Path | None,
    state_dir: Path,
    patience: float = _PATIENCE,
) -> Patient:
    """Gathers it. A daemon that runs is asked what it can see: its rights are not those of this shell."""
    open_state = _open(state_dir)
    answer = None
    if overview.standing.running:
        try:
            answer = ask(state_dir, Request("access"), patience)
        except OSError:
            answer = None
    return Patient(
        loaded=loaded,
        state_dir=state_dir,
        overview=overview,
        home=home,
        answer=answer,
        older_unit=older_unit,
        open_state=open_state,
        uid=os.getuid(),
        prefix=sys.prefix,
    )


def _open(folder: Path) -> bool:
    try:
        return bool(folder.stat().st_mode & 0o077)
    except OSError:
        return False
