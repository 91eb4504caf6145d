"""Checkpoints as workers write them: chat content to text, text to blocks, a block back to text.

Pure: text in, values out. docs/contracts.md, "Checkpoints".
"""

from swarmmemd.checkpoint.content import decode, own_part
from swarmmemd.checkpoint.parsing import parse, parse_own
from swarmmemd.checkpoint.writing import render

__all__ = ["decode", "own_part", "parse", "parse_own", "render"]
