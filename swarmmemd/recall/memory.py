"""What the memory files tell of all workers: what a new journal would begin with."""

from swarmmemd.config import Config
from swarmmemd.errors import StorageError
from swarmmemd.memory.readback import read_back
from swarmmemd.model import Unreadable
from swarmmemd.recall.verify import roster_of
from swarmmemd.remember import remember
from swarmmemd.sources.profiles import list_profiles


def remembered(config: Config) -> tuple[int, int]:
    """How many workers have events in their files, and how many events. Raises `StorageError`."""
    workers = events = 0
    listed = list_profiles(
        config.profiles_root, roster_of(config), config.workers.include, config.workers.exclude
    )
    if isinstance(listed, Unreadable):
        raise StorageError(f"{config.profiles_root}: {listed.reason}", "Check its owner and permissions.")
    for worker in sorted(listed.workers):
        _, found = remember(
            worker, [(file.mission, file.lines) for file in read_back(config.profiles_root, worker)]
        )
        workers += bool(found)
        events += len(found)
    return workers, events
