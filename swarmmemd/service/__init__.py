"""The long run: watch, turn after turn, sweep, and an orderly end. One loop in one thread.

Notifications only mark workers; the loop looks. What every notification can lose, the sweeps find. `loop` is
the run, `members` which workers there are, `sweeps` what is looked at without a hint,
`retention` what is dropped after a time, `canary` whether hints come at all, `health` what is wrong,
`report` the figures for people, `pulse` the sign of life, `running` what they share.
docs/architecture.md, "The daemon".
"""

from swarmmemd.service.loop import Daemon
from swarmmemd.service.pulse import pulse
from swarmmemd.service.stop import Stop

__all__ = ["Daemon", "Stop", "pulse"]
