"""Every kind that is documented is found wherever it stands, and nothing is taken for a secret that is none."""

import json
import random
from collections import Counter, defaultdict

import pytest

from swarmmemd.redact import KINDS, Redactor
from tests.support.secrets import ALNUM, HEX, Positive, harmless, made, positives, tokens

REDACTOR = Redactor()
ROWS = range(1, 39)
POSITIVES = positives()
HARMLESS = harmless()


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@pytest.fixture(scope="module")
def by_row() -> dict[int, list[Positive]]:
    rows: dict[int, list[Positive]] = defaultdict(list)
    for one in POSITIVES:
        rows[one.row].append(one)
    return rows


@pytest.mark.parametrize("row", ROWS)
def test_every_secret_is_gone_and_what_stood_round_it_is_there(
    row: int, by_row: dict[int, list[Positive]]
) -> None:
    assert len({one.secret for one in by_row[row]}) >= 3
    for one in by_row[row]:
        found = REDACTOR.redact(one.text)
        assert one.secret not in found.text, one
        assert one.kind in found.counts, one
        assert [kept for kept in one.keeps if kept not in found.text] == [], (one, found)
        assert is_json(found.text) or not is_json(one.text), (one, found)


@pytest.mark.parametrize("row", ROWS)
def test_twice_is_once(row: int, by_row: dict[int, list[Positive]]) -> None:
    for one in by_row[row]:
        once = REDACTOR.redact(one.text)
        again = REDACTOR.redact(once.text)
        assert (again.text, again.counts) == (once.text, {}), one


def test_a_known_shape_is_found_behind_any_sign() -> None:
    one_of_each = {(one.kind, one.secret[:4]): one for one in tokens()}
    for one in one_of_each.values():
        for before in ("https://host/key/", "https://a.io/v1/", "/", "a_", "x-", "+", ".", "~", "(", "\\n"):
            # `cache-key-` and a hash is the name of a cache.
            if one.kind == "mailgun-key" and before in ("a_", "x-"):
                continue
            safe = REDACTOR.redact(f"{before}{one.secret}/x").text
            assert one.secret not in safe, (before, one)


def test_chance_within_base64_is_none() -> None:
    blob = made(random.Random(7), ALNUM, 60)
    for text in (
        f"{blob}/EAAA{blob}",
        f"{blob}+ABSK{blob}{blob}",
        f"cache-key-{made(random.Random(8), HEX, 32)}",
    ):
        assert REDACTOR.redact(text).text == text


EMBEDDED = (
    lambda text: text,
    lambda text: f"- `{text}`",
    lambda text: f"before\n{text}\nafter",
    lambda text: json.dumps({"a": text, "b": 1}),
    lambda text: json.dumps({"a": json.dumps([f"x\n{text}"])}),
)


@pytest.mark.parametrize("text", HARMLESS, ids=lambda text: text[:40])
def test_harmless_texts_stay(text: str) -> None:
    for embed in EMBEDDED:
        found = REDACTOR.redact(embed(text))
        assert (found.text, found.counts) == (embed(text), {})


def test_there_are_enough_of_them() -> None:
    assert len(set(HARMLESS)) >= 150
    assert {one.kind for one in POSITIVES} == set(KINDS) - {"user"}


def test_recall_and_precision_of_each_kind() -> None:
    """Prints them: `pytest -s` shows the table."""
    found: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for one in POSITIVES:
        gone = one.secret not in REDACTOR.redact(one.text).text
        (found if gone else missed)[one.kind] += 1
    for text in HARMLESS:
        wrong.update(REDACTOR.redact(text).counts)
    for kind in sorted(set(found) | set(missed) | set(wrong)):
        recall = found[kind] / (found[kind] + missed[kind])
        precision = found[kind] / max(found[kind] + wrong[kind], 1)
        print(f"{kind:24} recall {recall:.3f}  precision {precision:.3f}  of {found[kind] + missed[kind]}")
    assert not missed
    assert not wrong
