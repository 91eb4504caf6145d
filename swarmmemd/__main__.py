"""The program as a process: `swarmmemd`, and `python -m swarmmemd`, which is the same."""

import gc
import sys

_YOUNG = 20_000
"""Objects that are made before the collector looks through them. A start makes some ten thousand that all stay."""


def main() -> None:
    """The console script. What collecting would cost a command that is short is more than the command does."""
    gc.set_threshold(_YOUNG)
    from swarmmemd.cli.main import run  # after that: it is most of what a start makes

    code = run(sys.argv[1:])
    gc.freeze()  # nothing of it is looked through once more only to end
    sys.exit(code)


if __name__ == "__main__":
    main()
