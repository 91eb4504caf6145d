"""Text to safe text. Pure."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import msgspec

from swarmmemd.redact.assigned import assigned, kind_of
from swarmmemd.redact.blocks import KIND as PRIVATE_KEY
from swarmmemd.redact.blocks import private_keys, quiet
from swarmmemd.redact.rules import CONTEXTS, TOKENS, Rule
from swarmmemd.redact.spans import MARKER, Places, Span, lowered, outside_of_escapes, united
from swarmmemd.redact.values import SHORTEST, secret_in_quotes

USER = "user"
KINDS: tuple[str, ...] = tuple(
    dict.fromkeys(
        (
            PRIVATE_KEY,
            *(rule.kind for rule in (*TOKENS, *CONTEXTS)),
            "password",
            "api-key",
            "token",
            "secret",
            USER,
        )
    )
)
"""Every kind, the one that says most first: it names a place that several rules found."""

_RANKS = {kind: rank for rank, kind in enumerate(KINDS)}
LONGEST = 4 * 1024 * 1024
"""Bytes of a handoff. One that fits must not become one that nobody reads, for the marks that it was given."""

_KEPT = 2
"""So many redacted forms of long files are kept: the same text is asked for when it is found, recorded and copied."""

_LONG = 64 * 1024
_PASSES = 12
"""What is replaced can lay open what stood next to it, so the result is looked through again. Ordinary texts need
two passes."""


class Redacted(msgspec.Struct, frozen=True):
    """A text without its secrets, and how many places of each kind were replaced."""

    text: str
    counts: Mapping[str, int]


class Redactor:
    """What counts as a secret: the rules, `patterns` of the user's, and `allow`, texts that are none."""

    def __init__(self, patterns: Sequence[str] = (), allow: Sequence[str] = ()) -> None:
        self._patterns = tuple(re.compile(one) for one in patterns)
        self._allow = tuple(one for one in allow if one)
        self._forms: dict[bytes, bytes] = {}

    def redact(self, text: str) -> Redacted:
        """`text` with `[REDACTED:<kind>]` in place of each secret. Applied to its own result it changes nothing."""
        counts: Counter[str] = Counter()
        for _ in range(_PASSES):
            spans = self._spans(text)
            if not spans:
                break
            counts.update(span.kind for span in spans)
            text = _replaced(text, spans)
        return Redacted(text, dict(counts))

    def places(self, text: str) -> list[tuple[int, str]]:
        """Where in `text` secrets begin, and of which kind each is."""
        return [(span.start, span.kind) for span in self._spans(text)]

    def redact_file(self, data: bytes, limit: int = LONGEST) -> bytes:
        """The redacted form of a file's text: the same for the same bytes, so that a copy of it is known again.

        Where the marks make it longer than `limit` bytes, and it was not before, it ends behind a whole line, and
        says so.
        """
        if len(data) < _LONG:
            return self._form(data, limit)
        digest = hashlib.sha256(data).digest()
        form = self._forms.pop(digest, None)
        self._forms[digest] = self._form(data, limit) if form is None else form
        if len(self._forms) > _KEPT:
            del self._forms[next(iter(self._forms))]
        return self._forms[digest]

    def _form(self, data: bytes, limit: int) -> bytes:
        text = self.redact(data.decode("utf-8", "replace")).text
        form = text.encode("utf-8", "replace")
        return _ended(form, limit, len(text)) if len(form) > limit >= len(data) else form

    def extents(self, text: str) -> list[tuple[int, int]]:
        """Where the secrets in `text` are that one look finds: (start, end), ascending and apart."""
        return [(span.start, span.end) for span in self._spans(text)]

    def redact_value(self, value: Any) -> tuple[Any, Mapping[str, int]]:
        """Decoded JSON with each of its strings redacted; the key counts as the name of a value."""
        counts: Counter[str] = Counter()
        return self._walked(value, "", counts), dict(counts)

    def redact_json(self, text: str) -> Redacted:
        """A document of JSON, decoded, redacted and written again if it holds a secret. Members with one key are
        all looked at. Raises ValueError where it is no JSON, RecursionError where it is too deep."""
        value, counts = self.redact_value(json.loads(text, object_pairs_hook=_Members))
        if counts:
            text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return Redacted(text, counts)

    def _walked(self, value: Any, key: str, counts: Counter[str]) -> Any:
        if isinstance(value, str):
            return self._named(value, key, counts)
        if isinstance(value, _Members):
            return self._members(value, counts)
        if isinstance(value, list):
            return [self._walked(one, key, counts) for one in value]
        if isinstance(value, dict):
            return self._members(list(value.items()), counts)
        if isinstance(value, int) and not isinstance(value, bool) and kind_of(key) == "password":
            return self._named(str(value), key, counts) if value >= 10 ** (SHORTEST - 1) else value
        return value

    def _members(self, value: list[tuple[Any, Any]], counts: Counter[str]) -> dict[Any, Any]:
        members, known = [], dict(value)
        for key, one in value:
            safe = self._named(key, "", counts) if isinstance(key, str) else key
            name = str(known.get("name") or known.get("key") or "") if key == "value" else str(key)
            members.append((safe, self._walked(one, name, counts)))
        return _apart(members)

    def _named(self, text: str, key: str, counts: Counter[str]) -> str:
        """`text` as the value of `key`."""
        kind = kind_of(key)
        if kind and secret_in_quotes(text) and not MARKER.search(text) and text not in self._allow:
            # A shape that is known names it better.
            kinds = [
                *(span.kind for span in self._spans(text) if (span.start, span.end) == (0, len(text))),
                kind,
            ]
            counts[kinds[0]] += 1
            return f"[REDACTED:{kinds[0]}]"
        line = f"{key}: {text}" if key.lower() in _HEADERS else text
        found = self.redact(line)
        counts.update(found.counts)
        return found.text.removeprefix(f"{key}: ") if line is not text else found.text

    def _spans(self, text: str) -> list[Span]:
        """What is to be replaced, ascending and apart."""
        raw = chain(
            _found(text), (Span(*one.span(), USER) for each in self._patterns for one in each.finditer(text))
        )
        found = [span for span in (outside_of_escapes(text, one) for one in raw) if span.start < span.end]
        if not found:
            return []
        found.sort()
        return self._outside_of_markers(text, united(self._wanted(text, found), _RANKS))

    def _wanted(self, text: str, spans: Sequence[Span]) -> list[Span]:
        """Without what is allowed, and what begins in an image by chance."""
        allowed = Places(_merged(chain.from_iterable(_occurrences(text, one) for one in self._allow)))
        images = Places(_merged(quiet(text)))
        return [
            span
            for span in spans
            if not any(
                start <= span.start and span.end <= end for start, end in allowed.overlapping(*span[:2])
            )
            and not (span.core and text[slice(*span.core)] in self._allow)
            and (span.kind == USER or not any(at < span.start for at, _ in images.overlapping(*span[:2])))
        ]

    def _outside_of_markers(self, text: str, spans: Sequence[Span]) -> list[Span]:
        """A marker is replaced with all that stands round it, or not at all."""
        markers = Places(one.span() for one in MARKER.finditer(text))
        result = []
        for span in spans:
            inside = markers.overlapping(span.start, span.end)
            if not inside:
                result.append(span)
                continue
            start, end = min(span.start, inside[0][0]), max(span.end, inside[-1][1])
            if re.search(r"\w", MARKER.sub("", text[start:end])):
                result.append(Span(start, end, span.kind, span.quote))
        return united(result, _RANKS)


def _ended(form: bytes, limit: int, characters: int) -> bytes:
    """The lines that fit, and the mark of a cut. Of one endless line the words that fit: a mark holds no blank."""
    end = f"… [cut, {characters} characters]\n".encode()
    head = form[: limit - len(end)]
    near = max(len(head) - _LONG, 0)
    kept = head.rfind(b"\n", near) + 1 or head.rfind(b" ", near) + 1 or head.rfind(b"\n") + 1
    return head[:kept] + end


class _Members(list[tuple[Any, Any]]):
    """The members of an object of JSON as they stand there: two can have one key."""


def _apart(members: Sequence[tuple[Any, Any]]) -> dict[Any, Any]:
    """An object of JSON that loses none of its members where two have one key: the second is called `key_2`."""
    result: dict[Any, Any] = {}
    same: Counter[Any] = Counter()
    for key, value in members:
        name = key
        while name in result:
            same[key] += 1
            name = f"{key}_{same[key] + 1}"
        result[name] = value
    return result


_RULES = (*TOKENS, *CONTEXTS)
_HEADERS = frozenset(("authorization", "proxy-authorization", "cookie", "set-cookie"))


def _found(text: str) -> Iterator[Span]:
    folded = lowered(text)
    yield from private_keys(text)
    for rule in _RULES:
        compared = folded if rule.fold else text
        for hint in rule.hints:
            if hint in compared:
                yield from _by_rule(rule, text)
                break
    yield from assigned(text, folded)


def _by_rule(rule: Rule, text: str) -> Iterator[Span]:
    if rule.gate is not None and rule.gate.search(text) is None:
        return
    group: str | int = "s" if "s" in rule.patterns[0].groupindex else 0
    for found in chain.from_iterable(pattern.finditer(text) for pattern in rule.patterns):
        if rule.judge is None or rule.judge(found):
            start, end = found.span(group)
            colon = text.find(":", start, end) if rule.kind == "url-credentials" else -1
            yield Span(start, end, rule.kind, core=(colon + 1, end) if colon >= 0 else None)


def _occurrences(text: str, literal: str) -> Iterator[tuple[int, int]]:
    at = text.find(literal)
    while at >= 0:
        yield at, at + len(literal)
        at = text.find(literal, at + 1)


def _merged(places: Iterator[tuple[int, int]] | Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """In order, without those that lie in another."""
    result: list[tuple[int, int]] = []
    for start, end in sorted(places, key=lambda place: (place[0], -place[1])):
        if not result or end > result[-1][1]:
            result.append((start, end))
    return result


def _replaced(text: str, spans: Sequence[Span]) -> str:
    parts = []
    at = 0
    for span in spans:
        parts += [text[at : span.start], f"{span.quote}[REDACTED:{span.kind}]{span.quote}"]
        at = span.end
    return "".join((*parts, text[at:]))
