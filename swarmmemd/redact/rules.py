"""The rules for secrets that are known by their own shape or by what stands round them. Data.

A rule is tried only where one of its `hints` is in the text: that is a search for a plain string, and most texts
hold none. Lengths are minimums, as those who issue tokens lengthen them. Repeats are bounded or possessive and no
repeat holds another over the same characters, so the time grows with the length of the text and no faster.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from swarmmemd.redact.values import secret_bare, secret_in_quotes, stands_for_something

_ESCAPES = (
    *(r"\\[nrtbf0]", r"\\u[0-9A-Fa-f]{4}", r"%[0-9A-Fa-f]{2}"),
    *(r"\x1b\[m", r"\x1b\[\dm", r"\x1b\[\d\dm", r"\x1b\[\d;\d\dm"),
)
"""A letter or digit before a token that belongs to one of these and not to a longer word: `\\n`, `%3D`, a colour."""


def _escaped(head: str = "") -> str:
    return "|".join(f"(?<={one}{head})" for one in _ESCAPES)


def _left(before: str, head: str = "") -> str:
    """None of `before` here, but for an escape. With a fixed `head` it is asked from behind that: a pattern that begins
    with a fixed text is searched for as fast as the text."""
    return f"(?:(?<!{before}{head})|{_escaped(head)})"


ESCAPED = _escaped()
WORD = rf"(?:\b|{ESCAPED})"
"""A word begins here, also one behind `\\n`."""

_TOKEN = "[A-Za-z0-9]"
LEFT = _left(_TOKEN)
"""A token begins here: `task-scheduler` holds no `sk-`."""

_NAME = "[A-Za-z0-9_-]"
"""The same for what is also the end of a name: `cache-key-` and a hash is no secret."""

END = r"(?![A-Za-z0-9])"


class Rule(NamedTuple):
    """`patterns` find it; the group `s`, or all of it, is replaced if `judge` agrees. `fold`: hints are in lower case
    and the text is compared so. `stem` is what all hints begin with: where it is not, one search does for many.
    `gate` stands in each text that holds one, where hints stand in nearly every text."""

    kind: str
    hints: tuple[str, ...]
    patterns: tuple[re.Pattern[str], ...]
    fold: bool = False
    judge: Callable[[re.Match[str]], bool] | None = None
    gate: re.Pattern[str] | None = None
    stem: str = ""


_BETWEEN_PARTS = re.compile(r"[-_./:]")


def _varied(found: re.Match[str]) -> bool:
    """Not a stand-in like `ghp_xxxxxxxx`, nor a name in a program."""
    longest = max(reversed(_BETWEEN_PARTS.split(found[0])), key=len)
    return longest.strip("xX") != ""


def _mixed(found: re.Match[str]) -> bool:
    """Random in each of its long parts: a dotted name of a program can have these lengths too."""
    parts = [part for part in re.split(r"[.:]", found[0]) if len(part) > 12]
    return all(
        re.search(r"\d", one) and re.search(r"[A-Z]", one) and re.search(r"[a-z]", one) for one in parts
    )


def _no_base64(found: re.Match[str]) -> bool:
    """Not chance within longer base64, where a `/` or `+` may stand before any letters."""
    start = found.start()
    before = found.string[max(0, start - 40) : start]
    run = re.split(r"[^A-Za-z0-9]", before[:-1])[-1] if before.endswith(("/", "+")) else ""
    return len(run) < 20 and _mixed(found)


def _digit(found: re.Match[str]) -> bool:
    return any(c.isdigit() for c in found[0]) and _varied(found)


def _documented(found: re.Match[str]) -> bool:
    """Not a key of AWS' own documentation."""
    return not found["s"].endswith(("EXAMPLE", "EXAMPLEKEY"))


def _token(
    kind: str, starts: str, rest: str, before: str = _TOKEN, judge: Callable[[re.Match[str]], bool] = _varied
) -> Rule:
    """A token with fixed beginnings, given with spaces between them, and none of `before` in front of it. What
    follows of the same word goes with it."""
    hints = tuple(starts.split())
    patterns = (
        re.compile(rf"{head}{_left(before, head)}(?:{rest})[A-Za-z0-9_]*+", re.ASCII)
        for head in map(re.escape, hints)
    )
    return Rule(kind, hints, tuple(patterns), judge=judge, stem=_stem(hints))


def _stem(hints: tuple[str, ...]) -> str:
    first, last = min(hints), max(hints)
    return first[: next((at for at, one in enumerate(first) if last[at] != one), len(first))]


def _shape(
    kind: str,
    hints: str,
    pattern: str,
    judge: Callable[[re.Match[str]], bool] | None = None,
    gate: str | None = None,
) -> Rule:
    compiled = re.compile(pattern, re.ASCII)
    return Rule(kind, tuple(hints.split()), (compiled,), judge=judge, gate=_gate(gate))


def _around(
    kind: str,
    hints: str,
    pattern: str,
    judge: Callable[[re.Match[str]], bool] | None = None,
    gate: str | None = None,
) -> Rule:
    """A secret that is known by what stands round it, in whatever case."""
    compiled = re.compile(pattern, re.ASCII | re.IGNORECASE | re.MULTILINE)
    return Rule(kind, tuple(hints.split()), (compiled,), fold=True, judge=judge, gate=_gate(gate))


def _gate(pattern: str | None) -> re.Pattern[str] | None:
    return re.compile(pattern, re.ASCII) if pattern else None


_COMMAND_ENDS = re.compile(r"(?<!\\)(?:\n|\\n)")
"""A break, one in JSON too, that does not go on with the same command."""

_HTTP_CLIENT = re.compile(rf"{WORD}(?:curl|wget|https?|xh)\b")


def _login(found: re.Match[str]) -> bool:
    user, colon, password = found["s"].partition(":")
    if not colon:
        return len(user) >= 16 and secret_bare(user, password=False)
    if not password:
        return secret_bare(user, password=False)
    return not stands_for_something(password)


def _given(found: re.Match[str]) -> bool:
    return not stands_for_something(found["s"])


def _six(found: re.Match[str]) -> bool:
    return secret_in_quotes(found["s"])


def _looks(found: re.Match[str]) -> bool:
    return secret_bare(found["s"].rstrip("="), password=True, tight=True)


def _basic(found: re.Match[str]) -> bool:
    """A login in base64, not a word: `Basic Authentication`."""
    value = found["s"].rstrip("=")
    return not (value.islower() or value.istitle()) and not stands_for_something(value)


def _pgpass(found: re.Match[str]) -> bool:
    usual = found["port"] in ("*", "5432", "5433", "6432")
    return secret_in_quotes(found["s"]) if usual else secret_bare(found["s"], password=True)


def _curl(found: re.Match[str]) -> bool:
    """`-u` means a login only to some programs: to docker it is a number of a user."""
    before = found.string[max(0, found.start() - 400) : found.start()]
    last = _COMMAND_ENDS.split(before)[-1]
    return _HTTP_CLIENT.search(last) is not None and _given(found)


def _cookie(found: re.Match[str]) -> bool:
    values = [one.partition("=")[2].strip() for one in found["s"].split(";")]
    return any(len(value) >= 4 and not stands_for_something(value) for value in values)


_HEX = "[0-9a-fA-F]"
_B64 = "[A-Za-z0-9+/]"
_URL = "[A-Za-z0-9_-]"
_WS = r"(?:[ \t\r\n]|\\{1,8}[nrt]){1,20}"
_FIELD = r"[^\s\"'\\]{1,256}"
_SLASH = r"\\{0,7}/"
_VALUE = r"[^\s\"'`<>\\,;]"
_OPEN = r"(?:\\{0,7}[\"'`]|\*\*)?"
"""A quote that may stand round a name or a value, escaped in JSON."""

_SIGN = (
    r"(?:\\{0,7}[\"'`][ \t]{0,8}(?:=>|:=|[=:,])[ \t]{0,8}\\{0,7}[\"'`]"
    rf"|(?:\*\*)?[ \t]{{0,8}}(?:=>|:=|[=:,])[ \t]{{0,8}}{_OPEN})"
)
"""Between a name and its value. Behind a name in quotes a value without is a number of JSON, or no value."""

TOKENS: tuple[Rule, ...] = (
    _token("anthropic-key", "sk-ant-", rf"{_URL}{{32,}}+"),
    _token("openrouter-key", "sk-or-", rf"(?:v\d+-)?{_HEX}{{32,}}+"),
    _token("deepseek-key", "sk-", rf"[0-9a-f]{{32}}{END}"),
    _token("openai-key", "sk-proj- sk-svcacct- sk-admin- sk-None-", rf"{_URL}{{32,}}+", judge=_digit),
    _shape("openai-key", "T3BlbkFJ", rf"{LEFT}sk-(?:[a-z]{{2,12}}-)?{_URL}{{16,200}}?T3BlbkFJ{_URL}{{16,}}+"),
    _token("openai-key", "sk-", r"[A-Za-z0-9]{32,}+", judge=_digit),
    _token("github-token", "ghp_ gho_ ghu_ ghs_ ghr_", r"[A-Za-z0-9]{36,}+"),
    _token("github-token", "github_pat_", r"[A-Za-z0-9_]{60,}+"),
    _token("gitlab-token", "glptt-", rf"{_HEX}{{40,}}+"),
    _token(
        "gitlab-token",
        "glpat- glrt- gldt- glcbt- glsoat- glft- gloas- glimt- glagent- glptt- glffct- glwt-",
        rf"{_URL}{{20,}}+(?:\.[A-Za-z0-9_-]{{2,200}}+){{0,4}}",
        judge=_digit,
    ),
    _shape(
        "aws-key-id",
        "AKIA ASIA ABIA ACCA",
        rf"{LEFT}(?P<s>(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{{16,}}+){END}",
        _documented,
    ),
    _token("aws-bedrock-key", "ABSK", rf"{_B64}{{100,}}+={{0,2}}", judge=_no_base64),
    _around(
        "aws-secret",
        "secret",
        r"(?:aws[\w .-]{0,20}secret|secret_?access_?key)[\w .-]{0,20}?"
        rf"{_SIGN}(?P<s>[A-Za-z0-9/+]{{40}})(?![A-Za-z0-9/+])",
        _documented,
    ),
    _token("google-key", "AIza", rf"{_URL}{{35,}}+"),
    _token("google-oauth", "GOCSPX-", rf"{_URL}{{28,}}+"),
    _token("google-oauth", "ya29.", rf"{_URL}{{20,}}+"),
    _around("azure-key", "accountkey=", rf"AccountKey=(?P<s>{_B64}{{40,}}+={{0,2}})"),
    _shape(
        "azure-secret",
        "Q~",
        rf"{LEFT}[A-Za-z0-9_~.-]{{3}}\dQ~[A-Za-z0-9_~.-]{{30,33}}[A-Za-z0-9_~-]",
    ),
    _around("url-signature", "sig=", r"(?:(?<=[?&;])|(?<=\\u0026))sig=(?P<s>[A-Za-z0-9%+/=_-]{20,})"),
    _around(
        "url-signature",
        "signature= security-token=",
        r"X-(?:Amz|Goog|Oss)-(?:Signature|Security-Token)=(?P<s>[A-Za-z0-9%+/=_-]{20,})",
    ),
    _token("huggingface-token", "hf_ api_org_", r"[A-Za-z0-9]{34,}+"),
    _token("groq-key", "gsk_", r"[A-Za-z0-9]{48,}+"),
    _token("xai-key", "xai-", r"[A-Za-z0-9_]{70,}+"),
    _token("perplexity-key", "pplx-", r"[A-Za-z0-9]{48,}+"),
    _token("replicate-token", "r8_", r"[A-Za-z0-9]{37,}+"),
    _token("nvidia-key", "nvapi-", rf"{_URL}{{60,}}+"),
    _token("langsmith-key", "lsv2_pt_ lsv2_sk_", rf"{_HEX}{{32,}}+_{_HEX}{{10,}}+"),
    _token(
        "slack-token",
        "xoxb- xoxp- xoxa- xoxr- xoxs- xoxe- xoxe.xoxb- xoxe.xoxp- xoxo- xoxc- xoxd-",
        rf"{_URL}{{10,}}+",
        judge=_digit,
    ),
    _token("slack-token", "xapp-", rf"\d-{_URL}{{10,}}+"),
    _around(
        "webhook-url",
        "hooks.slack",
        rf"hooks\.slack(?:-gov)?\.com{_SLASH}(?:services|workflows|triggers){_SLASH}(?P<s>(?:[\w-]|{_SLASH}){{16,}}+)",
        _varied,
    ),
    _around(
        "webhook-url",
        "/webhooks",
        rf"discord(?:app)?\.com{_SLASH}api{_SLASH}(?:v\d{{1,2}}{_SLASH})?webhooks{_SLASH}"
        rf"(?P<s>\d{{5,25}}{_SLASH}[\w-]{{20,}})",
        _varied,
    ),
    _around(
        "webhook-url",
        "webhook.office.com",
        rf"webhook\.office\.com{_SLASH}webhookb2{_SLASH}(?P<s>(?:[\w@-]|{_SLASH}){{36,}}+)",
        _varied,
    ),
    _shape("telegram-token", ":A", rf"(?:{LEFT}|(?<=bot))\d{{8,10}}:A[\w-]{{34,}}+"),
    _token("stripe-key", "sk_live_ sk_test_ rk_live_ rk_test_ sk_org_", r"[A-Za-z0-9]{10,}+", judge=_digit),
    _token("stripe-key", "whsec_", rf"{_B64}{{24,}}+={{0,2}}"),
    _token("twilio-key", "SK", rf"[0-9a-f]{{32}}{END}"),
    _token("sendgrid-key", "SG.", rf"{_URL}{{20,24}}\.{_URL}{{39,}}+"),
    _token("mailgun-key", "key-", rf"[0-9a-f]{{32}}{END}", _NAME),
    _shape("mailchimp-key", "-us", rf"{LEFT}[0-9a-f]{{32}}-us\d{{1,2}}{END}"),
    _token("npm-token", "npm_", r"[A-Za-z0-9]{36,}+"),
    _around(
        "npm-token",
        "_authtoken",
        rf":_authToken[ \t]{{0,4}}=[ \t]{{0,4}}{_OPEN}(?P<s>{_VALUE}{{6,512}})",
        _given,
    ),
    _around(
        "npm-token",
        "_auth _password",
        rf":_(?:auth|password)[ \t]{{0,4}}=[ \t]{{0,4}}{_OPEN}(?P<s>{_VALUE}{{6,512}})",
        _given,
    ),
    _token("pypi-token", "pypi-AgE", rf"{_URL}{{50,}}+"),
    _token("rubygems-key", "rubygems_", rf"{_HEX}{{48,}}+"),
    _token("crates-token", "cio", rf"[A-Za-z0-9]{{32}}{END}", judge=_digit),
    _token("docker-token", "dckr_pat_ dckr_oat_", rf"{_URL}{{24,}}+"),
    _token("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", rf"{_HEX}{{64,}}+"),
    _token("fly-token", "fo1_", rf"{_URL}{{43,}}+"),
    _token(
        "fly-token",
        "fm1_ fm2_ fm1a_ fm1r_ fm2a_ fm2r_",
        r"[A-Za-z0-9+/_-]{50,}+={0,3}(?:,fm\d[ar]?_[A-Za-z0-9+/_=-]{50,}+){0,9}",
    ),
    _token("databricks-token", "dapi", rf"[0-9a-f]{{32}}(?:-\d)?{END}"),
    _token("vault-token", "hvs. hvb. hvr.", rf"{_URL}{{24,}}+"),
    _shape("terraform-token", ".atlasv1.", rf"{LEFT}[A-Za-z0-9]{{14}}\.atlasv1\.[A-Za-z0-9_=-]{{60,}}+"),
    _token("linear-key", "lin_api_ lin_oauth_", r"[A-Za-z0-9]{40,}+"),
    _token("notion-token", "ntn_", r"[A-Za-z0-9]{40,}+"),
    _token("notion-token", "secret_", rf"[A-Za-z0-9]{{43}}{END}", judge=_digit),
    _token("atlassian-token", "ATATT3 ATCTT3", r"[A-Za-z0-9_=-]{60,}+"),
    _token("airtable-token", "pat", r"[A-Za-z0-9]{14}\.[0-9a-f]{64,}+"),
    _token("figma-token", "figd_", rf"{_URL}{{40,}}+"),
    _token("postman-key", "PMAK-", rf"{_HEX}{{24}}-{_HEX}{{34,}}+"),
    _token("sentry-token", "sntrys_", r"[A-Za-z0-9+/=_-]{40,}+"),
    _token("sentry-token", "sntryu_", rf"{_HEX}{{64,}}+"),
    _token("grafana-token", "glsa_", rf"[A-Za-z0-9]{{32}}_{_HEX}{{8,}}+"),
    _token("grafana-token", "glc_", rf"{_B64}{{32,}}+={{0,2}}"),
    _token("newrelic-key", "NRAK- NRII-", r"[A-Za-z0-9_-]{27,}+"),
    _token("shopify-token", "shpat_ shpca_ shppa_ shpss_", rf"{_HEX}{{32,}}+"),
    _token("square-token", "sq0atp- sq0csp- sq0idp-", rf"{_URL}{{22,}}+"),
    _token("square-token", "EAAA", rf"{_URL}{{22,}}+", judge=_no_base64),
    _token("supabase-key", "sbp_", rf"{_HEX}{{40,}}+"),
    _token("supabase-key", "sb_secret_", rf"{_URL}{{20,}}+", judge=_digit),
    _token(
        "planetscale-token",
        "pscale_tkn_ pscale_pw_ pscale_oauth_",
        r"[A-Za-z0-9_=.-]{31,}+(?<!\.)|(?:[A-Za-z0-9_=-]{32,}+)",
    ),
    _token(
        "doppler-token",
        "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.",
        r"(?:[a-z0-9_-]{2,40}\.)?[A-Za-z0-9]{40,}+",
    ),
    _token("pulumi-token", "pul-", rf"{_HEX}{{40,}}+"),
    _token("tailscale-key", "tskey-", rf"(?:[a-z]{{2,10}}-)?{_URL}{{12,}}+", judge=_digit),
    _token("age-key", "AGE-SECRET-KEY-1", r"[0-9A-Z]{58,}+"),
    _token("onepassword-token", "ops_eyJ", r"[A-Za-z0-9+/=_-]{100,}+"),
    _token("jwt", "ey", rf"{_URL}{{10,}}+\.ey{_URL}{{6,}}+\.{_URL}{{8,}}+"),
    _shape(
        "discord-token",
        ".",
        rf"{LEFT}{_URL}{{24,28}}\.{_URL}{{6}}\.{_URL}{{27,}}+",
        _mixed,
        gate=rf"\.{_URL}{{6}}\.{_URL}{{27}}",
    ),
)

CONTEXTS: tuple[Rule, ...] = (
    _around(
        "url-credentials",
        ":// :\\",
        r":(?:\\{0,7}/){2}(?!\[REDACTED)(?P<s>[^\s\"'`<>\\/@?#:\[\]]{0,4096}"
        r"(?::(?!\d{1,5}[/?#])(?:[^\s\"'`<>\\/@]|@(?=[^\s\"'`<>\\/@]{1,256}@)){0,4096})?)"
        r"@(?=[A-Za-z0-9\[_%$*{.-])",
        _login,
    ),
    _around(
        "auth-header",
        "authorization",
        rf"authorization{_OPEN}[ \t]{{0,8}}[:=,][ \t]{{0,8}}(?:f|b|r)?{_OPEN}"
        rf"(?:basic|bearer|token|digest|apikey|api-key|key|bot|negotiate|flyv1|aws4-hmac-sha256)[ \t]{{1,8}}"
        rf"(?P<s>[^\s\"'`<>\\]{{6,}}+)(?<![.,;)])",
        _looks,
    ),
    _around(
        "auth-header",
        "authorization",
        rf"authorization{_SIGN}(?P<s>{_VALUE}{{12,}}+)(?<![.,;)])",
        _looks,
    ),
    _around(
        "auth-header",
        "authorization",
        rf"authorization{_OPEN}[ \t]{{0,8}}[:=,][ \t]{{0,8}}{_OPEN}basic[ \t]{{1,8}}"
        r"(?P<s>[A-Za-z0-9+/]{8,}+={0,2})",
        _basic,
    ),
    _around(
        "auth-header",
        "bearer",
        rf"{WORD}bearer[ \t]{{1,4}}(?P<s>[A-Za-z0-9._~+/-]{{19,}}+=*)(?<![.])",
        _looks,
    ),
    _around(
        "cookie",
        "cookie",
        rf"(?:(?<![A-Za-z])|{ESCAPED})cookie{_OPEN}[ \t]{{0,8}}:[ \t]{{0,8}}{_OPEN}"
        r"(?P<s>[\w.$%-]{1,128}=(?:[^\"'`\\\r\n=]|=(?:\"[^\"'\\\s,:{}\[\]]{1,4096}\"(?=;|[ \t]*$))?){1,8192})",
        _cookie,
    ),
    _around(
        "cookie",
        "cookie",
        r"--cookie[ =]\\{0,7}[\"']?(?P<s>[\w.$%-]{1,128}=[^\"'`\\\r\n]{1,8192})",
        _cookie,
    ),
    _around(
        "password",
        "-u --user --proxy-user",
        rf"(?:(?<![\w-])|{ESCAPED})(?:-u[ \t]{{0,4}}|--(?:proxy-)?user[ =])"
        r"\\{0,7}[\"']?[^\s:\"'`\\]{1,128}:(?P<s>[^\s\"'`\\]{1,256})",
        _curl,
    ),
    _around(
        "password",
        "mysql mariadb",
        rf"{WORD}(?:mysql\w*|mariadb)"
        r"[ \t][^\n|;&]{0,200}?(?<=[ \t])-p(?P<s>[^\s\"'`\\-][^\s\"'`\\]{5,256})",
        _looks,
    ),
    _around(
        "password",
        "sshpass docker redis-cli",
        rf"{WORD}(?:sshpass|docker[ \t]+login|redis-cli)"
        r"\b[^\n|;&]{0,200}?(?<=[ \t])-[pa][ \t]{0,4}"
        r"\\{0,7}[\"']?(?P<s>[^\s\"'`\\-][^\s\"'`\\]{5,256})",
        _looks,
    ),
    _around("password", "-pass", r"-pass(?:in|out)?[ =]pass:(?P<s>[^\s\"'`\\]{4,256})", _given),
    _around(
        "password",
        "login",
        rf"{WORD}(?:machine{_WS}{_FIELD}|default){_WS}login{_WS}{_FIELD}{_WS}(?:account{_WS}{_FIELD}{_WS})?"
        rf"password{_WS}(?P<s>{_FIELD})",
        _given,
    ),
    _around(
        "password",
        ":",
        r"(?:^|(?<=[\s`\"'])|(?<=\\[nrt]))[\w.*-]{1,255}"
        r":(?P<port>[1-9]\d{1,4}|\*):[\w.*$-]{1,63}:[\w.*@$-]{1,63}:"
        r"(?P<s>(?:[^\s:\"'`\\]|\\:){6,256})(?=$|[\s`\"']|\\{1,8}[nrt\"'])",
        _pgpass,
        gate=r":(?:[1-9][0-9]{1,4}|\*):",
    ),
    _around(
        "password",
        "</ <\\ u003c",
        r"(?:<|\\{1,8}u003[cC])[\w:.-]{0,64}?(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key)"
        r"(?:>|\\{1,8}u003[eE])[ \t]{0,8}(?P<s>[^<>\s\"\\]{6,512})[ \t]{0,8}(?:<|\\{1,8}u003[cC])\\{0,7}/",
        _six,
    ),
    _around(
        "password",
        'auth" auth\\',
        r"\"auth\\{0,7}\"[ \t]{0,4}:[ \t]{0,4}\\{0,7}\"(?P<s>[A-Za-z0-9+/]{8,}+={0,2})\\{0,7}\"",
        _looks,
    ),
)
