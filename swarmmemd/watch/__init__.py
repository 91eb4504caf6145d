"""Watching directories: a change calls back "look again". docs/architecture.md, "Watching".

Here is the only import of watchdog, and `inotify` alone knows the insides of it. The package knows directories,
not what their files mean: nothing of workers, missions or names worth knowing, and nothing of the rest of the
project. It never polls and reads no watched file; what it cannot watch it calls
`Armed.POLL`, and the caller's sweep does the rest.
"""

from swarmmemd.watch.watcher import Armed, Hint, Watcher, WatchHealth

__all__ = ["Armed", "Hint", "WatchHealth", "Watcher"]
