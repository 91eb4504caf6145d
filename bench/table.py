"""Figures as they are measured, and the table of them."""

import msgspec


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure: the median of its samples, and how far they spread. `unit` is of all numbers in it.

    `floor` is what cannot be avoided for the same work, measured in the same run, in the same unit. `budget` is the
    most that the project allows itself.
    """

    part: str
    what: str
    unit: str
    median: float
    low: float
    high: float
    p99: float | None = None
    samples: int = 1
    floor: float | None = None
    budget: str = ""
    note: str = ""


def figure(
    part: str,
    what: str,
    unit: str,
    samples: list[float],
    *,
    floor: float | None = None,
    budget: str = "",
    note: str = "",
) -> Figure:
    """The figure that the samples make. The p99 only of a hundred or more."""
    ordered = sorted(samples)
    return Figure(
        part=part,
        what=what,
        unit=unit,
        median=_at(ordered, 0.5),
        low=ordered[0],
        high=ordered[-1],
        p99=_at(ordered, 0.99) if len(ordered) >= 100 else None,
        samples=len(ordered),
        floor=floor,
        budget=budget,
        note=note,
    )


def _at(ordered: list[float], share: float) -> float:
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def lines(figures: list[Figure]) -> list[str]:
    """The table, as text."""
    head = f"{'':<52}{'unit':>7}{'median':>10}{'p99':>10}{'low':>10}{'high':>10}{'x floor':>9}  budget"
    shown, part = [head], ""
    for one in figures:
        if one.part != part:
            part = one.part
            shown.append(part)
        times = f"{one.median / one.floor:.2f}" if one.floor else ""
        p99 = f"{one.p99:.2f}" if one.p99 is not None else ""
        numbers = f"{one.median:10.2f}{p99:>10}{one.low:10.2f}{one.high:10.2f}{times:>9}"
        shown.append(f"  {one.what:<50}{one.unit:>7}{numbers}  {one.budget}".rstrip())
        if one.note:
            shown.append(f"      {one.note}")
    return shown
