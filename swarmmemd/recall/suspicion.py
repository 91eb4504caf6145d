"""Whether a text could hold a secret: a quick look, so that a search that shows none need not load the rules. Pure.

Everything that the rules find is suspicious (a test holds it against their corpus); much else is too.
"""

import re

_SUSPICIOUS = re.compile(
    r"pass|pwd|secret|token|key|auth|bearer|cookie|credential|private|machine|login|-u\b|-p\S|sig=|[^\d\s]:\d{1,5}:\S|:\d{4,5}:\S|://|:\w*@|-----"
    r"|[0-9a-z]{0,40}[0-9][0-9a-z]{9,}|[a-z]{9,}[0-9]|[a-z_]{24,}",
    re.IGNORECASE | re.ASCII,
)
_EVENT = re.compile(r"\bev_[0-9a-f]{30}\b")
_RUN = re.compile(r"[A-Za-z0-9_-]{16,}")
_GIVEN = re.compile(r"[^\x00-\x7f][^0-9A-Za-z]{0,6}[:=：＝]")


def could_hold_secret(text: str) -> bool:
    """False only where there is none. Ids of events are known to be none."""
    bare = _EVENT.sub("", text) if "ev_" in text else text
    if _SUSPICIOUS.search(bare) is not None or (not bare.isascii() and _GIVEN.search(bare) is not None):
        return True
    # Ids of missions are in small letters.
    return any(run.lower() != run for run in _RUN.findall(bare))
