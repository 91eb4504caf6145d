"""Texts with and without secrets, to measure redaction with. Every secret is made when the tests run, of a
beginning and of characters from a seeded generator: the repository holds nothing that looks like one."""

import base64
import json
import random
import string
from collections.abc import Callable, Iterator
from typing import NamedTuple

LOWER = string.ascii_lowercase
LETTERS = string.ascii_letters
DIGITS = string.digits
ALNUM = LETTERS + DIGITS
UPPER = string.ascii_uppercase + DIGITS
HEX = DIGITS + "abcdef"
URL = ALNUM + "-_"
B64 = ALNUM + "+/"
WORD = ALNUM + "_"

SAMPLES = 4
"""Of each shape."""


class Positive(NamedTuple):
    """A text that holds `secret`, which is to be gone; `keeps` is to be there still."""

    row: int
    kind: str
    secret: str
    text: str
    keeps: tuple[str, ...] = ()


class Shape(NamedTuple):
    """How a token is made: fixed texts and (alphabet, length) in turn."""

    row: int
    kind: str
    parts: tuple[str | tuple[str, int], ...]


def made(rng: random.Random, alphabet: str, length: int) -> str:
    """Random, with a character of each class of the alphabet, and no sign at the ends."""
    while True:
        text = "".join(rng.choice(alphabet) for _ in range(length))
        classes = [group for group in (LOWER, string.ascii_uppercase, DIGITS) if set(group) <= set(alphabet)]
        ends = text[0] in ALNUM and text[-1] in ALNUM
        if ends and all(set(group) & set(text) for group in classes):
            return text


def _shape(row: int, kind: str, *parts: str | tuple[str, int]) -> Shape:
    return Shape(row, kind, parts)


def _several(row: int, kind: str, starts: str, *rest: str | tuple[str, int]) -> list[Shape]:
    return [_shape(row, kind, start, *rest) for start in starts.split()]


SHAPES: tuple[Shape, ...] = (
    *_several(1, "github-token", "ghp_ gho_ ghu_ ghs_ ghr_", (ALNUM, 36)),
    _shape(2, "github-token", "github_pat_", (ALNUM, 22), "_", (ALNUM, 59)),
    *_several(3, "gitlab-token", "glpat- glrt- gldt- glcbt- glsoat- glft- gloas-", (URL, 20)),
    _shape(3, "gitlab-token", "glptt-", (HEX, 40)),
    _shape(3, "gitlab-token", "glpat-", (URL, 27), ".", ("01", 2), ".", (ALNUM, 9)),
    *_several(4, "aws-key-id", "AKIA ASIA ABIA ACCA", (string.ascii_uppercase + "234567", 16)),
    _shape(5, "aws-bedrock-key", "ABSK", (B64, 109)),
    _shape(6, "google-key", "AIza", (URL, 35)),
    _shape(6, "google-oauth", "GOCSPX-", (URL, 28)),
    _shape(6, "google-oauth", "ya29.", (URL, 160)),
    _shape(7, "azure-secret", (ALNUM, 3), "8", "Q~", (ALNUM + "_-", 34)),
    _shape(8, "openai-key", "sk-", (ALNUM, 20), "T3Blbk", "FJ", (ALNUM, 20)),
    *_several(8, "openai-key", "sk-proj- sk-svcacct- sk-admin-", (URL, 74), "T3Blbk", "FJ", (URL, 74)),
    *_several(9, "anthropic-key", "sk-ant-api03- sk-ant-admin01- sk-ant-oat01-", (URL, 93), "AA"),
    _shape(10, "openrouter-key", "sk-or-v1-", (HEX, 64)),
    _shape(10, "deepseek-key", "sk-", (HEX, 32)),
    *_several(11, "huggingface-token", "hf_ api_org_", (LETTERS, 34)),
    _shape(12, "groq-key", "gsk_", (ALNUM, 52)),
    _shape(12, "xai-key", "xai-", (ALNUM, 80)),
    _shape(12, "perplexity-key", "pplx-", (ALNUM, 48)),
    _shape(12, "replicate-token", "r8_", (ALNUM, 37)),
    _shape(12, "nvidia-key", "nvapi-", (URL, 64)),
    *_several(13, "langsmith-key", "lsv2_pt_ lsv2_sk_", (HEX, 32), "_", (HEX, 10)),
    *_several(
        14, "slack-token", "xoxb- xoxp- xoxa- xoxr- xoxs-", (DIGITS, 12), "-", (DIGITS, 12), "-", (ALNUM, 24)
    ),
    _shape(14, "slack-token", "xoxe.xoxp-1-", (ALNUM, 80)),
    _shape(14, "slack-token", "xoxe-1-", (ALNUM, 80)),
    _shape(14, "slack-token", "xapp-1-", (UPPER, 11), "-", (DIGITS, 13), "-", (HEX, 64)),
    _shape(16, "discord-token", "MTE", (ALNUM, 21), ".", (URL, 6), ".", (URL, 27)),
    _shape(16, "discord-token", "NzA", (ALNUM, 25), ".", (URL, 6), ".", (URL, 38)),
    _shape(17, "telegram-token", "71", (DIGITS, 8), ":A", (URL, 34)),
    *_several(18, "stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_", (ALNUM, 24)),
    _shape(18, "stripe-key", "whsec_", (ALNUM, 32)),
    _shape(19, "twilio-key", "SK", (HEX, 32)),
    _shape(19, "sendgrid-key", "SG.", (URL, 22), ".", (URL, 43)),
    _shape(20, "mailgun-key", "key-", (HEX, 32)),
    _shape(20, "mailchimp-key", (HEX, 32), "-us", "14"),
    _shape(21, "npm-token", "npm_", (ALNUM, 36)),
    _shape(22, "pypi-token", "pypi-AgEIcHlwaS5v", "cmc", (URL, 120)),
    _shape(23, "rubygems-key", "rubygems_", (HEX, 48)),
    _shape(23, "crates-token", "cio", (ALNUM, 32)),
    _shape(23, "docker-token", "dckr_pat_", (URL, 27)),
    *_several(24, "digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", (HEX, 64)),
    _shape(24, "fly-token", "fo1_", (URL, 43)),
    _shape(24, "fly-token", "fm2_", (B64, 300)),
    _shape(24, "databricks-token", "dapi", (HEX, 32)),
    _shape(25, "vault-token", "hvs.", (URL, 90)),
    _shape(25, "vault-token", "hvb.", (URL, 138)),
    _shape(25, "terraform-token", (ALNUM, 14), ".atlas", "v1.", (URL, 67)),
    _shape(26, "linear-key", "lin_api_", (ALNUM, 40)),
    _shape(26, "notion-token", "ntn_", (ALNUM, 46)),
    _shape(26, "atlassian-token", "ATATT3", (URL, 186)),
    _shape(27, "airtable-token", "pat", (ALNUM, 14), ".", (HEX, 64)),
    _shape(27, "figma-token", "figd_", (URL, 40)),
    _shape(27, "postman-key", "PMAK-", (HEX, 24), "-", (HEX, 34)),
    _shape(28, "sentry-token", "sntrys_", (WORD, 120)),
    _shape(28, "sentry-token", "sntryu_", (HEX, 64)),
    _shape(28, "grafana-token", "glsa_", (ALNUM, 32), "_", (HEX, 8)),
    _shape(28, "grafana-token", "glc_", (B64, 80)),
    _shape(28, "newrelic-key", "NRAK-", (UPPER, 27)),
    *_several(29, "shopify-token", "shpat_ shpca_ shppa_ shpss_", (HEX, 32)),
    _shape(29, "square-token", "sq0atp-", (URL, 22)),
    _shape(29, "square-token", "EAAA", (URL, 60)),
    _shape(30, "supabase-key", "sbp_", (HEX, 40)),
    *_several(30, "planetscale-token", "pscale_tkn_ pscale_pw_", (URL, 43)),
    _shape(30, "doppler-token", "dp.pt.", (ALNUM, 43)),
    _shape(31, "pulumi-token", "pul-", (HEX, 40)),
    *_several(31, "tailscale-key", "tskey-auth- tskey-api-", (ALNUM, 17), "-", (ALNUM, 32)),
    _shape(32, "jwt", "eyJhb", (URL, 31), ".ey", (URL, 90), ".", (URL, 43)),
    _shape(34, "age-key", "AGE-SECRET-", "KEY-1", (UPPER, 58)),
    _shape(34, "onepassword-token", "ops_eyJ", (B64, 280)),
)

EMBEDDINGS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("plain", lambda secret: secret),
    ("in a sentence", lambda secret: f"I used {secret} to push, and it worked."),
    ("before a full stop", lambda secret: f"The old one was {secret}."),
    ("in brackets", lambda secret: f"it failed again ({secret}), see above"),
    ("JSON", lambda secret: json.dumps({"id": 7, "note": secret, "ok": True})),
    ("after a break in JSON", lambda secret: json.dumps({"log": f"first\n{secret}\nlast\t{secret}"})),
    ("JSON in JSON", lambda secret: json.dumps({"line": json.dumps({"arg": f"a\n{secret}"})})),
    ("code span", lambda secret: f"- run `push {secret}` again"),
    ("bold", lambda secret: f"- **{secret}** is from May"),
    ("table", lambda secret: f"| one | {secret} | two |"),
    ("query", lambda secret: f"GET https://example.org/v1/items?page=2&k={secret}&size=10"),
    ("after =", lambda secret: f"export VALUE={secret}"),
    ("quoted", lambda secret: f"value: '{secret}',"),
    ("YAML", lambda secret: f"one: 1\nvalue: {secret}\ntwo: 2\n"),
    ("percent", lambda secret: f"https://example.org/cb?next=%2Fin%3Fk%3D{secret}"),
    ("coloured", lambda secret: f"\x1b[32m{secret}\x1b[0m ok"),
    ("Chinese", lambda secret: f"我用的是{secret}，请尽快更换。"),
    ("HTML", lambda secret: f"<td>{secret}</td>"),
)


def tokens() -> Iterator[Positive]:
    """Each shape in each embedding."""
    rng = random.Random(20260504)
    for shape in SHAPES:
        for _ in range(SAMPLES):
            secret = "".join(part if isinstance(part, str) else made(rng, *part) for part in shape.parts)
            for _, embed in EMBEDDINGS:
                yield Positive(shape.row, shape.kind, secret, embed(secret))


def _pem(rng: random.Random, label: str, head: str = "", width: int = 64) -> tuple[str, str]:
    """A block, and a line of it."""
    lines = [made(rng, B64, width) for _ in range(12)] + [made(rng, B64, 22) + "=="]
    body = "\n".join(lines)
    dashes = "-" * 5
    return f"{dashes}BEGIN {label}{dashes}\n{head}{body}\n{dashes}END {label}{dashes}\n", lines[3]


def _putty(rng: random.Random) -> tuple[str, str]:
    lines = [made(rng, B64, 64) for _ in range(3)]
    text = f"PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: me\nPublic-Lines: 1\n{made(rng, B64, 64)}\n"
    return text + f"Private-Lines: 3\n{chr(10).join(lines)}\nPrivate-MAC: {made(rng, HEX, 64)}\n", lines[1]


def private_keys() -> Iterator[Positive]:
    """Blocks: over lines, in JSON, indented, quoted, cut at either end, in base64."""
    rng = random.Random(7)
    key = "PRIVATE KEY"
    made_blocks = [_pem(rng, f"{name}{key}") for name in ("", "RSA ", "EC ", "DSA ", "ENCRYPTED ")]
    made_blocks.append(_pem(rng, f"OPENSSH {key}", width=70))
    made_blocks.append(
        _pem(rng, f"RSA {key}", f"Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,{made(rng, UPPER, 32)}\n\n")
    )
    made_blocks.append(_pem(rng, f"PGP {key} BLOCK", "Version: GnuPG v2\n\n"))
    made_blocks.append(_putty(rng))
    for block, line in made_blocks:
        yield from (Positive(33, "private-key", line, text, keeps) for text, keeps in _embedded(block))
        for cut in (block[: len(block) * 2 // 3], block[len(block) // 5 :]):
            yield Positive(33, "private-key", line, f"before\n{cut}", ("before",))
            yield Positive(33, "private-key", line, json.dumps({"key": cut, "x": 1}), ('"key": "', '"x": 1'))
        encoded = base64.b64encode(block.encode()).decode()
        if block.startswith("-"):
            yield Positive(
                33,
                "private-key",
                encoded[80:140],
                f"    client-key-data: {encoded}\nusers: []",
                ("users: []",),
            )
            yield Positive(33, "private-key", encoded[80:140], json.dumps({"d": encoded}), ('{"d": "',))
            wrapped = "\n  ".join(encoded[at : at + 76] for at in range(0, len(encoded), 76))
            yield Positive(
                33,
                "private-key",
                encoded[80:140],
                f"tls.key: |\n  {wrapped}\nkind: Secret",
                ("kind: Secret",),
            )


def _embedded(block: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    yield f"before\n{block}after\n", ("before", "after")
    yield block.replace("\n", "\r\n"), ()
    yield "".join(f"    {line}\n" for line in block.splitlines()) + "next: 1", ("next: 1",)
    yield "".join(f"> {line}\n" for line in block.splitlines()) + "\nnext", ("next",)
    yield json.dumps({"before": 1, "data": block, "after": 2}), ('"before": 1', '"after": 2')
    yield json.dumps({"a": json.dumps({"data": f"x\n{block}y"})}), ('{"a": "',)
    yield json.dumps(block.splitlines()), ('["',)
    yield json.dumps(block.splitlines(), indent=1), ('["'[:1],)
    yield f'KEY="{block}"\nNEXT=1\n', ("NEXT=1",)


Given = tuple[int, str, Callable[[str], str], tuple[str, ...]]

GIVEN: tuple[Given, ...] = (
    (
        35,
        "url-credentials",
        lambda s: f"postgres://app:{s}@db.example.org:5432/main",
        ("postgres://", "@db.example.org:5432/main"),
    ),
    (
        35,
        "url-credentials",
        lambda s: f"clone https://bob:{s}@example.org/x.git now",
        ("https://", "@example.org/x.git now"),
    ),
    (35, "url-credentials", lambda s: f"redis://:{s}@localhost:6379/0", ("redis://", "@localhost:6379/0")),
    (35, "url-credentials", lambda s: f"amqp://u:a@{s}@q/", ("amqp://", "@q/")),
    (
        35,
        "url-credentials",
        lambda s: json.dumps({"url": f"mongodb+srv://u:{s}@c.example.org/?w=1"}),
        ("mongodb+srv://", "@c.example.org/?w=1"),
    ),
    (36, "auth-header", lambda s: f"Authorization: Bearer {s}", ("Authorization: Bearer ",)),
    (
        36,
        "auth-header",
        lambda s: f"curl -H 'Authorization: Bearer {s}' https://example.org",
        ("Authorization: Bearer ", "' https"),
    ),
    (36, "auth-header", lambda s: json.dumps({"Authorization": f"Token {s}"}), ('"Authorization": "Token ',)),
    (
        36,
        "auth-header",
        lambda s: json.dumps({"cmd": f'curl -H "authorization: Bearer {s}" x'}),
        ("authorization: Bearer ",),
    ),
    (
        36,
        "auth-header",
        lambda s: f"Proxy-Authorization: Basic {base64.b64encode(s.encode()).decode()}",
        ("Basic ",),
    ),
    (36, "api-key", lambda s: f"X-Api-Key: {s}", ("X-Api-Key: ",)),
    (36, "api-key", lambda s: f'-H "x-api-key: {s}" -X POST', ("x-api-key: ", '" -X POST')),
    (36, "token", lambda s: f"X-Auth-Token: {s}\r\nAccept: */*", ("X-Auth-Token: ", "Accept: */*")),
    (36, "cookie", lambda s: f"Cookie: sid={s}; theme=dark", ("Cookie: ",)),
    (36, "cookie", lambda s: f"Set-Cookie: sid={s}; Path=/; HttpOnly\nDate: x", ("Set-Cookie: ", "Date: x")),
    (36, "cookie", lambda s: json.dumps({"headers": {"cookie": f"a=1; sid={s}"}}), ('"cookie": "',)),
    (36, "cookie", lambda s: f"curl -H 'Cookie: sid={s}' https://example.org", ("' https://example.org",)),
    (37, "password", lambda s: f"password={s}", ("password=",)),
    (37, "password", lambda s: f"password: {s}", ("password: ",)),
    (37, "password", lambda s: f"The password: {s}.", ("The password: ", ".")),
    (37, "password", lambda s: f"export DB_PASSWORD={s}", ("export DB_PASSWORD=",)),
    (37, "password", lambda s: f"DB_PASSWORD='{s}' ./run", ("DB_PASSWORD='", "' ./run")),
    (37, "password", lambda s: f"  pass: {s}\n  user: bob", ("  pass: ", "\n  user: bob")),
    (37, "password", lambda s: f"PGPASSWORD={s} psql -h db", ("PGPASSWORD=", " psql -h db")),
    (37, "password", lambda s: f"**Password:** {s}", ("**Password:** ",)),
    (37, "password", lambda s: f"- password: `{s}`", ("- password: `", "`")),
    (37, "password", lambda s: f"config['password'] = '{s}'", ("config['password'] = '",)),
    (
        37,
        "password",
        lambda s: f"Server=db;User Id=sa;Password={s};Encrypt=true",
        ("Password=", ";Encrypt=true"),
    ),
    (37, "password", lambda s: f"Passwort: {s}", ("Passwort: ",)),
    (37, "password", lambda s: f"密码：{s}", ("密码：",)),
    (37, "password", lambda s: f"<password>{s}</password>", ("<password>", "</password>")),
    (
        37,
        "password",
        lambda s: json.dumps({"user": "bob", "password": s}),
        ('{"user": "bob", "password": "', '"}'),
    ),
    (
        37,
        "password",
        lambda s: json.dumps({"log": json.dumps({"password": s})}),
        ('{"log": "{\\"password\\": \\"', '\\"}"}'),
    ),
    (37, "password", lambda s: json.dumps({"cmd": f"a\nDB_PASSWORD={s}\nb"}), ("DB_PASSWORD=", '\\nb"}')),
    (37, "password", lambda s: f"- name: DB_PASSWORD\n  value: {s}\n", ("- name: DB_PASSWORD\n  value: ",)),
    (37, "token", lambda s: f"ACCESS_TOKEN={s}", ("ACCESS_TOKEN=",)),
    (37, "token", lambda s: f"https://example.org/?access_token={s}&page=2", ("access_token=", "&page=2")),
    (37, "token", lambda s: f'const authToken: string = "{s}";', ('authToken: string = "', '";')),
    (37, "token", lambda s: f"{{token: '{s}'}}", ("{token: '", "'}")),
    (37, "secret", lambda s: f"client_secret = {s}", ("client_secret = ",)),
    (37, "secret", lambda s: f'clientSecret: "{s}",', ('clientSecret: "', '",')),
    (37, "secret", lambda s: f"SECRET_KEY_BASE={s}", ("SECRET_KEY_BASE=",)),
    (37, "secret", lambda s: f"private_key={s}", ("private_key=",)),
    (37, "secret", lambda s: f'access_key := "{s}"', ('access_key := "',)),
    (37, "api-key", lambda s: f"api_key={s}", ("api_key=",)),
    (37, "api-key", lambda s: f"apikey: '{s}'", ("apikey: '",)),
    (37, "api-key", lambda s: f"'apiKey' => '{s}',", ("'apiKey' => '",)),
    (37, "api-key", lambda s: f"My API key: {s}", ("My API key: ",)),
    (38, "password", lambda s: f"mysqldump --password={s} main", ("--password=", " main")),
    (38, "password", lambda s: f"tool --db-password {s} main", ("--db-password ", " main")),
    (38, "password", lambda s: f"tool --password '{s}' main", ("--password '", "' main")),
    (38, "token", lambda s: f"gh auth --token {s}", ("--token ",)),
    (38, "token", lambda s: json.dumps(["tool", "--token", s, "x"]), ('["tool", "--token", "', '", "x"]')),
    (38, "api-key", lambda s: f"tool --api-key={s} x", ("--api-key=", " x")),
    (
        38,
        "password",
        lambda s: f"curl -u bob:{s} https://example.org",
        ("curl -u bob:", " https://example.org"),
    ),
    (
        38,
        "password",
        lambda s: f"curl -s --user 'bob:{s}' https://example.org",
        ("--user 'bob:", "' https://example.org"),
    ),
    (38, "password", lambda s: json.dumps({"cmd": f'curl -u "bob:{s}" x'}), ('curl -u \\"bob:',)),
    (38, "password", lambda s: f"mysql -u root -p{s} main", ("mysql -u root -p", " main")),
    (
        38,
        "password",
        lambda s: f"machine example.org login bob password {s}",
        ("machine example.org login bob password ",),
    ),
    (
        38,
        "password",
        lambda s: f"machine example.org\n  login bob\n  password {s}\n",
        ("  login bob\n  password ",),
    ),
    (38, "password", lambda s: f"localhost:5432:main:bob:{s}", ("localhost:5432:main:bob:",)),
    (38, "password", lambda s: f"# pgpass\n*:*:main:bob:{s}\n", ("*:*:main:bob:",)),
    (5, "aws-secret", lambda s: f"aws_secret_access_key = {_forty(s)}", ("aws_secret_access_key = ",)),
    (5, "aws-secret", lambda s: f"export AWS_SECRET_ACCESS_KEY={_forty(s)}", ("AWS_SECRET_ACCESS_KEY=",)),
    (
        5,
        "aws-secret",
        lambda s: json.dumps({"SecretAccessKey": _forty(s), "x": 1}),
        ('"SecretAccessKey": "', '"x": 1'),
    ),
    (
        7,
        "azure-key",
        lambda s: f"AccountName=a;AccountKey={_b64(s, 86)}==;EndpointSuffix=core",
        ("AccountKey=", ";EndpointSuffix"),
    ),
    (
        7,
        "url-signature",
        lambda s: f"https://a.blob.example.org/x?sv=2022&sig={_b64(s, 43)}%3D&se=2026",
        ("sv=2022&sig=", "&se=2026"),
    ),
    (
        15,
        "webhook-url",
        lambda s: f"https://hooks.slack.com/services/T0AB12CD3/B0AB12CD3/{_b64(s, 24, ALNUM)}",
        ("https://hooks.slack.com/services/",),
    ),
    (
        15,
        "webhook-url",
        lambda s: f"https://hooks.slack.com/workflows/T0AB12CD3/A0/9/{_b64(s, 24, ALNUM)} ok",
        (" ok",),
    ),
    (
        15,
        "webhook-url",
        lambda s: f"https://hooks.slack.com/triggers/T0AB12CD3/9/{_b64(s, 32, HEX)}",
        ("/triggers/",),
    ),
    (
        15,
        "webhook-url",
        lambda s: f"https://discord.com/api/webhooks/1234567890123/{_b64(s, 68, URL)}",
        ("https://discord.com/api/webhooks/",),
    ),
    (
        21,
        "npm-token",
        lambda s: f"//registry.npmjs.org/:_authToken={s}",
        ("//registry.npmjs.org/:_authToken=",),
    ),
    (21, "npm-token", lambda s: f"//r.example.org/:_authToken={_uuid(s)}", ("//r.example.org/:_authToken=",)),
)
"""(row, kind, text round a secret, what stays of it)."""


def _b64(seed: str, length: int, alphabet: str = B64) -> str:
    return made(random.Random(seed), alphabet, length)


def _forty(seed: str) -> str:
    return _b64(seed, 40)


def _uuid(seed: str) -> str:
    digits = _b64(seed, 32, HEX)
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _passwords() -> list[str]:
    """What people and programs use: short, long, with signs that URLs and shells allow."""
    rng = random.Random(11)
    words = ["".join(("hun", "ter", "27")), "".join(("S3", "cr3t", "Pa", "ss!x")), made(rng, ALNUM, 12)]
    return [*words, made(rng, ALNUM, 32), made(rng, HEX, 40), made(rng, URL, 24)]


def _holds(secret: str, text: str) -> str:
    """What of the text is the secret: a text may hold another one that follows from it."""
    for one in (secret, _forty(secret), _uuid(secret), *(_b64(secret, n, a) for n, a in _LENGTHS)):
        if one in text:
            return one
    return base64.b64encode(secret.encode()).decode()


_LENGTHS = ((86, B64), (43, B64), (24, ALNUM), (32, HEX), (68, URL))


def given() -> Iterator[Positive]:
    """Secrets that only what stands round them gives away."""
    for row, kind, embed, keeps in GIVEN:
        for password in _passwords():
            text = embed(password)
            yield Positive(row, kind, _holds(password, text), text, keeps)
    rng = random.Random(13)
    for token in (made(rng, ALNUM, 24), made(rng, ALNUM, 40), made(rng, HEX, 40)):
        yield Positive(
            35,
            "url-credentials",
            token,
            f"git clone https://{token}@example.org/x.git",
            ("https://", "@example.org/x.git"),
        )


def positives() -> list[Positive]:
    return [*tokens(), *private_keys(), *given()]


def _digests() -> list[str]:
    """Hashes, ids and public data, made when the tests run: they look as random as a secret does."""
    rng = random.Random(17)
    sha1, sha256, md5 = made(rng, HEX, 40), made(rng, HEX, 64), made(rng, HEX, 32)
    ulid = "01" + made(rng, "0123456789ABCDEFGHJKMNPQRSTVWXYZ", 24)
    dashes = "-" * 5
    image = base64.b64encode(random.Random(3).randbytes(60_000)).decode()
    certificate = "\n".join(made(rng, B64, 64) for _ in range(20))
    encoded = base64.b64encode(f"{dashes}BEGIN CERTIFICATE{dashes}\n{certificate}".encode()).decode()
    public = f"AAAAB3NzaC1yc2EAAAADAQABAAABgQ{made(rng, B64, 340)}"
    return [
        f"commit {sha1}",
        f"Fixed in {sha1[:7]} and {sha1[8:20]}.",
        f"{sha1[:12]}..{sha1[20:32]} main -> main",
        f"sha256:{sha256}",
        f"image: registry.example.org/app@sha256:{sha256}",
        f"{sha256}  dist/app.tar.gz",
        f"MD5 (app.tar.gz) = {md5}",
        f'ETag: "{md5}"',
        f'"integrity": "sha512-{made(rng, B64, 86)}=="',
        f"integrity sha256-{made(rng, B64, 43)}=",
        f'<script integrity="sha384-{made(rng, B64, 64)}" crossorigin="anonymous">',
        f"request {_uuid('a')} took 12 ms",
        json.dumps({"id": _uuid("b"), "parent": _uuid("c")}),
        f"ulid {ulid} is newer",
        f"ev_{sha256[:26]} was recorded",
        json.dumps({"event": f"ev_{ulid}", "sha256": sha256}),
        f"node_modules/.pnpm/react-dom@18.2.0_react@18.2.0/node_modules/react-dom/index.js?v={md5[:8]}",
        f"/nix/store/{made(rng, LOWER + DIGITS, 32)}-python3-3.11.7/bin/python",
        f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{made(rng, B64, 43)} me@host",
        f"ssh-rsa {public}= bob@example.org",
        f"ssh_key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{made(rng, B64, 43)}",
        f"SHA256:{made(rng, B64, 43)} me@host (ED25519)",
        f"{dashes}BEGIN CERTIFICATE{dashes}\n{certificate}\n{dashes}END CERTIFICATE{dashes}",
        f"{dashes}BEGIN PUBLIC KEY{dashes}\n{certificate}\n{dashes}END PUBLIC KEY{dashes}",
        json.dumps(
            {
                "client_cert": f"{dashes}BEGIN CERTIFICATE{dashes}\n{certificate}\n{dashes}END CERTIFICATE{dashes}\n"
            }
        ),
        f"certificate-authority-data: {encoded}",
        f"![plan](data:image/png;base64,iVBORw0KGgo{image})",
        json.dumps({"type": "image", "media_type": "image/png", "data": f"iVBORw0KGgo{image}"}),
        f"<img src='data:image/svg+xml;base64,PHN2Zy{image[:400]}'/>",
        f"docker.io/library/redis@sha256:{sha256} pulled",
        f"blob {sha1} 4096\ttree {sha1}",
        f"index {sha1[:7]}..{sha1[9:16]} 100644",
        f"trace_id={md5} span_id={md5[:16]}",
        f"Cache-Key: v1-{sha256}",
        f"password_hash: see {sha256[:8]}",
        f"go.sum h1:{made(rng, B64, 43)}=",
        f"ls -l .git/objects/{sha1[:2]}/{sha1[2:]}",
    ]


_ENGLISH = """\
The password is rotated weekly.
token: see the vault
Ask the operator for the password before you start.
The secret of a good handoff is a short one.
Password: required
Passwords must be at least 12 characters long.
Enter your password:
The API key: where it comes from and who may see it
We keep no secret in the repository; the key is in the vault.
secret: none
Authentication: the token was missing, so the server said 401.
The token expired, so I asked for another one.
Your token: <your token>
API keys are read from the environment.
Bearer tokens are checked by the gateway.
Authorization: Bearer tokens are checked by the gateway.
Use `Authorization: Bearer <token>` in each request.
Authorization: Basic Authentication is off.
Cookie: the browser sends it by itself.
A private key begins with -----BEGIN PRIVATE KEY----- and nothing else.
Between -----BEGIN PRIVATE KEY----- and -----END PRIVATE KEY----- stands base64.
The key word here is patience: wait for the build.
Key: value pairs are kept in order.
Primary key: id, foreign key: mission_id.
Tokens: 123 in, 456 out.
tokens used: 128000
It has 4096 tokens left.
Reset the password, then log in again.
password: at least eight characters
Passcode: ask Mary
secret santa: Thursday
The passphrase: four words that nobody would guess.
no password needed
The token (a JWT): three parts with dots between them.
Pass: 12, fail: 0
pass: 128 tests in 3.2s
All 431 tests pass: good.
Compass: north-east
bypass: enabled2
The credentials: handed over on paper.
login: bob, password: ask him
Credential helper: osxkeychain
We do not log the token: it is a secret.
Two-factor tokens: lost, ordered again.
Step 3: password: change it."""

_GERMAN = """\
Das Passwort wird jede Woche gewechselt.
Passwort: steht im Tresor
Passwort: mindestens 12 Zeichen
Das Kennwort: bitte beim Betreiber erfragen.
Kennwort vergessen?
Der Token ist abgelaufen, ich habe einen neuen beantragt.
Token: siehe Tresor
Der geheime Schlüssel liegt nicht im Repository.
Passwort: Zugangsberechtigungsverwaltung
Die Zugangsdaten: werden morgen übergeben.
Geheimnis: keines
Das Passwort für die Datenbank hat Anna.
Schlüssel: Wert
Bitte das Passwort: niemals im Klartext senden.
Der API-Schlüssel wird aus der Umgebung gelesen.
Passwörter: mindestens zwölf Zeichen, eine Ziffer.
Secret: wird vom Betreiber gesetzt"""

_CHINESE = """\
密码每周更换一次。
密码：请联系管理员获取
密码：至少12位，包含字母和数字
口令：见保险库
令牌已过期，需要重新申请。
请输入您的密码：
token：见保险库
API 密钥从环境变量读取。
私钥不在仓库里。
密码不能少于8个字符。
忘记密码？
访问令牌：由网关检查。
secret：无
该任务的下一步：更新密码策略。
密碼：請洽管理員"""

_CODE = r"""
def login(user: str, password: str) -> bool:
def login(password: str = "", token: str | None = None) -> None:
token: str = None
password: SecretStr
password: Optional[str] = None
private readonly token: CancellationToken;
token?: string;
let apiKey: String?
fn login(token: &str, key: PrivateKey)
apiKey: process.env.OPENAI_API_KEY,
const token = await getToken(user2);
token = get_token(user1)
password = getpass.getpass("Password: ")
token = response.json()["access_token"]
password = os.environ["DB_PASSWORD"]
password = os.environ.get("DB_PASSWORD2")
token := os.Getenv("GITHUB_TOKEN")
token = self.token2
access_token = access_token_2
password=password
password = config.database.password
secret = settings.SECRET_KEY
secret_key = Fernet.generate_key()
client = Client(api_key=api_key, token=token)
if token == "":
if (password === undefined) {
return password != None
export TOKEN=$GITHUB_TOKEN
export DB_PASSWORD=${DB_PASSWORD}
export DB_PASSWORD="${DB_PASSWORD:-}"
DB_PASSWORD=$(cat /run/secrets/db)
password: ${{ secrets.DB_PASSWORD }}
password: {{ vault_password }}
password=%PASSWORD%
password: <your password>
api_key: "<api-key-1>"
token: "your-token-here"
api_key = "YOUR_API_KEY"
token: xxxxxxxxxxxxxxxx
password: ********
password: "***"
password: ••••••••
token: ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
token: ghp_...
API_KEY=sk-...
password: [REDACTED:password]
export TOKEN=[REDACTED:github-token]
password: changeme
"password": "string"
"token": {"type": "string", "description": "a token"}
"required": ["user", "password"]
"password": null, "token": ""
"password": true
max_tokens=4096
max_token: 128000
"max_tokens": 8192, "tokens": 123
tokens: 123
total_tokens=18230
"input_tokens": 1204, "cache_read_input_tokens": 99123
token_count = 4096
token_type: bearer
password_file: /run/secrets/db_password
secret: /run/secrets/db_password2
private_key: ~/.ssh/id_ed25519
private_key_path=/home/bob/.ssh/id_rsa
ssh_key: ./keys/deploy-2026.pem
client_key: certs/client1.pem
secretName: db-credentials
secret: db-credentials
secret: sha256
token: base64
token: HS256
token: uint256
password: argon2id
secret_key: ed25519
token: 2026-05-04T09:30:00Z
token: v1.2.3
session_key = "agent:main:swarm-builder-1"
"notifySessionKey": "agent:main:swarm-builder-1"
sessionKey: agent:main:main
task-scheduler
run task-scheduler-0123456789abcdef0123456789abcdef now
desk-proj-abcdefghijklmnopqrstuvwxyzabcdefghij0123
mask-image: url(x.svg); disk-usage: 12%
hf_hub_download(repo_id="bert", filename="config.json")
from huggingface_hub import hf_hub_download, hf_hub_url
npm_config_registry=https://registry.npmjs.org/
npm_lifecycle_event=build
sk-learn is spelled scikit-learn
key-value store, key-frame animation
glpat- is the prefix of a GitLab token
xoxb-your-token
https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX
pattern.compile, path.join, patch.dict
SG.UI.Components.List
spacious rooms, precious metals, delicious apples
git@github.com:org/repo.git
git clone git@host:repo
scp file.txt bob@host:/srv/data/
rsync -av user@10.0.0.5:/path/ ./x
ssh://git@example.org:2222/org/repo.git
https://bob@example.org/x
https://user:password@example.org/
postgres://user:${DB_PASSWORD}@db/main
postgresql://<user>:<pass>@localhost:5432/main
http://localhost:8080/a@2x.png
http://localhost:3000?mail=a@example.org
https://www.npmjs.com/package/@scope/name
https://medium.com/@someone/a-long-title-0123456789ab
curl -u "$USER:$PASS" https://example.org
curl -u user:password https://example.org
docker run -u 1000:1000 -v /a:/b image
docker run --user app:app7890 image
chown www-data:www-data /srv
-p 8080:80 --publish 5432:5432
mysql -u root -p main
mysql -p -h db
ssh -p 2222 bob@host
mkdir -p /srv/app1/data2
login: bob
machine learning models login pages password fields
localhost:5432 is the database
src/app.py:12:5: E501 line too long
app.c:120:8:error:expected expression
fe80:0000:0000:0000:0202:b3ff:fe1e:8329
00:1a:2b:3c:4d:5e
12:30:45 INFO started
2026-05-04T09:30:00.000Z
1777885260000
mission-mo2b0001-aaaaaa
assign-mo4d0042-aaaa01
"currentMissionId": "mission-mo4d0042-aaaaaa"
tmux attach -t swarm-builder-1
swarm-builder-1:0.0
/home/bob/projects/swarm/memory/handoffs/mission-mo2b0001-aaaaaa.md
C:\Users\bob\npm_cache\token.json
C:\new\tokens\readme.txt
node_modules/.pnpm/@babel+core@7.24.0/node_modules/@babel/core/lib/index.js
tests/unit/test_password_reset2.py::test_token_1
- [x] `secrets.py` has 3 tests
| token | count |
| --- | --- |
## Password: how it is kept
> token: see above
- **Token:** rotated on Monday
1. `password`: string, required
[token]: https://example.org/docs/token2
keyboard: qwertz105
monkey=banana12
author: bob1234
authority: example2024
tokenizer=cl100k_base
"pad_token": "<pad>", "eos_token": "</s>"
"next": "page2token"
css: .token-1 { color: #aabbcc }
jwt.decode(value, key=KEY, algorithms=["HS256"])
eyebrow.eyelid.eyeglasses
NotificationServiceProviders.create.someVeryLongMethodNameThatGoesOn
EAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
curl -H "Authorization: Bearer $TOKEN" https://example.org
headers={"Authorization": f"Bearer {token}"}
-H "X-Api-Key: ${API_KEY}"
Set-Cookie: sid=<value>
//registry.npmjs.org/:_authToken=${NPM_TOKEN}
public_key: 0x04abcdef
pk_live_and_pk_test_are_public
aws_secret_access_key = <secret>
password: op://vault/db/password
secret: vault:secret/data/app#key1
token: arn:aws:secretsmanager:eu-west-1:123456789012:secret:app
email token: bob@example.org
secret: 256-bit
token: 15min
password length: 16
token limit: 128k
"""


def harmless() -> list[str]:
    """Texts that hold no secret, the more confusing ones first of all."""
    written = (_ENGLISH, _GERMAN, _CHINESE, _CODE)
    lines = [line for text in written for line in text.splitlines() if line]
    documented = f"{'AKIA'}{'IOSFODNN7'}{'EXAMPLE'}"
    return [*lines, *_digests(), documented]


POSITIVE_PIECES = sorted(
    {one.secret for one in tokens()} | {one.text for one in given()} | {one.text for one in private_keys()}
)
"""Parts to put texts together from, ours at random."""

HARMLESS_PIECES = [text for text in harmless() if len(text) < 2000]
