"""Text to safe text. Pure."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from swarmmemd.redact.assigned import assigned, holds_a_name, kind_of
from swarmmemd.redact.blocks import KIND as PRIVATE_KEY
from swarmmemd.redact.blocks import holds_a_key, private_keys, quiet
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

_SHORTEST_NUMBER = 10 ** (SHORTEST - 1)
_SHORTEST = 7
"""Characters. `://:x@y` is the shortest text with a secret in it that a rule of ours finds."""

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
        return self.redact_by(rules_in(text), text)

    def redact_by(self, rules: Sequence[Rule], text: str) -> Redacted:
        """The same, where it is known which rules may find something in `text`."""
        spans = self._spans(text, rules)
        if not spans:
            return Redacted(text, {})
        counts: Counter[str] = Counter()
        for _ in range(_PASSES):
            counts.update(span.kind for span in spans)
            text = _replaced(text, spans)
            rules = _rules_after(rules, spans, text)
            spans = self._spans(text, rules)
            if not spans:
                break
        return Redacted(text, dict(counts))

    def places(self, text: str) -> list[tuple[int, str]]:
        """Where in `text` secrets begin, and of which kind each is."""
        return [(span.start, span.kind) for span in self._spans(text, rules_in(text))]

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
        return [(span.start, span.end) for span in self._spans(text, rules_in(text))]

    def redact_value(self, value: Any) -> tuple[Any, Mapping[str, int]]:
        """Decoded JSON with each of its strings redacted; the key counts as the name of a value."""
        walk = _Walk(Counter(), None)
        return self._walked(value, "", walk), dict(walk.counts)

    def redact_json(self, text: str, rules: Sequence[Rule] | None = None) -> Redacted:
        """A document of JSON, decoded, redacted and written again if it holds a secret. Members with one key are
        all looked at. Raises ValueError where it is no JSON, RecursionError where it is too deep. `rules`: those
        that may find something in it, where that is known of many documents at once."""
        walk = _Walk(Counter(), rules)
        value = self._walked(_DOCUMENTS.decode(text), "", walk)
        if walk.counts:
            text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return Redacted(text, dict(walk.counts))

    def may_hold(self, text: str, rules: Sequence[Rule]) -> bool:
        """Whether a secret may be in the documents of JSON in `text`, whose rules are `rules`. Where it is certain
        that none is, nothing has to be decoded."""
        sure = not rules and not self._patterns and "\\u" not in text and not holds_a_key(text)
        return not sure or holds_a_name(lowered(text))

    def _walked(self, value: Any, key: str, walk: "_Walk") -> Any:
        if isinstance(value, str):
            return self._named(value, key, walk)
        if isinstance(value, _Members):
            return self._members(value, walk)
        if isinstance(value, list):
            return [self._walked(one, key, walk) for one in value]
        if isinstance(value, dict):
            return self._members(list(value.items()), walk)
        if isinstance(value, int) and value >= _SHORTEST_NUMBER and kind_of(key) == "password":
            return self._named(str(value), key, walk)
        return value

    def _members(self, value: list[tuple[Any, Any]], walk: "_Walk") -> dict[Any, Any]:
        members, known = [], dict(value)
        for key, one in value:
            safe = self._named(key, "", walk) if isinstance(key, str) else key
            name = str(known.get("name") or known.get("key") or "") if key == "value" else str(key)
            members.append((safe, self._walked(one, name, walk)))
        return _apart(members)

    def _named(self, text: str, key: str, walk: "_Walk") -> str:
        """`text` as the value of `key`."""
        counts = walk.counts
        kind = kind_of(key) if key else None
        if kind and secret_in_quotes(text) and not MARKER.search(text) and text not in self._allow:
            # A shape that is known names it better.
            kinds = [
                *(one.kind for one in self._spans(text, rules_in(text)) if one[:2] == (0, len(text))),
                kind,
            ]
            counts[kinds[0]] += 1
            return f"[REDACTED:{kinds[0]}]"
        line = f"{key}: {text}" if key.lower() in _HEADERS else text
        if len(line) < _SHORTEST and not self._patterns:
            return text
        found = self.redact_by(rules_in(line) if walk.rules is None else walk.rules, line)
        if not found.counts:
            return text
        counts.update(found.counts)
        return found.text.removeprefix(f"{key}: ") if line is not text else found.text

    def _spans(self, text: str, rules: Sequence[Rule]) -> list[Span]:
        """What is to be replaced, ascending and apart."""
        raw = chain(
            _found(text, rules),
            (Span(*one.span(), USER) for each in self._patterns for one in each.finditer(text)),
        )
        found = [span for span in (outside_of_escapes(text, one) for one in raw) if span.start < span.end]
        if not found:
            return []
        found.sort()
        return self._outside_of_markers(text, united(self._wanted(text, found), _RANKS))

    def _wanted(self, text: str, spans: list[Span]) -> list[Span]:
        """Without what is allowed, and what begins in an image by chance."""
        allowed = Places(_merged(chain.from_iterable(_occurrences(text, one) for one in self._allow)))
        images = Places(_merged(quiet(text)))
        if not allowed and not images:
            return spans
        return [
            span
            for span in spans
            if not any(
                start <= span.start and span.end <= end for start, end in allowed.overlapping(*span[:2])
            )
            and not (span.core and text[slice(*span.core)] in self._allow)
            and (span.kind == USER or not any(at < span.start for at, _ in images.overlapping(*span[:2])))
        ]

    def _outside_of_markers(self, text: str, spans: list[Span]) -> list[Span]:
        """A marker is replaced with all that stands round it, or not at all."""
        markers = Places(one.span() for one in MARKER.finditer(text))
        if not markers:
            return spans
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


class _Walk(NamedTuple):
    """What is found on the way through a document; the rules that are asked, if that is known."""

    counts: Counter[str]
    rules: Sequence[Rule] | None


class _Members(list[tuple[Any, Any]]):
    """The members of an object of JSON as they stand there: two can have one key."""


_DOCUMENTS = json.JSONDecoder(object_pairs_hook=_Members)


def _apart(members: Sequence[tuple[Any, Any]]) -> dict[Any, Any]:
    """An object of JSON that loses none of its members where two have one key: the second is called `key_2`."""
    result = dict(members)
    if len(result) == len(members):
        return result
    result.clear()
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


def rules_in(text: str) -> tuple[Rule, ...]:
    """The rules that may find something in `text`: of most none of the hints stands there."""
    folded = lowered(text)
    return tuple([rule for rule in _RULES if _hinted(rule, folded if rule.fold else text)])


def rules_in_json(text: str) -> tuple[Rule, ...]:
    """Those for any text in the documents of JSON in `text`."""
    if "\\u" in text or "\\/" in text:
        # What is written as an escape stands beside it: both can be what a hint means.
        text = f"{text}\n{_ESCAPED.sub(_character, text)}"
    return rules_in(text)


def _hinted(rule: Rule, compared: str) -> bool:
    if rule.stem not in compared:
        return False
    for hint in rule.hints:
        if hint in compared:
            return rule.gate is None or rule.gate.search(compared) is not None
    return False


def _rules_after(rules: Sequence[Rule], spans: Sequence[Span], text: str) -> Sequence[Rule]:
    """Those for `text`, what became of a text for which `rules` were, when the spans were replaced.

    What is replaced only goes: a hint that was not there before is one within a marker, as none holds a bracket.
    """
    if any(span.quote for span in spans):
        return rules_in(text)
    new = (rule for kind in {span.kind for span in spans} for rule in _rules_in_marker(kind))
    return tuple(dict.fromkeys((*rules, *new)))


@cache
def _rules_in_marker(kind: str) -> tuple[Rule, ...]:
    return rules_in(f"[REDACTED:{kind}]")


_ESCAPED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|/)")


def _character(escape: re.Match[str]) -> str:
    return chr(int(escape[1], 16)) if escape[1] else "/"


def _found(text: str, rules: Sequence[Rule]) -> Iterator[Span]:
    yield from private_keys(text)
    for rule in rules:
        yield from _by_rule(rule, text)
    yield from assigned(text, lowered(text))


def _by_rule(rule: Rule, text: str) -> Iterator[Span]:
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
