"""A memory file as it is, and what is recorded: what is wrong with our part of it, and the file made right. Pure.

What other people and programs wrote stays, byte for byte. `lines` is for `events.jsonl`, `entries` for the
episodes, `summary` for `SUMMARY.md`. docs/contracts.md, "Verify and rebuild".
"""

from swarmmemd.mending.entries import mend_entries
from swarmmemd.mending.lines import Owner, mend_lines
from swarmmemd.mending.summary import mend_summary
from swarmmemd.mending.values import Due, Fault, Mended

__all__ = ["Due", "Fault", "Mended", "Owner", "mend_entries", "mend_lines", "mend_summary"]
