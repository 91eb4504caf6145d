"""What handoff files show: a new version of somebody else's is an event; one that is missing is rendered.

docs/contracts.md, "Handoffs".
"""

import msgspec

from swarmmemd.derive.draft import Draft, Version
from swarmmemd.fold import MIRRORED, event_state, kept, with_mission
from swarmmemd.handoff import Author, Handoff, mirror, rank, read_handoff, render_handoff, sha256
from swarmmemd.model import CheckpointState, EventType, MissionId
from swarmmemd.observation import HandoffFile
from swarmmemd.state import Kept, MissionState


def look_at_handoffs(draft: Draft) -> None:
    """Each file is kept as a version; a usable one that the daemon did not render is an event."""
    for file in draft.seen.handoffs:
        text = file.data.decode("utf-8", "replace")
        found = read_handoff(text, draft.state.worker, draft.missions)
        if not _has_the_name_of_one(draft, file, found):
            continue
        current = draft.state.current
        mission = found.mission or file.named or (current.mission if current else None)
        # As past missions are, a handoff of one is base line: it counts when the mission becomes the worker's.
        base = not draft.met and (mission is None or mission not in draft.missions)
        take(draft, file, found, mission, counts=not base)


def take(
    draft: Draft,
    file: HandoffFile,
    found: Handoff,
    mission: MissionId | None,
    counts: bool = True,
    mirrored: bool = True,
) -> None:
    """Keeps the file as a version; a usable one `counts` for the mission. What is not `mirrored` is not for the shared
    folder."""
    at = draft.capped(file.written)
    author = found.author if found.refused is None else Author.NOBODY
    draft.versions.append(
        Version(mission=mission, sha256=file.sha256, author=author, path=file.path, at=at, text=file.data)
    )
    if found.refused is not None:
        draft.refused[file.path] = found.refused
    elif not counts:
        return
    elif author is Author.DAEMON:
        _keep(draft, mission, file.sha256, rank(Author.DAEMON, file.local))
    elif not _written(draft, file, found, mission, at, mirrored):
        _written_at_home(draft, file, found, mission)


def _has_the_name_of_one(draft: Draft, file: HandoffFile, found: Handoff) -> bool:
    """A handoff is named `latest.md` or after a mission: one of the worker's, or the one that its text names."""
    return file.named is None or file.named == found.mission or file.named in draft.missions


def _written_at_home(draft: Draft, file: HandoffFile, found: Handoff, mission: MissionId | None) -> None:
    """A text that is an event already, from the shared folder, counts for more in the worker's own folder: but not
    at the place where we mirror it. After a start without a journal every text comes again."""
    if mission is None or not file.local or file.path == mirror(mission):
        return
    known, counts = draft.missions.get(mission), rank(found.author, file.local)
    if draft.met or known is None or known.handoff is None or known.handoff.rank < counts:
        _keep(draft, mission, file.sha256, counts)


def _written(
    draft: Draft, file: HandoffFile, found: Handoff, mission: MissionId | None, at: int, mirrored: bool
) -> bool:
    name = file.path.rpartition("/")[2]
    known = draft.missions.get(mission) if mission else None
    return draft.once(
        EventType.HANDOFF_WRITTEN,
        mission,
        (file.sha256,),
        at=at,
        summary=f"Handoff written: {name}",
        detail={
            "path": file.path,
            "sha256": file.sha256,
            "bytes": len(file.data),
            "by": found.author.value,
            **({} if mirrored else {MIRRORED: False}),
        },
        assignment=known.assignment if known else None,
        number=0,
    )


def render_missing(draft: Draft) -> None:
    """A HANDOFF for which there is no file gets one from what is known; the next HANDOFF a newer one."""
    for event in tuple(draft.events):
        if event.mission is None or event_state(event) is not CheckpointState.HANDOFF:
            continue
        known = draft.state.missions[event.mission]
        if known.handoff is None or known.handoff.rank <= rank(Author.DAEMON, local=True):
            _render(draft, known, event.at)


def _render(draft: Draft, known: MissionState, at: int) -> None:
    text = render_handoff(draft.state.worker, known, at).encode("utf-8", "replace")
    digest = sha256(text)
    draft.versions.append(
        Version(
            mission=known.mission,
            sha256=digest,
            author=Author.DAEMON,
            path=mirror(known.mission),
            at=at,
            text=text,
        )
    )
    _keep(draft, known.mission, digest, rank(Author.DAEMON, local=True))


def _keep(draft: Draft, mission: MissionId | None, digest: str, counts: int) -> None:
    """What is no event of its own is not folded: a version of ours, which counts until somebody else's comes, and one
    that counts for more than its event says."""
    if mission is None:
        return
    known = draft.missions.get(mission) or MissionState(mission=mission)
    draft.state = msgspec.structs.replace(
        with_mission(draft.state, kept(known, Kept(digest, counts))), handed_off=mission
    )
