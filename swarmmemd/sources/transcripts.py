"""Plain-text output of one worker, read as it grows: checkpoint files, logs, what `tmux pipe-pane` writes.

Read by offset, never kept open. A file that became shorter, or whose text is another one, is read from its
beginning. docs/contracts.md, "Transcripts".
"""

import contextlib
import hashlib
import os
import stat as mode
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from math import inf
from pathlib import Path

import msgspec

from swarmmemd.durable import Directory, open_file
from swarmmemd.observation import TranscriptPosition, TranscriptText
from swarmmemd.sources.file import YOUNG, Signature, is_young, signature
from swarmmemd.sources.portion import STILL, Added, Held, Left, last_words, left, portion

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
_RETRY = 10.0
_LONG_LINE = "a line longer than 1 MiB was skipped"
_MAGIC = frozenset("*?[")

_Inode = tuple[int, int]


class _File(msgspec.Struct):
    """What the last look knew of one file. `wake`: when it must be looked at without a change. `position`: the one
    that the caller should have by now. `left`: what was seen and not given out. `rests`: it stands still.
    `succeeded`: it was renamed, and its writer writes another one."""

    signature: Signature
    since: float
    wake: float
    position: TranscriptPosition | None = None
    held: Held | None = None
    left: Left | None = None
    rests: bool = False
    succeeded: bool = False
    trouble: str = ""


class _Matches(msgspec.Struct):
    """What the globs match: the files to read, and why others are not."""

    files: dict[str, Signature]
    troubles: dict[str, str]

    def refuse(self, path: str, why: str) -> None:
        if len(self.troubles) < _MOST_FILES:
            self.troubles[_encodable(path)] = why


class _Beginnings:
    """The names in one folder with which globs begin."""

    def __init__(self, folder: Path, globs: Iterable[str]) -> None:
        names = {glob.partition("/")[0] for glob in globs}
        self._any = any(not _MAGIC.isdisjoint(name) for name in names)
        self._paths = tuple(f"{folder}/{name}" for name in names)

    def may_be(self) -> bool:
        """False where it is known that nothing has one of the names."""
        return self._any or any(map(_may_be, self._paths))


class TranscriptSource:
    """The transcripts of one worker. Raises nothing: what cannot be read is in `troubles`, by its path.

    `globs` are below the profile, checked by the configuration. `due` says when to look again without a hint
    (monotonic seconds), None if there is no need. `present` are the files that are read. `silent`: something can be
    written of which a watch of the profile's folder tells nothing.
    """

    def __init__(self, profile: Path, globs: tuple[str, ...]) -> None:
        self._profile = profile
        self._globs = globs
        self._beginnings = _Beginnings(profile, globs)
        self._deeper = _Beginnings(profile, [glob for glob in globs if "/" in glob])
        self._files: dict[str, _File] = {}
        self._renamed: dict[_Inode, str] = {}
        self._former: dict[_Inode, str] = {}
        self._let_go: set[_Inode] = set()
        self.due: float | None = None
        self.troubles: dict[str, str] = {}
        self.present: frozenset[str] = frozenset()
        self.silent = True

    def look(
        self, positions: Mapping[str, TranscriptPosition], now: float, wall: float
    ) -> tuple[TranscriptText, ...]:
        """What came since `positions` (by path), in the order in which the files were written.

        A position that is not the one given out last is believed: its file is read from there again.
        """
        matches = self._matches()
        self._miss(matches, positions)
        self._follow(matches)
        self.troubles = matches.troubles
        texts = self._gone(matches, positions)
        self._files = self._known(matches, now)
        self.present = frozenset(matches.files)
        self.silent = bool(self.present) or self._deeper.may_be()
        inodes = {(known.device, known.inode): known for known in positions.values()}
        budget = _LOOK
        for name, found in sorted(matches.files.items(), key=lambda item: (item[1].mtime_ns, item[0])):
            file, given = self._files[name], positions.get(name)
            inode = _inode(found)
            succeeded, file.succeeded = file.succeeded, self._has_successor(inode, matches)
            if file.wake > now and file.position == given and succeeded == file.succeeded:
                continue
            if budget <= 0:
                file.wake = now
                continue
            added, size = self._read(name, file, given, inodes.get(inode), now, wall)
            budget -= size
            texts += added
            if file.rests:
                self._former.pop(inode, None)
            if inode in self._renamed and file.rests:
                self._let_it_go(inode)
                del self._files[name]
        self._settle()
        return tuple(texts)

    def changed(self) -> bool:
        """Whether a stat shows anything that the last look did not: for the sweep."""
        if not (self._files or self._renamed or self._beginnings.may_be()):
            return False  # so it is with most workers, and then nothing more is asked
        matches = self._matches()
        self._follow(matches)
        return matches.files != {name: file.signature for name, file in self._files.items()}

    def forget(self) -> None:
        """The next look reads every file again from the position that it is given."""
        self._files.clear()

    # Files that are where no glob looks any more

    def _miss(self, matches: _Matches, positions: Mapping[str, TranscriptPosition]) -> None:
        """Notes the files that were read and have another name now, if any, and which name each had: those that no
        glob matches any more, and those that one still matches, until they have stood still."""
        known = {(known.device, known.inode): name for name, known in positions.items()}
        known |= {_inode(file.signature): name for name, file in self._files.items()}
        here = set(map(_inode, matches.files.values()))
        self._let_go &= known.keys() - here
        for inode in known.keys() - here - self._let_go:
            self._renamed.setdefault(inode, known[inode])
        self._renamed = {inode: name for inode, name in self._renamed.items() if inode not in here}
        moved = {
            inode: known[inode]
            for name, found in matches.files.items()
            if known.get(inode := _inode(found), name) != name
        }
        self._former = {inode: name for inode, name in (self._former | moved).items() if inode in here}

    def _follow(self, matches: _Matches) -> None:
        """Adds the renamed files to the matches, as long as they stand in their folder and are not let go."""
        for above in {_above(name) for name in self._renamed.values()}:
            wanted = {inode for inode, name in self._renamed.items() if _above(name) == above}
            with (
                contextlib.suppress(OSError),
                Directory.root(self._profile) as root,
                root.descend(tuple(above.split("/")[:-1])) as here,
            ):
                for name in here.names():
                    _add_one_of(wanted, here, name, above + name, matches)

    def _gone(self, matches: _Matches, positions: Mapping[str, TranscriptPosition]) -> list[TranscriptText]:
        """The last words of the files that are nowhere any more; these are let go."""
        here = set(map(_inode, matches.files.values()))
        for inode in self._renamed.keys() - here:
            self._let_it_go(inode)
        texts: list[TranscriptText] = []
        for name, file in self._files.items():
            if file.left is not None and name not in matches.files and _inode(file.signature) not in here:
                texts += _last_words(name, file.left, positions.get(name) or _nowhere(file.signature))
        return texts

    def _has_successor(self, inode: _Inode, matches: _Matches) -> bool:
        """Whether the writer of a renamed file has begun another one under the old name."""
        former = self._renamed.get(inode) or self._former.get(inode, "")
        successor = matches.files.get(former)
        return successor is not None and _inode(successor) != inode and successor.size > 0

    def _let_it_go(self, inode: _Inode) -> None:
        del self._renamed[inode]
        self._let_go.add(inode)

    def _settle(self) -> None:
        for name, file in self._files.items():
            if file.trouble:
                self.troubles[name] = file.trouble
        wake = min((file.wake for file in self._files.values()), default=inf)
        self.due = None if wake == inf else wake

    def _known(self, matches: _Matches, now: float) -> dict[str, _File]:
        """The files that are there, with what is known of each."""
        left = {_inode(file.signature): file.left for file in self._files.values()}
        here = set(map(_inode, matches.files.values()))
        files: dict[str, _File] = {}
        for name, found in matches.files.items():
            file = self._files.get(name)
            if file is None or _inode(file.signature) in here - {_inode(found)}:
                file = _File(found, now, now, left=left.get(_inode(found)))
            elif file.signature != found:
                file.signature, file.since, file.wake = found, now, now
            files[name] = file
        return files

    def _read(
        self,
        name: str,
        file: _File,
        given: TranscriptPosition | None,
        moved: TranscriptPosition | None,
        now: float,
        wall: float,
    ) -> tuple[list[TranscriptText], int]:
        """The new text of one file, and how many bytes were read for it."""
        *folders, last = name.split("/")
        try:
            with Directory.root(self._profile) as root, root.descend(tuple(folders)) as folder:
                descriptor = open_file(folder, last, os.O_RDONLY | os.O_NOCTTY)
            try:
                reading = _Reading(descriptor, given, moved, _inode(file.signature) in self._renamed)
                return reading.take(name, file, given, now, wall), reading.size
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            file.wake = now
        except OSError as error:
            file.trouble, file.wake = _reason(error), now + _RETRY
        file.position = given
        return [], 0

    def _matches(self) -> _Matches:
        matches = _Matches({}, {})
        if not self._beginnings.may_be():
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


class _Reading:
    """One open file, and where in it reading goes on."""

    def __init__(
        self,
        descriptor: int,
        given: TranscriptPosition | None,
        moved: TranscriptPosition | None,
        renamed: bool,
    ) -> None:
        self.descriptor = descriptor
        self.found = os.fstat(descriptor)
        self.size = 0
        known = next((one for one in (given, moved) if one is not None and self._is_same(one)), None)
        self.begins_anew = known is None and given is not None
        self.offset = known.offset if known else 0
        self.skipping = known is not None and known.skipping
        self.renamed = renamed

    def take(
        self, name: str, file: _File, given: TranscriptPosition | None, now: float, wall: float
    ) -> list[TranscriptText]:
        """Reads on and notes in `file` what the next look needs."""
        if self.renamed and not (self.offset or (file.left and self._there(file.left) == file.left.data)):
            file.rests = True  # another file, which has the inode of one that is gone
            return []
        seen = signature(self.found)
        if seen != file.signature:
            file.signature, file.since = seen, now
        if self.begins_anew or file.trouble != _LONG_LINE:
            file.trouble = ""
        age = wall - self.found.st_mtime
        waits = min(STILL - (now - file.since), STILL - age if age >= 0 else STILL)
        last = self._last_words(name, file, waits)
        given = last[0].position if last else given
        undecided = file.left is not None
        begin = self.offset
        data = os.pread(self.descriptor, _PORTION, begin)
        self.size = len(data)
        more = begin + len(data) < self.found.st_size and bool(data)
        file.rests = waits <= 0 and not more
        data = self._pass_over(data, more, file)
        still = file.rests or (file.succeeded and not more)
        added = Added(self.offset, self._above(), data, more, still, self.renamed)
        read = portion(added, file.held, now)
        self.offset += read.size
        file.held = read.held
        file.wake = now if more else _wake(read.held, waits, is_young(self.found.st_mtime_ns, wall), now)
        if not undecided:
            file.left = left(added, read, self.found.st_mtime_ns // 1_000_000)
        if (undecided or self.renamed) and not file.rests:
            file.wake = min(file.wake, now + max(waits, 0))
        return last + self._given_out(name, read.text, read.whole, file, given)

    def _last_words(self, name: str, file: _File, waits: float) -> list[TranscriptText]:
        """What waited in the text that stood here before, where it is another one now. One that is as far as it goes
        the same may be on its way."""
        if file.left is None:
            return []
        there = self._there(file.left)
        if there != file.left.data and file.left.data.startswith(there) and waits > 0:
            return []
        before, file.left = file.left, None
        return [] if there == before.data else _last_words(name, before, self._position())

    def _there(self, before: Left) -> bytes:
        return os.pread(self.descriptor, len(before.data), before.offset)

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
    ) -> list[TranscriptText]:
        position = self._position()
        file.position = given
        if position.offset == 0 or position == given:
            return []
        file.position = position
        written = self.found.st_mtime_ns // 1_000_000
        return [
            TranscriptText(
                path=name, text=text, written=written, position=position, whole=whole, again=self.begins_anew
            )
        ]

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


def _above(name: str) -> str:
    """The folder of that name, with its stroke; empty for the profile."""
    return name[: name.rfind("/") + 1]


def _inode(found: Signature) -> _Inode:
    return found.device, found.inode


def _nowhere(found: Signature) -> TranscriptPosition:
    """The position in a file of which nothing was given out."""
    nothing = hashlib.blake2b(digest_size=10).hexdigest()
    return TranscriptPosition(
        device=found.device, inode=found.inode, offset=0, head_size=0, head=nothing, tail=nothing
    )


def _last_words(name: str, before: Left, position: TranscriptPosition) -> list[TranscriptText]:
    text = last_words(before)
    whole = TranscriptText(path=name, text=text, written=before.written, position=position, whole=True)
    return [whole] if text else []


def _wake(held: Held | None, waits: float, young: bool, now: float) -> float:
    """When a block that waits is at its end, or when a file that was just written may have changed unseen."""
    wake = now + YOUNG if young else inf
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


def _add_one_of(wanted: set[_Inode], here: Directory, name: str, path: str, matches: _Matches) -> None:
    with contextlib.suppress(OSError):
        found = os.stat(name, dir_fd=here.descriptor, follow_symlinks=False)
        if (found.st_dev, found.st_ino) in wanted:
            _add(path, found, matches)


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
