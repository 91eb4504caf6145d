"""How old something is, for people. Pure."""

_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"))


def age(at: int, now: int) -> str:
    """`at` seen from `now`, both ms: `3 d ago`, `5 h ago`, `now`. What lies ahead by a clock that differs is now."""
    for length, name in _UNITS:
        if now - at >= length:
            return f"{(now - at) // length} {name} ago"
    return "now"
