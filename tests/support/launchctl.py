"""launchctl as far as the installer uses it, for machines without launchd. Its state is in $FAKE_LAUNCHD.

Models: loaded and not, the disabled override, an unload that goes on after bootout has returned, planned error
codes, an account without a login session. It starts the real program with the environment of the plist only.
"""

import json
import os
import plistlib
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

FOLDER = Path(os.environ["FAKE_LAUNCHD"])
STATE = FOLDER / "state.json"
LABEL = "com.swarmmemd.agent"
EMPTY = {
    "loaded": None,
    "pid": 0,
    "disabled": False,
    "stuck": False,
    "deaf": False,
    "teardown": 0,
    "unloading": 0,
}
state: dict[str, Any] = {
    **EMPTY,
    "session": True,
    "errors": [],
    **(json.loads(STATE.read_text()) if STATE.exists() else {}),
}


def lives(pid: int) -> bool:
    try:
        return pid > 0 and Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def end(number: int = signal.SIGTERM) -> None:
    if lives(state["pid"]):
        os.kill(state["pid"], number)


def ended() -> None:
    while lives(state["pid"]):
        time.sleep(0.01)


def begin() -> None:
    job = plistlib.loads(Path(state["loaded"]).read_bytes())
    with open(job["StandardErrorPath"], "ab") as err:
        state["pid"] = subprocess.Popen(
            job["ProgramArguments"],
            env={"HOME": os.environ["HOME"], **job["EnvironmentVariables"]},
            cwd=job["WorkingDirectory"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=err,
            start_new_session=True,
        ).pid
    (FOLDER / "pids").open("a").write(f"{state['pid']}\n")


def main(verb: str, *rest: str) -> tuple[int, str]:
    if not state["session"]:
        return 125, "Could not find domain for user gui: Domain does not support specified action"
    if verb == "print":
        if state["unloading"]:
            state["unloading"] -= 1
            return 0, "\tstate = waiting\n"
        if not state["loaded"]:
            return 113, f'Could not find service "{LABEL}" in domain for user gui'
        pid = f"\tpid = {state['pid']}\n" if lives(state["pid"]) else ""
        below = "\tlast exit code = 0\n\tresource coalition = {\n\t\tpath = (none)\n\t\tpid = 1\n\t\truns = 9\n\t}\n"
        return (
            0,
            f"{rest[0]} = {{\n\tpath = {state['loaded']}\n\tstate = x\n{pid}\truns = 1\n{below}}}",
        )
    if verb == "print-disabled":
        return 0, f'\t"{LABEL}" => {"disabled" if state["disabled"] else "enabled"}\n'
    if verb == "enable":
        state["disabled"] = state["stuck"]
        return 0, ""
    if verb == "bootstrap":
        if state["errors"]:
            code = state["errors"].pop(0)
            return code, f"Bootstrap failed: {code}: Input/output error"
        if state["disabled"] or state["loaded"] or state["unloading"]:
            return 5, "Bootstrap failed: 5: Input/output error"
        state["loaded"] = rest[1]
        begin()
        return 0, ""
    if not state["loaded"]:
        return (3 if verb == "bootout" else 113), "Could not find service"
    if verb == "bootout":
        end()
        ended()
        state.update(loaded=None, pid=0, unloading=state["teardown"])
        return 0, ""
    if verb == "kickstart":
        if "-k" in rest:
            end(signal.SIGKILL)
            ended()
        if not lives(state["pid"]):
            begin()
        return 0, ""
    if verb == "kill":
        if not state["deaf"]:
            end()
        return 0, ""
    return 64, "Usage"


with (FOLDER / "calls").open("a") as calls:
    calls.write(" ".join(sys.argv[1:]) + "\n")
code, said = main(*sys.argv[1:])
STATE.write_text(json.dumps(state))
print(said, file=sys.stderr if code else sys.stdout)
sys.exit(code)
