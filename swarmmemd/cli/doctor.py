"""`swarmmemd doctor`: what is wrong, and how to mend it. docs/operations.md, "What doctor finds"."""

import os
import sys
from typing import TYPE_CHECKING

import click

from swarmmemd.cli.options import common_options, home_directory, load_config, state_directory
from swarmmemd.cli.output import say_json, say_line, say_titled
from swarmmemd.errors import ConfigError, Exit

if TYPE_CHECKING:
    from swarmmemd.doctor import Finding

SCHEMA = 1
_EPILOG = """\b
Examples:
  swarmmemd doctor
  swarmmemd doctor --no-self-test --json | jq -r '.findings[] | .name'
"""


@click.command("doctor", epilog=_EPILOG)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--self-test/--no-self-test", "probe", default=True, help="Whether to send a probe through it all."
)
@click.option(
    "--supervisor", type=click.Choice(["systemd", "launchd"]), help="Which manager; default: the platform's."
)
@common_options
@click.pass_context
def doctor_command(ctx: click.Context, as_json: bool, probe: bool, supervisor: str | None) -> int:
    """Look for what is wrong: folders, rights, service, daemon, versions. Exits 1 if there is something to mend.

    Changes nothing. The self-test runs a daemon on a temporary folder and takes a second.
    """
    found = _examined(ctx, supervisor)
    if probe:
        from swarmmemd.doctor import self_test

        found += self_test()
    serious = [one for one in found if one.level != "note"]
    if as_json:
        import msgspec

        told = {"schema": SCHEMA, "ok": not serious, "findings": msgspec.to_builtins(found)}
        say_json(told, indent=2)
    else:
        _tell(found, probe)
    return Exit.NOTHING if serious else Exit.DONE


def _examined(ctx: click.Context, supervisor: str | None) -> "list[Finding]":
    from swarmmemd.cli.service import look
    from swarmmemd.doctor import Finding, admit, examine
    from swarmmemd.install.systemd import Systemd

    home, found = home_directory(ctx), []
    try:
        loaded = load_config(ctx)
    except ConfigError as error:
        loaded, mend = None, "docs/configuration.md; swarmmemd config shows what holds"
        found = [Finding("configuration", "problem", problem, mend) for problem in error.problems]
    overview, state_dir = look(ctx, supervisor), state_directory(ctx)
    return [*found, *examine(admit(loaded, overview, home, Systemd(home).shadow, state_dir))]


def _tell(found: "list[Finding]", probe: bool) -> None:
    from swarmmemd.text import one_row

    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    for one in found:
        tint = {"problem": "red", "warning": "yellow"}.get(one.level)
        say_titled(one.level, f"{one.name}: {one_row(one.what, 300)}", tint if colour else None)
        if one.mend:
            say_line(f"         {one.mend}")
    if not found:
        say_line("Nothing is wrong" + (", and a probe went through." if probe else "."))
