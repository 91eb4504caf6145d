"""What the lines above a block say of it: an example, or whose it is. docs/contracts.md, "Checkpoints"."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain, takewhile

from swarmmemd.checkpoint.lines import EDGE, is_row
from swarmmemd.checkpoint.scanning import Above, Label, Scanned, above
from swarmmemd.model import WorkerId

_READ = 300
_NAMING_LINES = 2
_COLONS = (":", "：")
_EXAMPLE = re.compile(r"\b(?:examples?|samples?)\b", re.IGNORECASE)
_TITLE = re.compile(r"\W*checkpoint\W*", re.IGNORECASE)
_MARKS = re.compile(r"[*`#>\"“”\[\]()]+")

_ID = r"(?P<id>[A-Za-z0-9][A-Za-z0-9_-]{0,63}+)"
_FROM = re.compile(
    rf"\bcheckpoint (?:report )?(?:from|by|of) (?:the )?(?:worker |agent )?{_ID}(?P<end> ?[:：.]?$)?", re.I
)
_FIELD = re.compile(rf"^(?:the )?(?:worker|agent|from|author) ?[:：=] ?{_ID}", re.I)
_WORKER = re.compile(rf"\b(?:worker|agent) {_ID}", re.I)
_WHOSE = re.compile(rf"\b{_ID}['’]s (?:\w+ )?(?:checkpoint|report|answer|block|status|reply|message)\b", re.I)
_AT = re.compile(rf"^@{_ID}")
_SAYS = re.compile(
    rf"\b{_ID} (?:has |had |just |also |then )?(?:report(?:s|ed)|sa(?:id|ys)|wr(?:ote|ites)|repli(?:ed|es)"
    r"|answer(?:s|ed)|return(?:s|ed)|sen(?:t|ds)|post(?:s|ed)|finish(?:es|ed)|handed)\b",
    re.I,
)
_MINE = re.compile(r"\b(?:my|mine)(?: \w+){0,2} (?:checkpoint|report|block|answer|status)\b", re.I)
_SHAPED = re.compile(r"(?=.*[a-z])(?=.*[0-9_-])(?!.*-$)[a-z0-9].*", re.I)
_NO_WORKER = re.compile(
    r"(?:task|phase|step|mission|assign|assignment|part|round|day|sprint|stage|run|attempt|turn|commit|branch"
    r"|session|issue|pr|milestone|iteration|version|v)(?:[-_]?[0-9].*|-.*)?|[0-9]{4}-[0-9-]*",
    re.I,
)
_PLAIN = (
    "i it we he she they you this that these those which who what there here me my myself us mine now today "
    "yesterday above below earlier before last previous final memory disk scratch self the a an all none "
    "and also then test tests ci pytest build user worker agent mission task let is was"
)
_PLAIN_WORDS = frozenset(_PLAIN.split())


def is_refused(state: Label, scanned: Scanned, worker: WorkerId | None) -> bool:
    """Whether the lines above call the block an example or that of another worker."""
    announcing = list(takewhile(_announces, above(state, scanned)))
    return _is_example(announcing) or _is_of_another(announcing, worker, state.quote > 0)


def _announces(line: Above) -> bool:
    """A line that continues a value of the block before announces nothing, unless it ends in a colon."""
    return not line.glued or _plain(line.text).endswith(_COLONS)


def _is_example(lines: Iterable[Above]) -> bool:
    for line in lines:
        text = _plain(line.text)
        if _EXAMPLE.search(text):
            return True
        if not is_row(line.text) and not _TITLE.fullmatch(text):
            return False
    return False


def _is_of_another(lines: Iterable[Above], worker: WorkerId | None, quoted: bool) -> bool:
    read = 0
    for line in lines:
        text = _plain(line.text)
        if _MINE.search(text):
            return False
        names = {name.casefold() for name in _names(text, quoted)}
        if names - {worker.casefold() if worker else ""}:
            return True
        read += not is_row(line.text)
        if names or read == _NAMING_LINES:
            return False
    return False


def _plain(text: str) -> str:
    """The end of a line without marks, a table row as `head: value`."""
    if is_row(text):
        text = text[:_READ].strip(EDGE + "|").replace("|", ":", 1)
    return " ".join(_MARKS.sub(" ", text[-_READ:]).split()).lstrip("-+•:. ")


def _names(text: str, quoted: bool) -> Iterator[str]:
    """The workers whom the line names as the author of what follows.

    Whoever is only mentioned above an own block is not its author: hence the beginning or the colon.
    """
    announces = quoted or text.endswith(_COLONS)
    for pattern in (_FIELD, _AT):
        yield from (found["id"] for found in pattern.finditer(text) if _is_name(found, plain=True))
    for found in _FROM.finditer(text):
        if (announces or found.start() == 0) and _is_name(found, plain=found["end"] is not None):
            yield found["id"]
    if announces:
        for found in chain(_WORKER.finditer(text), _WHOSE.finditer(text), _SAYS.finditer(text)):
            if _is_name(found, plain=found.re is _SAYS and found.start() == 0):
                yield found["id"]


def _is_name(found: re.Match[str], *, plain: bool) -> bool:
    name = found["id"]
    if _NO_WORKER.fullmatch(name) or name.lower() in _PLAIN_WORDS:
        return False
    return plain or _SHAPED.fullmatch(name) is not None
