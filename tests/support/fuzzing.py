"""What reads what others wrote, as functions of bytes; and texts that are made to be slow."""

from collections.abc import Callable

import msgspec

from swarmmemd.checkpoint import decode, own_part, parse
from swarmmemd.handoff import read_handoff
from swarmmemd.inbox import Request
from swarmmemd.model import WorkerId
from swarmmemd.record import decode as decode_line
from swarmmemd.redact import Redactor
from swarmmemd.redact.files import safe_lines, safe_text
from swarmmemd.render.summary import Summary, merge
from swarmmemd.sources.ledger import parse_ledger
from swarmmemd.sources.portion import Added, portion
from swarmmemd.sources.roster import parse_roster
from swarmmemd.sources.rows import Row, message
from swarmmemd.sources.runtime import parse_runtime

WORKER = WorkerId("builder-1")


def _chat(role: str, prefix: str = "") -> Callable[[bytes], object]:
    """One look at one row."""

    def read(data: bytes) -> object:
        content = prefix + data.decode("utf-8", "replace")
        return message(Row(id=1, session_id="main", role=role, content=content, timestamp=1.0), WORKER, {})

    return read


def _checkpoint(data: bytes) -> object:
    return parse(own_part(decode(data.decode("utf-8", "replace"))), WORKER)


def _handoff(data: bytes) -> object:
    return read_handoff(data.decode("utf-8", "replace"), WORKER)


def _at_rest(data: bytes) -> object:
    return portion(Added(0, b"", data, False, True), None, 1.0)


def _growing(data: bytes) -> object:
    cut = len(data) // 3
    return portion(Added(cut, data[:cut][-4096:], data[cut:], True, False), None, 1.0)


def _events(data: bytes) -> object:
    return [decode_line(line, WORKER) for line in data.split(b"\n") if line]


def _request(data: bytes) -> object:
    try:
        return msgspec.json.decode(data, type=Request)
    except (msgspec.DecodeError, RecursionError):
        return None


def _summary(data: bytes) -> object:
    from swarmmemd.memory.summaries import summary_of
    from swarmmemd.model import MissionId
    from swarmmemd.state import MissionState

    shown: Summary = summary_of(MissionState(mission=MissionId("mission-1")))
    return merge(data.decode("utf-8", "surrogateescape"), shown, lambda section, line: False)


READERS: dict[str, Callable[[bytes], object]] = {
    "runtime.json": lambda data: parse_runtime(data, 0),
    "ledger": lambda data: parse_ledger(data, 0),
    "roster": lambda data: parse_roster(data, 0),
    "question": _chat("user"),
    "answer": _chat("assistant"),
    "answer in JSON": _chat("assistant", "\0json:"),
    "checkpoint": _checkpoint,
    "handoff": _handoff,
    "transcript": _at_rest,
    "growing transcript": _growing,
    "events.jsonl": _events,
    "SUMMARY.md": _summary,
    "request": _request,
    "redaction": lambda data: safe_text(Redactor(), data),
    "archive": lambda data: safe_lines(Redactor(), data),
}
"""What is read, by the name of its source."""

_PIECES: dict[str, bytes] = {
    "nothing but NULs": b"\0",
    "line breaks": b"\n",
    "carriage returns": b"\r",
    "spaces": b" ",
    "open brackets": b"[",
    "open objects": b'{"a":',
    "backslashes": b"\\",
    "quotes": b'"',
    "asterisks": b"*",
    "backticks": b"```\n",
    "quoted lines": b"> ",
    "hashes": b"# ",
    "labels": b"STATE: DONE\n",
    "labels in a line": b"STATE: ",
    "half blocks": b"STATE: BLOCKED\nRESULT: x\n\n",
    "announcements": b"Example:\n```\nSTATE: DONE\n",
    "escapes": b"\x1b[",
    "redrawn lines": b"50%\r",
    "summaries": b"[CONTEXT SUMMARY]: a\n",
    "headings of handoffs": "# Handoff — builder-1 — mission-1\n".encode(),
    "keys": b"api_key=",
    "letters": b"a",
    "base64": b"QUJD",
    "dots": b"a.b.",
    "dashes": b"-----BEGIN ",
    "colons": b"a:b@",
    "urls": b"https://a:b",
    "sections": b"## Checkpoints\n\n- x\n",
    "yaml": b"- id: a\n  ",
    "yaml anchors": b"&a [*a,",
    "no UTF-8": b"\xff\xfe",
    "records": b'{"at":"2026-05-04T09:00:00.000Z","type":"note"}\n',
}
_LISTED = b'{"missions":['
_RECORD = (
    b'{"at":"2026-05-04T09:00:00.000Z","type":"checkpoint","workerId":"builder-1","missionId":"m",'
    b'"assignmentId":null,"summary":"s","event":{"state":"DONE"},"id":"ev_1"}\n'
)
_FRAMED: dict[str, tuple[bytes, bytes, bytes]] = {
    "missions": (_LISTED, b'{"id":"m","state":"executing"},', b"0]}"),
    "numbers": (_LISTED, b"0,", b"0]}"),
    "nested lists": (_LISTED, b"[" * 200 + b"]" * 200 + b",", b"0]}"),
    "halved pairs": (_LISTED, b'{"a":"\\ud83e"},', b"0]}"),
    "a long number of JSON": (b'{"a":', b"9", b"}"),
    "a long number of YAML": (b"workers: ", b"1:", b"1\n"),
    "sets": (b"workers:\n", b"- !!set {a, b}\n", b""),
    "merge keys": (b"a: &a {x: 1}\nworkers:\n", b"- <<: *a\n", b""),
    "workers": (b"workers:\n", b"- id: w\n  role: Builder\n  specialty: paths\n", b""),
    "lines of a value": (b"STATE: DONE\nRESULT: x\nBLOCKER: x\nNEXT_ACTION: y\n", b"x\n", b""),
    "states in another case": (b"STATE: DONE\n", b"state:\n", b"\n"),
    "erased lines": (b"", b"\x1b[K\n", b""),
    "empty records": (b"", b"{}\n", b""),
    "records of ours": (b"", _RECORD, b""),
    "secrets": (b"", b"api_key=abc123def ", b""),
    "short names": (b"", b"pw=", b""),
    "beginnings of tokens": (b"", b"ey ", b""),
    "secrets of many kinds": (
        b"",
        b"password: hunter22, token=abc123456 ghp_abcdefghijklmnopqrstuvwxyz0123456789AB ",
        b"",
    ),
}
"""The same between a beginning and an end: what a reader takes for whole."""

SLOW = (*_PIECES, *_FRAMED)
"""Texts of one piece again and again: what makes a careless reader quadratic."""


def slow(name: str, size: int) -> bytes:
    """So many bytes of it."""
    if name in _FRAMED:
        head, piece, tail = _FRAMED[name]
        return head + piece * ((size - len(head) - len(tail)) // len(piece)) + tail
    piece = _PIECES[name]
    return (piece * (size // len(piece) + 1))[:size]
