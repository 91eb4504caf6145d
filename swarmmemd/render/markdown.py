"""Any text as one line that cannot break the Markdown around it. docs/contracts.md, SUMMARY.md.

The values come from workers and models: they hold line breaks, fences, headings and terminal codes, and a
line of theirs must never become a heading, a section or a bullet of ours.
"""

import re

from swarmmemd.cut import shortened

LIMIT = 2000

# Whole terminal sequences (colours, window titles), so that no `[31m` is left of them.
_SEQUENCES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
# Control characters that are no white space, the signs that turn the reading direction, the BOM. White space
# (every kind of line break too: VT, FF, FS to US, NEL, U+2028, U+2029) is what `str.split` folds.
_CONTROLS = re.compile(
    r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]"
)

# What means something at the beginning of a line. The escape goes to the end of group 1.
_BEGINNINGS = re.compile(
    r"()(?:"
    r"[#>|]"  # heading, quote, table
    r"|[-+*](?: |\Z)"  # bullet
    r"|```|~~~"  # fence
    r"|<[A-Za-z/!?]"  # HTML block, comment
    r"|=+\Z|-+\Z"  # setext underline
    r"|(?:[-*_] ?){3,}\Z"  # thematic break
    r"|[-:][-:| ]*\Z"  # delimiter row of a table
    r"|\[[^\]]*\]:"  # link definition: it would not be shown
    r")"
)
_NUMBERED = re.compile(r"([0-9]{1,9})[.)](?: |\Z)")
# A value must not look like one of the three bullets that say how the mission stands.
_STANDING = re.compile(r"(Status|Current assignment|Last updated) ?:", re.IGNORECASE)
_MEANINGFUL = (_BEGINNINGS, _NUMBERED, _STANDING)
_HARMLESS = re.compile(r"(?!(?i:status|current|last))[A-Za-z/'\"(]|[0-9]++[^.)]")
"""No pattern of `_MEANINGFUL` begins so."""


def one_line(text: str, limit: int = LIMIT) -> str:
    """`text` as one line that is plain text after `- ` or alone on a line. docs/contracts.md, SUMMARY.md.

    Idempotent: an escaped beginning means nothing any more, and the mark of a cut is not counted again.
    """
    if len(text) <= limit and _is_plain(text):
        return text
    return shortened(_escape(_fold(text)), limit)


def _is_plain(text: str) -> bool:
    """Whether `text` is surely such a line already, as most are: then none of the patterns is asked."""
    return (
        text.isprintable()
        and _HARMLESS.match(text) is not None
        and text[-1:] != " "
        and "  " not in text
        and "-->" not in text
    )


def bullet(text: str) -> str:
    """`text` as one bullet. docs/contracts.md, SUMMARY.md."""
    return "- " + one_line(text)


def _fold(text: str) -> str:
    bare = _CONTROLS.sub("", _SEQUENCES.sub("", text))
    return " ".join(bare.split())


def _escape(line: str) -> str:
    # `-->` counts in the middle too: it would close a comment that somebody left open further up.
    closed = line.replace("-->", "--\\>")
    for meaningful in _MEANINGFUL:
        if found := meaningful.match(closed):
            at = found.end(1) if meaningful is not _STANDING else found.end() - 1
            return f"{closed[:at]}\\{closed[at:]}"
    return closed
