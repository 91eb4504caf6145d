"""Plain-text output of one worker, read as it grows: checkpoint files, logs, what `tmux pipe-pane` writes.

Read by offset, never kept open. A file that became shorter, or whose text is another one, is read from its
beginning. docs/contracts.md, "Transcripts".
"""

import hashlib
import os
import stat as mode
from collections.abc import Mapping
from fnmatch import fnmatchcase
from math import inf
from pathlib import Path

import msgspec

from swarmmemd.durable import Directory, open_file
from swarmmemd.observation import TranscriptPosition, TranscriptText
from swarmmemd.sources.file import Signature, signature
from swarmmemd.sources.portion import STILL, Added, Held, portion

_PORTION = 1 << 20
"""Bytes. The most that one look reads of one file, and the longest line."""
_LOOK = 4 << 20
"""Bytes. The most that one look reads of all."""
_MOST_FILES = 200
_MOST_MATCHES = 5_000
_MARKED = 1024
"""Bytes at the beginning, and before the offset, by which a file is known again."""
_ABOVE = 4096
"""Bytes above the offset in which the announcement of a block is looked for."""
_YOUNG = 0.02
"""Seconds. A file written less than this ago can change again within one tick of its clock."""
_RETRY = 10.0
_LONG_LINE = "a line longer than 1 MiB was skipped"
_MAGIC = frozenset("*?[")


class _File(msgspec.Struct):
    """What the last look knew of one file. `wake`: when it must be looked at without a change. `position`: the one
    that the caller should have by now."""

    signature: Signature
    since: float
    wake: float
    position: TranscriptPosition | None = None
    held: Held | None = None
    trouble: str = ""


class _Matches(msgspec.Struct):
    """What the globs match: the files to read, and why others are not."""

    files: dict[str, Signature]
    troubles: dict[str, str]

    def refuse(self, path: str, why: str) -> None:
        if len(self.troubles) < _MOST_FILES:
            self.troubles[_encodable(path)] = why


class TranscriptSource:
    """The transcripts of one worker. Raises nothing: what cannot be read is in `troubles`, by its path.

    `globs` are below the profile, checked by the configuration. `due` says when to look again without a hint
    (monotonic seconds), None if there is no need. `present` are the files that are read.
    """

    def __init__(self, profile: Path, globs: tuple[str, ...]) -> None:
        self._profile = profile
        self._place = os.fspath(profile)
        self._globs = globs
        self._beginnings = tuple({glob.partition("/")[0] for glob in globs})
        self._files: dict[str, _File] = {}
        self.due: float | None = None
        self.troubles: dict[str, str] = {}
        self.present: frozenset[str] = frozenset()

    def look(
        self, positions: Mapping[str, TranscriptPosition], now: float, wall: float
    ) -> tuple[TranscriptText, ...]:
        """What came since `positions` (by path), in the order in which the files were written.

        A position that is not the one given out last is believed: its file is read from there again.
        """
        matches = self._matches()
        self.troubles = matches.troubles
        self._files = {name: file for name, file in self._files.items() if name in matches.files}
        self.present = frozenset(matches.files)
        inodes = {(known.device, known.inode): known for known in positions.values()}
        texts: list[TranscriptText] = []
        budget = _LOOK
        for name, found in sorted(matches.files.items(), key=lambda item: (item[1].mtime_ns, item[0])):
            file = self._file(name, found, now)
            given = positions.get(name)
            if file.wake > now and file.position == given:
                continue
            if budget <= 0:
                file.wake = now
                continue
            moved = inodes.get((found.device, found.inode))
            text, size = self._read(name, file, given, moved, now, wall)
            budget -= size
            texts += [text] if text is not None else []
        self._settle()
        return tuple(texts)

    def changed(self) -> bool:
        """Whether a stat shows anything that the last look did not: for the sweep."""
        return self._matches().files != {name: file.signature for name, file in self._files.items()}

    def forget(self) -> None:
        """The next look reads every file again from the position that it is given."""
        self._files.clear()

    def _settle(self) -> None:
        for name, file in self._files.items():
            if file.trouble:
                self.troubles[name] = file.trouble
        wake = min((file.wake for file in self._files.values()), default=inf)
        self.due = None if wake == inf else wake

    def _file(self, name: str, found: Signature, now: float) -> _File:
        file = self._files.get(name)
        if file is None:
            file = self._files[name] = _File(found, now, now)
        elif file.signature != found:
            file.signature, file.since, file.wake = found, now, now
        return file

    def _read(
        self,
        name: str,
        file: _File,
        given: TranscriptPosition | None,
        moved: TranscriptPosition | None,
        now: float,
        wall: float,
    ) -> tuple[TranscriptText | None, int]:
        """The new text of one file, and how many bytes were read for it."""
        *folders, last = name.split("/")
        try:
            with Directory.root(self._profile) as root, root.descend(tuple(folders)) as folder:
                descriptor = open_file(folder, last, os.O_RDONLY | os.O_NOCTTY)
            try:
                reading = _Reading(descriptor, given, moved)
                return reading.take(name, file, given, now, wall), reading.size
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            file.wake = now
        except OSError as error:
            file.trouble, file.wake = _reason(error), now + _RETRY
        file.position = given
        return None, 0

    def _matches(self) -> _Matches:
        matches = _Matches({}, {})
        if not self._may_match():
            return matches
        try:
            with Directory.root(self._profile) as root:
                for glob in self._globs:
                    _match(root, glob.split("/"), "", matches)
        except FileNotFoundError:
            pass
        except OSError as error:
            matches.refuse(".", _reason(error))
        if len(matches.files) > _MOST_FILES:
            newest = sorted(matches.files.items(), key=lambda item: (item[1].mtime_ns, item[0]))
            why = f"{len(newest)} files match, only the {_MOST_FILES} written last are read"
            matches.files = dict(newest[-_MOST_FILES:])
            matches.troubles["transcripts"] = why
        return matches

    def _may_match(self) -> bool:
        """False where nothing has the name with which a glob begins: of most workers there is nothing."""
        return any(
            not _MAGIC.isdisjoint(name) or _may_be(f"{self._place}/{name}") for name in self._beginnings
        )


class _Reading:
    """One open file, and where in it reading goes on."""

    def __init__(
        self, descriptor: int, given: TranscriptPosition | None, moved: TranscriptPosition | None
    ) -> None:
        self.descriptor = descriptor
        self.found = os.fstat(descriptor)
        self.size = 0
        known = next((one for one in (given, moved) if one is not None and self._is_same(one)), None)
        self.begins_anew = known is None and given is not None
        self.offset = known.offset if known else 0
        self.skipping = known is not None and known.skipping

    def take(
        self, name: str, file: _File, given: TranscriptPosition | None, now: float, wall: float
    ) -> TranscriptText | None:
        """Reads on and notes in `file` what the next look needs."""
        seen = signature(self.found)
        if seen != file.signature:
            file.signature, file.since = seen, now
        if self.begins_anew or file.trouble != _LONG_LINE:
            file.trouble = ""
        begin = self.offset
        data = os.pread(self.descriptor, _PORTION, begin)
        self.size = len(data)
        more = begin + len(data) < self.found.st_size and bool(data)
        age = wall - self.found.st_mtime
        waits = min(STILL - (now - file.since), STILL - age if age >= 0 else STILL)
        data = self._pass_over(data, more, file)
        added = Added(self.offset, self._above(), data, more, waits <= 0 and not more)
        read = portion(added, file.held, now)
        self.offset += read.size
        file.held = read.held
        file.wake = now if more else _wake(read.held, waits, age, now)
        return self._given_out(name, read.text, read.whole, file, given)

    def _pass_over(self, data: bytes, more: bool, file: _File) -> bytes:
        """The data behind the rest of a line that is too long."""
        if not self.skipping and not (more and len(data) == _PORTION and b"\n" not in data):
            return data
        file.trouble = _LONG_LINE
        end = data.find(b"\n") + 1
        self.skipping = end == 0
        self.offset += end or len(data)
        return data[end:] if end else b""

    def _above(self) -> bytes:
        """The complete lines right above the offset, and what stands of the line in which it is."""
        if self.skipping:
            return b""
        start = max(0, self.offset - _ABOVE)
        above = os.pread(self.descriptor, self.offset - start, start)
        return above.partition(b"\n")[2] if start else above

    def _given_out(
        self, name: str, text: str, whole: bool, file: _File, given: TranscriptPosition | None
    ) -> TranscriptText | None:
        position = self._position()
        file.position = given
        if position.offset == 0 or position == given:
            return None
        file.position = position
        written = self.found.st_mtime_ns // 1_000_000
        return TranscriptText(
            path=name, text=text, written=written, position=position, whole=whole, again=self.begins_anew
        )

    def _position(self) -> TranscriptPosition:
        marked = min(_MARKED, self.offset)
        return TranscriptPosition(
            device=self.found.st_dev,
            inode=self.found.st_ino,
            offset=self.offset,
            head_size=marked,
            head=self._digest(0, marked),
            tail=self._digest(self.offset - marked, marked),
            skipping=self.skipping,
        )

    def _is_same(self, known: TranscriptPosition) -> bool:
        if (known.device, known.inode) != (self.found.st_dev, self.found.st_ino):
            return False
        marked = min(_MARKED, known.offset)
        return (
            known.offset <= self.found.st_size
            and self._digest(0, known.head_size) == known.head
            and self._digest(known.offset - marked, marked) == known.tail
        )

    def _digest(self, start: int, size: int) -> str:
        return hashlib.blake2b(os.pread(self.descriptor, size, start), digest_size=10).hexdigest()


def _wake(held: Held | None, waits: float, age: float, now: float) -> float:
    """When a block that waits is at its end, or when a file that was just written may have changed unseen."""
    wake = now + _YOUNG if 0 <= age < _YOUNG else inf
    return min(wake, now + waits, held.since + STILL) if held is not None else wake


def _match(here: Directory, parts: list[str], above: str, matches: _Matches) -> None:
    """Adds what the glob's parts match below the folder. Links are followed nowhere."""
    part, *rest = parts
    names = [part]
    if magic := not _MAGIC.isdisjoint(part):
        names = [name for name in here.names() if _fits(name, part)]
    if len(names) > _MOST_MATCHES:
        matches.refuse(
            above or ".", f"more than {_MOST_MATCHES} names match, only the last ones are looked at"
        )
    for name in names[-_MOST_MATCHES:]:
        path = above + name
        try:
            found = os.stat(name, dir_fd=here.descriptor, follow_symlinks=False)
            if rest and mode.S_ISDIR(found.st_mode):
                with here.child(name) as below:
                    _match(below, rest, path + "/", matches)
            elif not rest or (not magic and mode.S_ISLNK(found.st_mode)):
                _add(path, found, matches)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            matches.refuse(path, _reason(error))


def _fits(name: str, part: str) -> bool:
    """As a shell matches: a hidden name only where the glob begins with a dot."""
    return fnmatchcase(name, part) and (not name.startswith(".") or part.startswith("."))


def _add(path: str, found: os.stat_result, matches: _Matches) -> None:
    # The chat database has one reader, which opens it in one way only.
    if path.rpartition("/")[2].casefold().startswith("state.db") or mode.S_ISDIR(found.st_mode):
        return
    if mode.S_ISLNK(found.st_mode):
        matches.refuse(path, "a link, not followed")
    elif not mode.S_ISREG(found.st_mode):
        matches.refuse(path, "not a regular file")
    elif _encodable(path) != path:
        matches.refuse(path, "its name is not UTF-8")
    else:
        matches.files[path] = signature(found)


def _may_be(path: str) -> bool:
    """False where it is known that nothing stands there."""
    try:
        os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True


def _encodable(path: str) -> str:
    return path.encode("utf-8", "replace").decode()


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
