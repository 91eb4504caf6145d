"""`swarmmemd`: the group of commands, and how an error is shown. docs/commands.md.

Commands are imported when they are called, so that `--help` and quick ones stay quick.
"""

import importlib
import os
import sys
from pathlib import Path
from typing import Any

import click

import swarmmemd
from swarmmemd.cli.options import Root, common_options
from swarmmemd.cli.output import say
from swarmmemd.errors import Exit, SwarmmemdError, system_error

_COMMANDS = {
    "run": "Watch the swarm and keep its memory, in the foreground.",
    "once": "One turn for every worker, then exit.",
    "demo": "Show the daemon at work on a small scripted swarm.",
    "service": "Install the daemon as a service, start, stop, look.",
    "doctor": "Say what is wrong, and how to mend it.",
    "status": "Say whether the daemon runs, and how it is.",
    "config": "Print the effective configuration and where each value came from.",
    "tail": "Show events as they are recorded.",
    "show": "Print a worker's memory.",
    "search": "Search the memory files.",
    "resume": "Print what a worker loads when it starts again.",
    "context": "Find which workers know something of a task.",
    "note": "Leave a note for a worker's memory.",
    "handoff": "Show a worker's handoffs and every version there was, or write one.",
    "promote": "Put a lesson from an event into the worker's long memory.",
    "skill": "Show or install the skill that tells workers how to use their memory.",
    "serve": "Serve the HTTP API and the memory panel.",
    "archive": "Archive a completed mission by hand.",
    "backfill": "Record what happened before the swarm was watched.",
    "verify": "Compare every memory file with the journal.",
    "rebuild": "Make the memory files right again from the journal.",
    "completion": "Print the completion script of a shell.",
}
"""Name to what the list of commands says; each lives in the module of its name."""


class Commands(Root):
    """The commands by name; a module is imported only when its command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order in which a newcomer needs them."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, or None."""
        if cmd_name not in _COMMANDS:
            return None
        command = getattr(importlib.import_module(f"swarmmemd.cli.{cmd_name}"), f"{cmd_name}_command")
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


_EPILOG = """\b
Examples:
  swarmmemd demo
  swarmmemd run
  swarmmemd search "rate limit"
  swarmmemd resume swarm5
  swarmmemd search --help
"""


@click.group(cls=Commands, epilog=_EPILOG)
@click.version_option(swarmmemd.__version__, prog_name="swarmmemd", message="%(prog)s %(version)s")
@common_options
def swarmmemd_group() -> None:
    """A durable, readable memory for swarms of long-lived agent workers.

    Watches each worker's runtime.json and the mission ledger, and keeps events, daily episodes and a true
    SUMMARY.md in the worker's memory folder.
    """


def run(arguments: list[str]) -> int:
    """Runs one command and gives its exit code. Never shows a traceback for what a person can mend."""
    if sys.stdout is None or sys.stderr is None:
        # Somebody has closed them (`>&-`): then nobody reads what we say.
        nowhere = Path(os.devnull).open("w")  # noqa: SIM115 - for the rest of the process
        sys.stdout, sys.stderr = sys.stdout or nowhere, sys.stderr or nowhere
    try:
        result: Any = swarmmemd_group.main(args=arguments, prog_name="swarmmemd", standalone_mode=False)
        sys.stdout.flush()
    except SwarmmemdError as error:
        return _explain(error)
    except click.exceptions.Abort:
        return 130
    except click.ClickException as error:
        error.show()
        return Exit.USAGE
    except SystemExit as ended:
        return Exit.DONE if _closed() else int(ended.code or 0)
    except BrokenPipeError:
        # The same for what was still in the buffer. Python would complain again while it shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.DONE
    except OSError as error:
        return _explain(system_error(error.filename or "output", error))
    except Exception:
        import traceback  # for a bug only

        say(traceback.format_exc(), err=True)
        say("swarmmemd: this is a bug. Please report it with the lines above.", err=True)
        return Exit.BUG
    return result if isinstance(result, int) and not _closed() else Exit.DONE


def _closed() -> bool:
    """Whether nobody reads our output any more: click then ends with 1. Who closed it has enough, no fault."""
    return type(sys.stdout).__name__.endswith("PacifyFlushWrapper")


def _explain(error: SwarmmemdError) -> int:
    say(f"swarmmemd: {error}", err=True)
    if error.mend:
        say(f"  {error.mend}", err=True)
    return error.code
