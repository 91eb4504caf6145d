"""Blocks of a private key, over lines or over `\\n` in JSON, whole or cut; and data that only looks like secrets.

Pure.
"""

import base64
import binascii
import re
from collections.abc import Iterator
from typing import NamedTuple

from swarmmemd.redact.spans import Span

KIND = "private-key"

_HEADER = re.compile(
    r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    r"|---- BEGIN SSH2 (?:ENCRYPTED )?PRIVATE KEY ----"
    r"|PuTTY-User-Key-File-\d{1,2}:|Private-Lines:[ \t]{0,4}\d{1,4}"
)
_FOOTER = re.compile(
    r"-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    r"|---- END SSH2 (?:ENCRYPTED )?PRIVATE KEY ----"
    r"|Private-MAC:[ \t]{0,4}[0-9a-fA-F]{16,}+"
)
_PUTTY_LINES = re.compile(r"Private-Lines:[ \t]{0,4}\d{1,4}")
_QUOTE = re.compile(r'(?<!\\)"')
_BODY = re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{16,}+")
_LONG_LINE = 16
_SURE_LINE = 40
"""So long is a line of base64 that a footer alone makes it part of a key."""

_BETWEEN = re.compile(
    r"(?:[\s\"'`,+>|#*•]|-(?!-)|//|\[[ xX]?\]|\d{1,4}[.):]|\\+(?:[nrt\"']|u2022|u003e)){1,40}"
)
"""What may stand between two lines: breaks, quotes of strings that are joined, marks of a list, a quotation or a
comment."""

_LINE = re.compile(
    r"(?:[A-Za-z0-9+/_-]{16,}+={0,2}|[A-Za-z0-9+/]{1,15}={1,2}|=[A-Za-z0-9+/]{4}"
    r"|(?=[A-Za-z]{0,14}[0-9+/])[A-Za-z0-9+/]{4,15})(?=[\s\"',+\\`]|$|-{4})"
)
_OWN_LINE = re.compile(rf"(?:(?<![A-Za-z0-9+/_=\\-])|(?<=\\[nrt]))(?:{_LINE.pattern})")
_FIELD = re.compile(r"(?:Proc-Type|DEK-Info|Version|Comment|Subject|Hash|MessageID): [^\n\\\"]{0,120}")
_ENCODED_MARK = "LS0tL"
_ENCODED = re.compile(rf"(?<![A-Za-z0-9+/_-]){_ENCODED_MARK}[A-Za-z0-9+/_-]{{40,}}+={{0,2}}")
_WRAP = re.compile(r"(?:\r?\n|\\n)[ \t]{0,40}")
_WRAPPED = re.compile(r"[A-Za-z0-9+/_-]{4,}+={0,2}(?=\s|\\|$|[\"'])")
_WIDTH = 100
"""A longer line of base64 was not wrapped."""

_NEAR = 8192
"""How far to look from a header or a footer that stands alone."""

_QUIET = re.compile(
    r"data:[\w./+-]{0,80}(?:;[\w.=-]{1,40}){0,4};base64,[A-Za-z0-9+/=%]*+"
    r"|(?<![A-Za-z0-9+/])(?:[A-Za-z0-9+/]{256,}+"
    r"|(?:iVBORw0KGgo|/9j/|R0lGOD|UklGR|PHN2Zy|JVBERi0|AAAA[BCE]3Nza|AAAAE2Vj|AAAAGnNr)[A-Za-z0-9+/]*+)"
    r"|sha(?:256|384|512)-[A-Za-z0-9+/]{40,}+={0,2}"
)
_PUBLIC = re.compile(
    r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}"
    r"(?:CERTIFICATE(?: REQUEST)?|PUBLIC KEY(?: BLOCK)?|X509 CRL|SIGNATURE|PARAMETERS)-----[^-\"]*+-----END"
)


def quiet(text: str) -> list[tuple[int, int]]:
    """Images, certificates and public keys: a token's beginning inside of them is chance."""
    found = [one.span() for one in _QUIET.finditer(text)]
    if "-----BEGIN" in text:
        found += [one.span() for one in _PUBLIC.finditer(text)]
    return found


def holds_a_key(text: str) -> bool:
    """Whether a part of a private key may stand in the text."""
    return _names_a_key(text) or _ENCODED_MARK in text


def private_keys(text: str) -> Iterator[Span]:
    if _names_a_key(text):
        yield from _blocks(text)
    if _ENCODED_MARK in text:
        yield from _encoded(text)


def _names_a_key(text: str) -> bool:
    return "PRIVATE KEY" in text or "Private-" in text


class _Mark(NamedTuple):
    """A header or a footer. `inner`: a header within a block."""

    start: int
    end: int
    opens: bool
    inner: bool


def _marks(text: str) -> list[_Mark]:
    opening = [_Mark(*one.span(), True, one[0].startswith("Private-")) for one in _HEADER.finditer(text)]
    closing = [_Mark(*one.span(), False, False) for one in _FOOTER.finditer(text)]
    return sorted(opening + closing)


def _blocks(text: str) -> Iterator[Span]:
    """Each header with its footer; a header without one with the lines behind it; a footer without one with those
    before it."""
    done = 0
    header: _Mark | None = None
    for mark in _marks(text):
        if mark.opens and mark.inner and header:
            continue
        if mark.opens:
            if header:
                yield from _lines(text, header)
            header = mark
            continue
        yield from _block(text, header, mark) if header else _lines_before(text, done, mark)
        header, done = None, mark.end
    if header:
        yield from _lines(text, header)


def _block(text: str, header: _Mark, footer: _Mark) -> Iterator[Span]:
    """As a whole where no quote in between could end a string of JSON. Prose that names both ends holds no key."""
    if _QUOTE.search(text, header.end, footer.start):
        yield from _lines(text, header)
    elif _BODY.search(text, header.end, footer.start):
        yield Span(header.start, footer.end, KIND)


def _lines(text: str, header: _Mark) -> Iterator[Span]:
    """The header and the base64 lines behind it, one by one: quotes between them stay."""
    lines = _PUTTY_LINES.search(text, header.end, header.end + _NEAR) if text[header.start] == "P" else None
    at = lines.end() if lines else header.end
    found: list[Span] = []
    while gap := _BETWEEN.match(text, at):
        line = _LINE.match(text, gap.end())
        field = _FIELD.match(text, gap.end()) if not found else None
        if line is None and field is None:
            break
        at = (field or line).end()  # type: ignore[union-attr]
        if line and not field:
            found.append(Span(*line.span(), KIND))
    if not any(line.end - line.start >= _LONG_LINE for line in found):
        return
    yield Span(header.start, header.end, KIND)
    yield from found
    if gap and (footer := _FOOTER.match(text, gap.end())):
        yield Span(*footer.span(), KIND)


def _lines_before(text: str, done: int, footer: _Mark) -> Iterator[Span]:
    """The end of a block whose beginning was cut off."""
    found: list[Span] = []
    end = footer.start
    for line in reversed(list(_OWN_LINE.finditer(text, max(done, footer.start - _NEAR), footer.start))):
        if line.end() < end and not _BETWEEN.fullmatch(text, line.end(), end):
            break
        found.append(Span(*line.span(), KIND))
        end = line.start()
    if any(line.end - line.start >= _SURE_LINE for line in found):
        yield from reversed(found)
        yield Span(footer.start, footer.end, KIND)


def _encoded(text: str) -> Iterator[Span]:
    """A block in base64, as in a kubeconfig; wrapped lines too."""
    for found in _ENCODED.finditer(text):
        if "PRIVATE KEY" not in _decoded(found[0][:80]):
            continue
        yield Span(*found.span(), KIND)
        at = found.end()
        while len(found[0]) < _WIDTH and (gap := _WRAP.match(text, at)):
            line = _WRAPPED.match(text, gap.end())
            if line is None:
                break
            yield Span(*line.span(), KIND)
            at = line.end()


def _decoded(start: str) -> str:
    """The text that a piece of base64 stands for, without a cut end; of its other alphabet too."""
    start = start.translate({ord("-"): "+", ord("_"): "/"}).rstrip("=")
    try:
        return base64.b64decode(start[: len(start) // 4 * 4]).decode("latin-1")
    except (ValueError, binascii.Error):
        return ""
