"""What one believed `runtime.json` shows, before it is compared with anything."""

from enum import StrEnum

from swarmmemd.checkpoint import parse
from swarmmemd.identity import fold
from swarmmemd.model import Checkpoint, CheckpointState, WorkerId
from swarmmemd.observation import Phase, Runtime

TIMEOUT = "No fresh checkpoint before poll timeout."
STALE = "No parseable checkpoint found before stale threshold."
_FIXED_REASONS = frozenset({TIMEOUT, STALE})
"""What the control plane writes when it gave up waiting."""

IN_PROGRESS = "in_progress"
_STATES = {
    "in_progress": CheckpointState.IN_PROGRESS,
    "done": CheckpointState.DONE,
    "blocked": CheckpointState.BLOCKED,
    "handoff": CheckpointState.HANDOFF,
    "needs_input": CheckpointState.NEEDS_INPUT,
}
_BLOCKED = frozenset({"blocked", "needs_input"})
TERMINAL = frozenset(_STATES) - {IN_PROGRESS}
"""Values of `checkpointStatus` after which the same task may be dispatched again."""


class Kind(StrEnum):
    """What a snapshot shows."""

    NONE = "none"
    DISPATCHED = "dispatched"
    CHECKPOINT = "checkpoint"
    CHECK_IN = "check-in"
    CONTROL_PLANE_BLOCK = "control-plane-block"
    STOPPED = "stopped"
    CANCELLED = "cancelled"


def blocks(view: Runtime, worker: WorkerId) -> tuple[Checkpoint, ...]:
    """The checkpoints in the message that the control plane kept."""
    return parse(view.raw, worker) if view.raw else ()


def stated(view: Runtime) -> CheckpointState | None:
    """The state that `checkpointStatus` names; None for `none` and for words that are not known."""
    return _STATES.get(view.status or "")


def classify(view: Runtime, worker: WorkerId) -> Kind:
    """What `view` shows. An id that is none, or a status that is not known, shows nothing."""
    if view.bad_ids or (view.status not in _STATES and view.status != "none"):
        return Kind.NONE
    if view.status == "none":
        return {Phase.STOPPED: Kind.STOPPED, Phase.CANCELLED: Kind.CANCELLED}.get(view.phase, Kind.NONE)  # type: ignore[call-overload, no-any-return]
    if blocked_by_control_plane(view):
        return Kind.CONTROL_PLANE_BLOCK
    if view.phase == Phase.DISPATCHED and view.status == IN_PROGRESS:
        return Kind.DISPATCHED
    return Kind.CHECKPOINT if blocks(view, worker) else Kind.CHECK_IN


def blocked_by_control_plane(view: Runtime) -> bool:
    """Whether the block is the control plane's: its words stand where the worker's would."""
    reason = view.blocked_reason
    return (
        bool(reason)
        and view.status in _BLOCKED
        and (reason == view.dispatch_result or is_control_plane(reason))
    )


def is_control_plane(reason: str | None) -> bool:
    """Whether these are the words with which the control plane gives up waiting."""
    return reason in _FIXED_REASONS


def shows(view: Runtime, block: Checkpoint) -> bool:
    """Whether phase, status and result say that `block` is what was written last."""
    phase = (view.phase or "").lower().replace("-", "_").replace(" ", "_")
    same_blocker = not view.blocked_reason or not block.blocker or begins(view.blocked_reason, block.blocker)
    return phase == block.state.lower() and same_blocker and agrees(view, block)


def agrees(view: Runtime, block: Checkpoint) -> bool:
    """Whether the result beside the message is the message's own, maybe cut short or with text behind it.

    An API check-in leaves an old message in the file; then its own values differ from the message's.
    """
    return not fold(view.result) or not fold(block.result) or begins(view.result, block.result)


def begins(one: str | None, other: str | None) -> bool:
    """Whether one text is the other, or its beginning with dots for the rest."""
    first, second = (fold(text).rstrip("….").rstrip() for text in (one, other))
    return first.startswith(second) or second.startswith(first)
