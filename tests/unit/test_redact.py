"""Redaction: what it promises for every text, the user's own patterns, and decoded JSON."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmmemd.redact import KINDS, Redacted, Redactor, files
from swarmmemd.redact.files import safe_lines
from swarmmemd.redact.rules import CONTEXTS, TOKENS
from tests.support.cases import expected
from tests.support.secrets import ALNUM, B64, HARMLESS_PIECES, POSITIVE_PIECES, made

REDACTOR = Redactor()
GITHUB = "".join(("gh", "p_", "A1b2C3d4E5f6G7h8", "I9j0K1l2M3n4O5p6Q7r8"))
PASSWORD = "".join(("hun", "ter", "27"))


def one_of(texts: list[str]) -> st.SearchStrategy[str]:
    """By its place: the texts are too long to be shown in a strategy."""
    return st.integers(0, len(texts) - 1).map(lambda at: texts[at])


SEPARATORS = st.sampled_from(
    [
        "",
        " ",
        "\n",
        "\\n",
        "\\",
        '"',
        '\\"',
        "'",
        "`",
        "=",
        ": ",
        ":",
        ",",
        ";",
        "&",
        "/",
        "@",
        "://",
        "-",
        "_",
        ".",
        "[",
        "]",
        "{",
        "}",
        "$",
        "\\\\",
        "\r\n",
        "\t",
        "password",
        "token",
        '"secret": ',
        "--password ",
        "Cookie: a=",
        "Bearer ",
        '{"a":"',
        '"}',
        "：",
        "é",
        "\x00",
        "[REDACTED:",
        "[REDACTED:jwt]",
        "%3D",
        "\\u003d",
        "value: ",
        "**",
        "curl -u a:",
    ]
)
PIECES = st.one_of(SEPARATORS, one_of(POSITIVE_PIECES), one_of(HARMLESS_PIECES), st.text(max_size=8))
TEXTS = st.lists(PIECES, max_size=14).map("".join)
KEYS = st.sampled_from(
    ["password", "DB_PASSWORD", "token", "note", "Cookie", "Authorization", "name", "value", "a"]
)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), TEXTS)
DECODED = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.one_of(KEYS, TEXTS), inner, max_size=4)
    ),
    max_leaves=8,
)


@settings(deadline=None, max_examples=400)
@given(TEXTS)
def test_any_text_is_redacted_once_and_for_all(text: str) -> None:
    once = REDACTOR.redact(text)
    again = REDACTOR.redact(once.text)
    assert (again.text, again.counts) == (once.text, {})
    assert set(once.counts) <= set(KINDS)
    assert bool(once.counts) == (once.text != text)
    assert REDACTOR.redact(text) == once


@settings(deadline=None, max_examples=300)
@given(DECODED, st.sampled_from([None, 1]), st.booleans())
def test_json_stays_json(value: Any, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    json.loads(REDACTOR.redact(text).text)
    nested = json.dumps({"line": text}, ensure_ascii=ascii_only)
    json.loads(REDACTOR.redact(nested).text)


@settings(deadline=None, max_examples=200)
@given(DECODED)
def test_decoded_json_keeps_its_shape_and_is_redacted_once(value: Any) -> None:
    safe, counts = REDACTOR.redact_value(value)
    assert type(safe) is type(value) or isinstance(safe, str)
    again, none = REDACTOR.redact_value(safe)
    assert (again, none) == (safe, {})
    assert bool(counts) == (safe != value)


def test_the_counts_say_how_many_places_were_replaced() -> None:
    found = REDACTOR.redact(f"{GITHUB}\n{GITHUB}\npassword={PASSWORD}")
    assert found.text == "[REDACTED:github-token]\n[REDACTED:github-token]\npassword=[REDACTED:password]"
    assert found.counts == {"github-token": 2, "password": 1}


def test_the_secret_of_the_handoff_case() -> None:
    secret = "".join(expected("handoffs/ranks/redacted-in-shared")["secret"])
    assert REDACTOR.redact(f"- `export TOKEN={secret}`").text == "- `export TOKEN=[REDACTED:github-token]`"


def test_a_known_shape_names_what_a_keyword_found_too() -> None:
    assert REDACTOR.redact(f'"password": "{GITHUB}!and more"').text == '"password": "[REDACTED:github-token]"'


def test_a_number_in_json_gets_quotes() -> None:
    found = REDACTOR.redact('{"password": 12345678, "a": "{\\"pin\\": 1, \\"password\\": 87654321}"}')
    assert json.loads(json.loads(found.text)["a"]) == {"pin": 1, "password": "[REDACTED:password]"}
    assert json.loads(found.text)["password"] == "[REDACTED:password]"


def test_a_longer_token_than_its_issuer_makes_today_goes_whole() -> None:
    assert REDACTOR.redact(f"{GITHUB}{GITHUB[4:]}_x9").text == "[REDACTED:github-token]"


@pytest.mark.parametrize(
    "text",
    [
        '{"password: ": null, "x": 1}',
        '{"\\"secret\\": ": null, "password": null}',
        '["password", "value=", null, "x"]',
        '["--token","",123456,"x"]',
        '["run --token ", "xx", 1]',
        '{"Authorization": 1.0000000000000002e+16}',
    ],
)
def test_a_string_that_ends_behind_a_sign_is_no_value(text: str) -> None:
    assert REDACTOR.redact(text).text == text


def test_an_escape_is_never_cut() -> None:
    assert REDACTOR.redact("C:\\" + "n" + "pm_" + ALNUM[:36]).text == "C:\\n[REDACTED:npm-token]"


IN_JSON = (
    f"curl -u bob:{PASSWORD} https://h",
    f"machine h login u password {PASSWORD}",
    f"machine h\n  login u\n  password {PASSWORD}",
    f"default login u password {PASSWORD}",
    f"Cookie: sid={PASSWORD}",
    f"pw={PASSWORD}",
    f"pass: {PASSWORD}",
    f"--token {PASSWORD}",
    f"mysql -u root -p{PASSWORD} main",
    f"sshpass -p {PASSWORD} ssh x",
    f"redis-cli -a {PASSWORD}",
    f"localhost:5432:main:bob:{PASSWORD}",
    f"bearer {PASSWORD * 4}",
    f"name: DB_PASSWORD\nvalue: {PASSWORD}",
    f"https://bob:{PASSWORD}@h/x",
    f"https://h/?a=b&sig={PASSWORD * 4}",
    f"https://hooks.slack.com/services/T0001/B0001/{PASSWORD * 3}",
    f"<password>{PASSWORD}</password>",
)
ESCAPES: tuple[tuple[str, ...], ...] = ((), ("/",), ("<", ">", "&"))
"""What some programs escape in JSON beside what must be."""


def encoded(text: str, more: tuple[str, ...]) -> str:
    found = json.dumps(text)
    for one in more:
        found = found.replace(one, "\\/" if one == "/" else f"\\u{ord(one):04x}")
    return found


@pytest.mark.parametrize("secret", IN_JSON)
@pytest.mark.parametrize("more", ESCAPES, ids="".join)
@pytest.mark.parametrize("before", ["a\n", "x\r\n", "\t"], ids=repr)
def test_an_escape_of_json_before_a_word_hides_nothing(
    secret: str, more: tuple[str, ...], before: str
) -> None:
    text = f"{before}{secret}\nmore"
    for _ in range(4):
        safe = REDACTOR.redact(text).text
        assert PASSWORD not in safe
        text = f'{{"line":{encoded(text, more)}}}'
        json.loads(REDACTOR.redact(text).text)


@pytest.mark.parametrize("mark", ["- ", "* ", "> ", "1. ", "12: ", "// ", "| ", "• ", "> - ", "- [ ] "])
@pytest.mark.parametrize("quote", ['"', "'", "", "`"])
@pytest.mark.parametrize("ends", [(True, True), (True, False), (False, True)])
def test_a_private_key_as_a_list_of_lines(mark: str, quote: str, ends: tuple[bool, bool]) -> None:
    rng = random.Random(3)
    body = [*(made(rng, B64, 64) for _ in range(6)), f"{made(rng, B64, 20)}=="]
    head, foot = (f"-----{word} PRIVATE KEY-----" for word in ("BEGIN", "END"))
    lines = [*([head] if ends[0] else []), *body, *([foot] if ends[1] else [])]
    text = "The key:\n" + "\n".join(f"{mark}{quote}{line}{quote}" for line in lines) + "\nwas found"
    for one in (text, json.dumps([text]), json.dumps([json.dumps(text)])):
        found = REDACTOR.redact(one)
        assert [line for line in body if line in found.text] == []
        assert "The key:" in found.text
        assert "was found" in found.text
        assert REDACTOR.redact(found.text).text == found.text


@pytest.mark.parametrize("sign", ["==", "===", "!=", "!=="])
def test_a_comparison_is_no_assignment(sign: str) -> None:
    for text in (f'"token" {sign} "refresh"', f"if (kind {sign} 'password' || token {sign} 'refresh_token')"):
        assert REDACTOR.redact(text).text == text
    for text in (f'if password {sign} "{PASSWORD}":', f'user["password"] {sign} "{PASSWORD}x9Q"'):
        assert PASSWORD not in REDACTOR.redact(text).text


class TestFiles:
    """Bytes of a file, as copies of handoffs are made of them."""

    SHORT = b"pw=" + PASSWORD.encode() + b" and more\n"

    def test_a_form_that_fits_is_whole(self) -> None:
        assert REDACTOR.redact_file(self.SHORT) == b"pw=[REDACTED:password] and more\n"
        assert REDACTOR.redact_file(b"caf\xe9") == "caf\ufffd".encode()

    @pytest.mark.parametrize("text", [SHORT * 50, SHORT.replace(b"\n", b" ") * 50])
    def test_one_that_its_marks_make_too_long_ends_and_says_so(self, text: bytes) -> None:
        form = REDACTOR.redact_file(text, limit=len(text))
        length = len(REDACTOR.redact(text.decode()).text)
        assert len(text) - 80 < len(form) <= len(text)
        assert form.endswith(text[-1:] + f"… [cut, {length} characters]\n".encode())
        assert form.count(b"[REDACTED:") == form.count(b"[REDACTED:password]") > 20
        assert REDACTOR.redact_file(form) == form

    def test_one_that_was_too_long_before_is_not_shortened(self) -> None:
        assert REDACTOR.redact_file(self.SHORT * 9, limit=5) == REDACTOR.redact_file(self.SHORT * 9)

    def test_a_long_text_is_looked_through_once(self) -> None:
        looked: list[int] = []

        class Counting(Redactor):
            def redact(self, text: str) -> Redacted:
                looked.append(len(text))
                return super().redact(text)

        mine = Counting()
        one, other = (self.SHORT + b"word " * 20_000 + name for name in (b"a", b"b"))
        forms = [mine.redact_file(text) for text in (one, other, one, one, other)]
        assert len(looked) == 2
        assert forms[0] == forms[2] == forms[3] != forms[1] == forms[4]


class TestPatterns:
    """Of the user's own."""

    def test_a_match_is_a_secret(self) -> None:
        found = Redactor(patterns=[r"ACME-\d{4}", "(?i)orchard"]).redact("ACME-1234 in the Orchard, ACME-12")
        assert found.text == "[REDACTED:user] in the [REDACTED:user], ACME-12"
        assert found.counts == {"user": 2}

    @pytest.mark.parametrize("pattern", [r"\w+", ".+", r"\[", "REDACTED", ":", "user", "(?s).*", "a*"])
    def test_markers_are_not_matched(self, pattern: str) -> None:
        mine = Redactor(patterns=[pattern])
        once = mine.redact("aaa bbb\n[REDACTED:jwt] ccc")
        again = mine.redact(once.text)
        assert (again.text, again.counts) == (once.text, {})

    def test_a_bad_one_is_refused_at_once(self) -> None:
        with pytest.raises(re.error):
            Redactor(patterns=["("])


class TestAllowed:
    """Texts that are none."""

    def test_never_replaced(self) -> None:
        mine = Redactor(allow=[GITHUB, PASSWORD, ""])
        for text in (
            f"export TOKEN={GITHUB}",
            f'"password": "{PASSWORD}"',
            f"https://bob:{PASSWORD}@example.org",
            f"curl -u bob:{PASSWORD} x",
            f"Authorization: Bearer {GITHUB}",
        ):
            assert mine.redact(text).text == text
        assert mine.redact_value({"password": PASSWORD}) == ({"password": PASSWORD}, {})

    def test_the_same_beginning_is_not_enough(self) -> None:
        assert Redactor(allow=[GITHUB]).redact(f"{GITHUB}x").text == "[REDACTED:github-token]"

    def test_before_the_user_s_own_patterns(self) -> None:
        assert (
            Redactor(patterns=[r"ACME-\d+"], allow=["ACME-1"]).redact("ACME-1 ACME-2").text
            == "ACME-1 [REDACTED:user]"
        )


class TestDecoded:
    """JSON that was decoded already."""

    @pytest.mark.parametrize(
        ("value", "safe"),
        [
            ({"a": [f"x {GITHUB}", 1, None, True]}, {"a": ["x [REDACTED:github-token]", 1, None, True]}),
            ({"password": PASSWORD}, {"password": "[REDACTED:password]"}),
            (
                {"password": 12345678, "tokens": 12345678},
                {"password": "[REDACTED:password]", "tokens": 12345678},
            ),
            ({"headers": {"Cookie": [f"sid={PASSWORD}"]}}, {"headers": {"Cookie": ["[REDACTED:cookie]"]}}),
            ({"authorization": f"Bearer {PASSWORD}x9"}, {"authorization": "Bearer [REDACTED:auth-header]"}),
            (
                [{"name": "DB_PASSWORD", "value": PASSWORD}],
                [{"name": "DB_PASSWORD", "value": "[REDACTED:password]"}],
            ),
            ({"token": GITHUB}, {"token": "[REDACTED:github-token]"}),
            ({GITHUB: 1, GITHUB + "x": 2}, {"[REDACTED:github-token]": 1, "[REDACTED:github-token]_2": 2}),
            ({"sessionKey": "agent:main:swarm-builder-1"}, {"sessionKey": "agent:main:swarm-builder-1"}),
            ("plain", "plain"),
            (12, 12),
        ],
    )
    def test_strings_are_redacted(self, value: Any, safe: Any) -> None:
        assert REDACTOR.redact_value(value)[0] == safe

    def test_members_with_one_key_are_all_looked_at(self) -> None:
        found = REDACTOR.redact_json(
            f'{{"a":"x \\u0067{GITHUB[1:]}","a_2":1,"a":"y","a":{{"b":"{GITHUB}","b":0}}}}'
        )
        assert found.text == (
            '{"a":"x [REDACTED:github-token]","a_2":1,"a_3":"y","a_4":{"b":"[REDACTED:github-token]","b_2":0}}'
        )
        assert found.counts == {"github-token": 2}

    def test_a_key_that_stands_there_twice_still_names_its_values(self) -> None:
        text = ",".join(f'"Cookie":"sid={PASSWORD}","password":"{PASSWORD}"' for _ in range(150))
        found = REDACTOR.redact_json(f"{{{text}}}")
        assert PASSWORD not in found.text
        assert found.counts == {"cookie": 150, "password": 150}

    @pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', "[1.50, NaN]", '"\\ud800"'])
    def test_json_without_a_secret_stays_as_it_is_written(self, text: str) -> None:
        assert REDACTOR.redact_json(text).text == text

    def test_no_json_is_refused(self) -> None:
        with pytest.raises(ValueError, match="Expecting"):
            REDACTOR.redact_json('{"a":')

    def test_very_many_members_with_one_key_take_no_more_than_their_number(self) -> None:
        many = ",".join('"a":1' for _ in range(50_000))
        assert REDACTOR.redact_json(f'{{{many},"token":"{GITHUB}"}}').counts == {"github-token": 1}

    def test_the_value_given_is_not_changed(self) -> None:
        value = {"a": [GITHUB]}
        REDACTOR.redact_value(value)
        assert value == {"a": [GITHUB]}


HOSTILE = (
    "\\",
    "\\/",
    "hooks.slack.com/services/",
    "curl\\n",
    "<\\",
    "\\u003cpassword\\u003e",
    "<token>a</",
    ":\\/\\/",
    "\\n-u a:b",
    "\\npw=",
    "sk-",
    "sk-ant-",
    "eyJ",
    "eyJ.",
    "ey-",
    "a.",
    "A",
    "a",
    "/",
    "+",
    "=",
    ":",
    "\\",
    '\\"',
    '"',
    "'",
    "-u a:b ",
    "curl -u a:",
    "password",
    "password=",
    'password="',
    "password='\"",
    "password: ",
    '"password": "',
    "token: x ",
    "secret=a,b=",
    "pat",
    "-----BEGIN PRIVATE KEY-----",
    "-----END PRIVATE KEY-----",
    "-----BEGIN CERTIFICATE-----",
    "-----BEGIN ",
    "-----BEGIN A A A ",
    "-----BEGIN PRIVATE KEY-----\n" + "A1" * 20 + "\n",
    "\n" + "A1" * 20,
    "\n- " + "A1" * 20 + "-----END PRIVATE KEY-----",
    "-----BEGIN PRIVATE KEY-----" + "- 1. " * 30,
    "LS0tL",
    "LS0tLS1CRUdJTi" + "A" * 60 + "\n",
    "Private-Lines: 1\n",
    "PuTTY-User-Key-File-3:",
    "://",
    "://a:",
    "a@",
    "://a:b@",
    "Cookie: a=",
    'Cookie: a="b"',
    "=",
    '="b"',
    "Authorization: Bearer ",
    "bearer ",
    "machine a login b ",
    "machine ",
    "password ",
    "mysql ",
    "mysql -",
    "docker login -",
    "a:1:",
    "localhost:5432:a:b:",
    "https://hooks.slack.com/services/",
    "data:;base64,",
    "data:a/b;a=b;",
    "[REDACTED:",
    "[REDACTED:jwt]",
    "<password>",
    "<password>a",
    "name: password\n",
    "T3BlbkFJ",
    "sk-T3BlbkFJ",
    ".atlasv1.",
    "Q~",
    "aaa8Q~",
    "1:A",
    "-us1",
    "aws secret ",
    "aws",
    "aws_secret_access_key=",
    "%3D",
    "\\n",
    "\\u003d",
    "x@",
    "password: a: b=",
    "value: ",
    ", ",
    "sig=",
    "&sig=",
    "password:a b c =",
    "密码：",
    "\x1b[32m",
    "$",
    "${",
    "password=${",
    "password=(",
    "password=a(",
    "password=a/a",
    "password=a.a",
)


@pytest.mark.parametrize("piece", HOSTILE, ids=repr)
@pytest.mark.parametrize("end", ["", "!1"])
def test_long_hostile_texts_take_no_more_than_their_length(piece: str, end: str) -> None:
    """Time that grew with the square of the length would be minutes."""
    text = piece * (60_000 // len(piece)) + end
    once = REDACTOR.redact(text)
    assert len(once.text) < 10 * len(text)


def test_every_kind_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "redaction.md").read_text()
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    assert set(re.findall(r"`([a-z-]+)`", " ".join(rows))) == set(KINDS)


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("pw=" * 9000 + "Hunter22", "Hunter22"),
        (f"subscription_key={PASSWORD}; xapi-key={PASSWORD}", PASSWORD),
        (f'{{"password": 12345678, "a": {{"auth": "{"QUJD" * 6}"}}}}', "12345678"),
        (f"api_key={PASSWORD} " * 3 + f"secret key={PASSWORD}", PASSWORD),
    ],
)
def test_what_is_beside_a_secret_is_still_found(text: str, hidden: str) -> None:
    assert hidden not in REDACTOR.redact(text).text


def test_no_hint_of_a_rule_holds_what_a_marker_begins_or_ends_with() -> None:
    """Else the look through a redacted text would have to look for all of them anew."""
    assert [hint for rule in (*TOKENS, *CONTEXTS) for hint in rule.hints if set(hint) & set("[]")] == []


def test_a_key_over_broken_lines_of_a_file_of_records() -> None:
    """Lines that are no records are one text; the records round them stay as they are."""
    head, foot = (f"-----{word} PRIVATE KEY-----" for word in ("BEGIN", "END"))
    body = "A1b2" * 16
    record = json.dumps({"type": "note", "summary": "laid"}) + "\n"
    data = f"{record}{head}\n{body}\n{foot}\n{record}".encode()
    safe = safe_lines(REDACTOR, data).decode()
    assert body not in safe
    assert safe.startswith(record)
    assert safe.endswith(record)


# Records of an archive

LINES = st.lists(
    st.one_of(
        TEXTS,
        TEXTS.map(lambda text: json.dumps({"a": text, "token": 1})),
        st.sampled_from(("", "{}", "[1]", "7")),
    ),
    max_size=8,
)


@given(LINES, st.sampled_from(("\n", "\r", "\r\n")), st.integers(0, 200))
@settings(max_examples=200)
def test_a_file_of_records_is_the_same_in_portions(lines: list[str], end: str, portion: int) -> None:
    data = end.join(lines).encode("utf-8", "replace")
    whole = safe_lines(REDACTOR, data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "PORTION", portion)
        assert b"".join(files.safe_portions(REDACTOR, data)) == whole


def test_an_escape_hides_no_hint_in_a_record() -> None:
    hidden = "".join(f"\\u{ord(c):04x}" for c in GITHUB)
    login = '{"b":"https:\\/\\/me:Hunter22pass@host"}'
    safe = safe_lines(REDACTOR, f'{{"a":"{hidden}"}}\n{login}\n{{}}\n'.encode())
    assert [json.loads(line) for line in safe.splitlines()] == [
        {"a": "[REDACTED:github-token]"},
        {"b": "https://[REDACTED:url-credentials]@host"},
        {},
    ]


def test_records_without_a_secret_stay_byte_for_byte_beside_one_with() -> None:
    plain = b'{"k": 1, "k": "\\u0061",  "l": [true]}\n'
    safe = safe_lines(REDACTOR, plain + f'{{"a":"{GITHUB}","k":1,"k":2}}\n'.encode() + plain)
    assert safe.startswith(plain)
    assert safe.endswith(plain)
    assert GITHUB.encode() not in safe
    assert b'"k":1' in safe
    assert b":2}" in safe


@pytest.mark.parametrize(
    "text",
    [
        "password=" * 40 + " " + "token: null, " * 40,
        "api_key=" * 3000 + "abc123def456 api_key=",
        "pw=a/" * 40 + "b pw=Hunter22 ",
        "--token=letters --api-key letters",
        "token: x; api_key: Optional[str] = AbCdEfGhIj",
    ],
)
def test_names_in_front_of_names_hide_no_secret(text: str) -> None:
    safe = REDACTOR.redact(text).text
    for secret in ("abc123def456", "Hunter22", "token=letters", "AbCdEfGhIj"):
        assert secret not in safe
