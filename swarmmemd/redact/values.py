"""Whether a value that was given to a name like `password` is a secret, or a placeholder, a reference, prose. Pure."""

import re
from functools import lru_cache

SHORTEST = 6
"""Shorter values are left: they are words and numbers far more often than secrets."""

LONG = 20
"""From here on a bare value of letters alone is a secret."""

_HOLE = re.compile(
    r"""<[^<>]*>?                             # <your password>
    | (?:\$\{+[^{}]*\}+)+ | \$[A-Za-z_]\w*(?::\w+)? | \$[(].* | %\w+% | %[sdv]
    | [{\[(].* | \#\{.* | !(?:ref|sub|vault|env|secret)\b.*   # {name}, [hidden], (none), !ref name
    | ([x*.•#?_-])\1*
    | .*(?:\*{3}|\.{3}|…|••|\[REDACTED).*     # cut or masked already
    | (?:your|change|replace|insert|enter|example|placeholder|dummy|todo|tbd|redacted|hidden|masked)\b.*
    | (?:your|change|replace|example|placeholder|dummy)[_-]?
      (?:me|my|the|api|access|secret|password|token|key|value|here)?(?:[_-].*)?
    | (?:x+[_-])+x+
    """,
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)
_WORD = re.compile(
    r"""none | null | nil | undefined | true | false | yes | no | on | off | empty | default | unset | missing
    | (?:pass|passwd|password|passwort|passphrase|secret|token|key|apikey|credentials?|bearer|basic)s?\d{0,2}
    | str | string | strings | number | boolean | integer | object | required | optional | invalid | expired
    | unknown | disabled | enabled | removed | revoked | rotated
    | (?:hmac-?)?sha-?\d{1,3} | md5 | base\d\d(?:url)? | oauth2? | argon2(?:id|i|d)? | (?:ssh-)?ed25519 | x25519
    | (?:ssh-)?rsa-?\d* | (?:ssh-)?dss | aes-?\d*(?:-?[cg][bc][cm])? | utf-?\d\d? | [hrep]s(?:256|384|512)
    | pbkdf2 | scrypt | bcrypt\d* | p-?\d{3} | secp\d+[kr]1 | u?int\d+ | float\d+ | bytes\d* | varchar\d*
    | (?:char|string)\d*
    """,
    re.IGNORECASE | re.VERBOSE,
)
_MIXED = re.compile(r"(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]+", re.ASCII)
"""Letters and digits, as most secrets are. That is no placeholder, no code, and named only if it is `_PLAIN`."""

_PLAIN = r"""
    \d+[-_\ ]?(?:[mun]?s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?|weeks?|months?|years?|bits?|[kmg]?i?b|bytes?
      |tokens?|chars?|characters?|zeichen)
    | AAAA[A-Z]\d[A-Za-z0-9+/=]+
"""
_NAMED_PLAINLY = re.compile(_PLAIN, re.VERBOSE)
_NAMED = re.compile(
    _PLAIN
    + r""" | ev_\w+ | (?:mission|assign)-[a-z0-9]+-[a-z0-9]+
    | sha\d{1,3}[:-].* | \d{4}-\d\d-\d\d(?:[T\ ].*)? | v?\d+(?:\.\d+)+(?:[-+.]\w{1,12})?
    | [a-z][a-z0-9+.-]{1,12}://.* | (?:arn|vault|env|op|ssm|file|ref|secret|secrets|data):.*
    | (?:~|\.{1,2}|[A-Za-z]:)?[/\\](?:[\w.@~-]+[/\\]+)*[\w.@~-]*       # a path
    | (?:[\w.@-]+/)+[\w.@-]*\.[a-z]{1,5}(?::\d+)* | [a-z][\w.@-]*(?:/[a-z_.-]+)+
    | [\w.-]+\.(?:pem|key|json|ya?ml|txt|pub|crt|cert?|env|py|tsx?|jsx?|md|toml|ini|cfg|conf|sh|go|rs|log)(?::\d+)*
    | [\w.+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[a-z]{2,10}(?:[:/].*)?
    | (?:ssh|ecdsa|sk-ssh)-[\w@.-]+\ AAAA.* | -----BEGIN.*
    """,
    re.VERBOSE | re.DOTALL,
)
_LONG_BASE64 = re.compile(r"(?=[^.]*[+=])[A-Za-z0-9+/]{20,}={0,2}|/[A-Za-z0-9+/]{39}")
"""Fits a path too, but says that it is none."""

_CODE = re.compile(
    r"""[A-Za-z_$][\w.:>?!-]*[(\[{].*                                       # a call, an index
    | [A-Za-z_]+\d{0,2}(?:(?:\??\.|->|::)[A-Za-z_]+\d{0,2})+              # self.token2
    | [A-Za-z]+(?:[_-][A-Za-z]+)*[_-]v?\d{1,3} | _+\w+                 # access_token_2, builder-1
    """,
    re.VERBOSE | re.DOTALL,
)
_PROSE = re.compile(
    r"\b(?:your|enter|the|must|required|invalid|see|from|please|forgot|forgotten|is|are|was|not|of|for|with|to|in"
    r"|der|die|das|ist|wird|nicht|ein|eine|bitte|dein|deine|ihr|mit|vergessen)\b",
    re.IGNORECASE,
)
_CJK = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_LETTER = re.compile("[A-Za-z]")
_DIGIT = re.compile(r"\d")
_SPECIAL = re.compile(r"[!@#$%^*~](?<=[A-Za-z0-9].)[!@#$%^*~]*+(?=[A-Za-z0-9])")
"""The character comes before the look behind: it is quick to see that there is none."""


def stands_for_something(value: str) -> bool:
    """A placeholder, a reference, a type, an id, a path, a hash with its name: whatever it is, not the secret."""
    if _MIXED.fullmatch(value):
        return bool(_WORD.fullmatch(value) or _NAMED_PLAINLY.fullmatch(value))
    if _HOLE.fullmatch(value) or _WORD.fullmatch(value):
        return True
    return bool(_NAMED.fullmatch(value)) and not _LONG_BASE64.fullmatch(value)


def secret_in_quotes(value: str) -> bool:
    """A quoted value is meant literally: a secret unless something says otherwise."""
    if len(value.strip()) < SHORTEST or stands_for_something(value.strip()):
        return False
    words = value.split()
    return not (len(words) > 2 and _PROSE.search(value) and not any(c.isdigit() for c in value))


@lru_cache(1024)
def secret_bare(value: str, password: bool, tight: bool = False) -> bool:
    """A value without quotes has to look like a secret: it may be a word of a sentence or a piece of a program.

    `tight`: it stood right behind a `=`, as in a file of variables.
    """
    if len(value) < SHORTEST or not _looks_secret(value, password, tight):
        return False
    if stands_for_something(value):
        return False
    return bool(_MIXED.fullmatch(value)) or not (_CODE.fullmatch(value) or _CJK.search(value))


def _looks_secret(value: str, password: bool, tight: bool) -> bool:
    if value.isdigit():
        return password
    if (_DIGIT.search(value) and _LETTER.search(value)) or _SPECIAL.search(value):
        return True
    if value.isascii() and value.isalpha():
        return _random_case(value) or (len(value) >= LONG and not value.istitle())
    return password and tight and len(value) >= LONG


def _random_case(value: str) -> bool:
    """Whether upper and lower case alternate faster than in the words of a name."""
    if value.islower() or value.isupper():
        return False
    return len(value) / len(_CAMEL.findall(value)) < 2.5
