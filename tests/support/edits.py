"""Every small edit of a text: what somebody, or a failing disk, does to one of its lines."""

from collections.abc import Iterator

import msgspec


class Edit(msgspec.Struct, frozen=True):
    """One edit: of what kind, at which line (from 0), and the text after it."""

    kind: str
    at: int
    data: bytes


def edits(data: bytes) -> Iterator[Edit]:
    """The text cut at and within each line; each line taken out, doubled, swapped with the next, each word of it
    changed; and all line ends changed."""
    lines = data.splitlines(keepends=True)
    for at, line in enumerate(lines):
        before, after = lines[:at], lines[at + 1 :]
        yield Edit("cut", at, b"".join(before))
        yield Edit("cut within", at, b"".join([*before, line[: len(line) // 2]]))
        yield Edit("taken out", at, b"".join(before + after))
        yield Edit("doubled", at, b"".join([*before, line, line, *after]))
        if after and after[0] != line:
            yield Edit("swapped", at, b"".join([*before, after[0], line, *after[1:]]))
        words = line.split(b" ")
        for number, word in enumerate(words):
            if len(word.strip()) > 2 and word.isascii():
                changed = [*words[:number], word[:1] + b"\xc3\xa4" + word[2:], *words[number + 1 :]]
                yield Edit("changed", at, b"".join([*before, b" ".join(changed), *after]))
    yield Edit("line ends", 0, data.replace(b"\n", b"\r\n"))


def rearrangements(data: bytes) -> Iterator[Edit]:
    """What leaves remains of ours that need not be known for ours: each line put at the beginning or the end, emptied,
    indented, run into the next, broken in two, or with words added; all lines in the other order."""
    lines = data.splitlines(keepends=True)
    for at, line in enumerate(lines):
        before, after, bare = lines[:at], lines[at + 1 :], line.rstrip(b"\n")
        half = len(bare) // 2
        for kind, instead in (
            ("emptied", [b"\n"]),
            ("indented", [b"  ", line]),
            ("run into the next", [bare]),
            ("broken in two", [bare[:half], b"\n", bare[half:], b"\n"]),
            ("words added", [bare, b" (so they say)\n"]),
        ):
            yield Edit(kind, at, b"".join([*before, *instead, *after]))
        yield Edit("put at the beginning", at, b"".join([line, *before, *after]))
        yield Edit("put at the end", at, b"".join([*before, *after, line]))
    yield Edit("reversed", 0, b"".join(reversed(lines)))


def filled(data: bytes) -> list[bytes]:
    """The lines with something in them, without their ends."""
    return [line for line in data.splitlines() if line.strip()]
