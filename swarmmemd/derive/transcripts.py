"""What new text of the worker's transcripts says: checkpoints, with no prompt beside them, so time decides.

docs/contracts.md, "Transcripts".
"""

from collections.abc import Sequence

from msgspec.structs import replace

from swarmmemd.checkpoint import parse
from swarmmemd.derive.blocks import block_key, checkpoint, given_to_another, said_before
from swarmmemd.derive.draft import Draft
from swarmmemd.derive.whose import current_at, is_further, key_of
from swarmmemd.fold import TRANSCRIPT, is_open
from swarmmemd.model import Checkpoint
from swarmmemd.observation import TranscriptText
from swarmmemd.state import Dispatch, Heard

_FILES_KEPT = 256


def look_at_transcripts(draft: Draft, texts: Sequence[TranscriptText]) -> None:
    """Adds the checkpoints in the new texts. Of files that stood there before the first look only the last one is
    news: the others are past."""
    first = draft.state.transcripts is None
    if first:
        draft.state = replace(draft.state, transcripts={})
    for text in texts:
        found = parse(text.text, draft.state.worker)
        news = found[-1:] if first else found
        for block in found[: len(found) - len(news)]:
            _note(draft, text, block, None)
        for block in news:
            _take(draft, text, block, first)
        known = dict(draft.state.transcripts or {})
        known.pop(text.path, None)
        kept = dict([*known.items(), (text.path, text.position)][-_FILES_KEPT:])
        draft.state = replace(draft.state, transcripts=kept)


def _take(draft: Draft, text: TranscriptText, block: Checkpoint, first: bool) -> None:
    at = draft.capped(text.written)
    dispatch = current_at(draft.state, at)
    known = draft.heard(_key(block))
    if known is not None and (text.again or dispatch is None or not is_further(draft.state, dispatch, known)):
        return
    if first and any(said_before(draft, one, block) for one in draft.state.dispatches):
        return
    whose = dispatch or _outside(draft)
    _note(draft, text, block, dispatch)
    if not given_to_another(draft, whose, block):
        checkpoint(draft, whose, block, at=at, origin=TRANSCRIPT)


def _outside(draft: Draft) -> Dispatch:
    """Nothing was dispatched: the worker has its work from the ledger, or from nobody that is known."""
    missions = draft.state.missions
    open_ones = [missions[id] for id in sorted(missions) if is_open(missions[id].ledger)]
    newest = max(open_ones, key=lambda mission: mission.updated, default=None)
    return Dispatch(mission=newest.mission if newest else None, assignment=None, number=0, at=0, task="")


def _note(draft: Draft, text: TranscriptText, block: Checkpoint, dispatch: Dispatch | None) -> None:
    mission, number = key_of(dispatch)
    heard = Heard(
        first=0,
        last=0,
        row=0,
        session=text.path,
        at=text.written,
        generation=0,
        mission=mission,
        number=number,
        count=1 if dispatch else 0,
    )
    draft.note_heard(_key(block), heard)


def _key(block: Checkpoint) -> str:
    """Of its own: what the chat has shown is known by its rows."""
    return "t:" + block_key(block)
