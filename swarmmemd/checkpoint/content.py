"""What a chat row holds: its text as stored, and the part of that text which is the worker's own."""

import json
import re
from typing import Any

from swarmmemd.checkpoint.lines import EDGE

_STORED_AS_JSON = "\0json:"
_SUMMARY = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]:")
_SUMMARY_END = re.compile(r"^[ \t]*+--- END OF CONTEXT SUMMARY[^\r\n]*+", re.MULTILINE)
_PRIOR = "[PRIOR CONTEXT"
_PRIOR_END = "[END OF PRIOR CONTEXT"
_PRIOR_HEADS = re.compile(r"(?:\s*+\[PRIOR CONTEXT[^\]\r\n]*+\]?+)++")


def decode(content: str | None) -> str:
    """The text of a stored row. Broken JSON is plain text; only `text` blocks count.

    docs/contracts.md, "Checkpoints".
    """
    if content is None:
        return ""
    if content.startswith(_STORED_AS_JSON):
        blocks = _json_list(content[len(_STORED_AS_JSON) :])
        return content if blocks is None else _texts(blocks)
    if not content.lstrip().startswith("["):
        return content
    blocks = _json_list(content)
    return _texts(blocks) if blocks and all(map(_is_block, blocks)) else content


def _json_list(text: str) -> list[Any] | None:
    try:
        # The standard decoder: it takes lone surrogates, which do occur.
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, list) else None


def _is_block(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("type"), str)


def _texts(blocks: list[Any]) -> str:
    texts = (block.get("text") for block in blocks if _is_block(block) and block["type"] == "text")
    return "\n".join(text for text in texts if isinstance(text, str))


def own_part(text: str) -> str:
    """The worker's own part of a row that carries a compaction summary; any other text as it is.

    docs/contracts.md, "Checkpoints".
    """
    return _before_summary(_after_summary(text))


def _after_summary(text: str) -> str:
    """The text below the summary that `text` begins with. Of several end marks the last one counts."""
    if not text.lstrip(EDGE).startswith(_SUMMARY):
        return text
    end = None
    for found in _SUMMARY_END.finditer(text):
        end = found.end()
    rest = "" if end is None else text[end:]
    return "" if rest.lstrip(EDGE).startswith(_SUMMARY) else rest


def _before_summary(text: str) -> str:
    """The old text of a row into which a summary was merged: it stands above the end mark."""
    end = text.find(_PRIOR_END)
    own = text if end < 0 else text[:end]
    body = own.lstrip(EDGE)
    if not body.startswith(_PRIOR):
        return own
    heads = _PRIOR_HEADS.match(body)
    old = body[heads.end() :] if heads else body
    return "" if old.lstrip(EDGE).startswith(_SUMMARY) else old
