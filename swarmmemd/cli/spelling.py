"""Times as people read them."""

import time


def uptime(since: str) -> float | None:
    """Seconds since an ISO time; None where it is none."""
    from swarmmemd.model import parse_iso

    at = parse_iso(since)
    return round(max(time.time() - at / 1000, 0.0), 1) if at is not None else None


def spelled(seconds: float | None) -> str:
    """A span in its two largest units: `3 d 4 h`, `12 min 5 s`."""
    if seconds is None:
        return "an unknown time"
    left = int(seconds)
    parts: list[str] = []
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60), ("s", 1)):
        if left >= size or (unit == "s" and not parts):
            parts.append(f"{left // size} {unit}")
        left %= size
    return " ".join(parts[:2])
