"""`swarmmemd verify`: the whole tree against the journal."""

from typing import TYPE_CHECKING

import click

from swarmmemd.cli.options import common_options, load_config
from swarmmemd.cli.output import say_json, say_line
from swarmmemd.errors import Exit
from swarmmemd.text import one_row

if TYPE_CHECKING:
    from swarmmemd.recall.verify import Verdict

_EPILOG = """\b
Examples:
  swarmmemd verify
  swarmmemd verify --json
  swarmmemd verify --secrets
"""
_WIDTH = 300


@click.command("verify", epilog=_EPILOG)
@click.option(
    "--secrets", is_flag=True, help="Also look for secrets in the shared memory, whoever wrote them."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@common_options
@click.pass_context
def verify_command(ctx: click.Context, secrets: bool, as_json: bool) -> int:
    """Compare the memory files, the shared copies, the archive and the audit log with the journal.

    Reads only, and works beside a running daemon. A finding concerns what the daemon wrote; what people and other
    programs wrote is information. Exits 1 if there is a finding.
    """
    from swarmmemd.recall.verify import verify

    verdict = verify(load_config(ctx).config, secrets)
    if as_json:
        _tell_json(verdict)
    else:
        _tell(verdict)
    return Exit.NOTHING if verdict.findings else Exit.DONE


def _tell(verdict: "Verdict") -> None:
    for note in verdict.information:
        say_line(f"{one_row(note.path, _WIDTH)}:{note.line}: {one_row(note.what, _WIDTH)}", err=True)
    for one in verdict.findings:
        say_line(f"{one_row(one.path, _WIDTH)}:{one.line}: {one_row(one.what, _WIDTH)}")
        say_line(f"  {one_row(one.mend, _WIDTH)}")
    looked = f"{verdict.workers} workers, {verdict.events} events, {verdict.files} files"
    count = len(verdict.findings)
    say_line(f"{looked}: {'1 finding' if count == 1 else f'{count} findings' if count else 'all is right'}")


def _tell_json(verdict: "Verdict") -> None:
    import msgspec

    content = {"schema": 1, "ok": not verdict.findings, **msgspec.to_builtins(verdict)}
    say_json(content, indent=2)
