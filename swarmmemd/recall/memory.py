"""What the memory files tell of all workers: what a new journal would begin with."""

from swarmmemd.config import Config
from swarmmemd.errors import system_error
from swarmmemd.memory.readback import read_back
from swarmmemd.recall.verify import roster_of
from swarmmemd.remember import remember
from swarmmemd.sources.profiles import profiles_in


def remembered(config: Config) -> tuple[int, int]:
    """How many workers have events in their files, and how many events. Raises `StorageError`."""
    workers = events = 0
    root, globs = config.profiles_root, config.workers
    try:
        listed = profiles_in(root, roster_of(config), globs.include, globs.exclude)
    except OSError as error:
        raise system_error(root, error, "Check its owner and permissions.") from error
    for worker in sorted(listed.workers):
        _, found = remember(
            worker, [(file.mission, file.lines) for file in read_back(config.profiles_root, worker)]
        )
        workers += bool(found)
        events += len(found)
    return workers, events
