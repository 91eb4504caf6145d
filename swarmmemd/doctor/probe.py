"""The self-test: a scratch worker's checkpoint through the whole pipeline, by a real daemon, and read back.

Everything is in a temporary folder, away from the real roots. docs/operations.md, "The self-test".
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from swarmmemd.doctor.findings import Finding
from swarmmemd.standing import standing

_PATIENCE = 20.0
_WORKER, _MISSION = "doctor-probe", "mission-doctor-probe"
_RESULT = "The probe has arrived"
_MEND = "See what it said above; swarmmemd demo shows the same at length."


def self_test(patience: float = _PATIENCE) -> list[Finding]:
    """Nothing where what goes in comes out; else one finding."""
    try:
        base = Path(tempfile.mkdtemp(prefix="swarmmemd-doctor-"))
    except OSError as error:
        return [
            Finding(
                "self-test",
                "problem",
                f"No temporary folder can be made: {error}",
                "Make room, or set TMPDIR.",
            )
        ]
    try:
        return [Finding("self-test", "problem", said, _MEND) for said in _run(base, patience)]
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _run(base: Path, patience: float) -> list[str]:
    roots = {key: base / key for key in ("profiles-root", "workspace-root", "shared-root", "state-dir")}
    for name in ("profiles-root", "workspace-root", "shared-root"):
        roots[name].mkdir()
    flags = [word for key, path in roots.items() for word in (f"--{key}", str(path))]
    command = [sys.executable, "-m", "swarmmemd", *flags, "--log-files", "0", "run", "--allow-root"]
    environment = {"PATH": os.defpath, "HOME": str(base)}
    with (base / "said").open("wb") as said:
        daemon = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said
        )
        try:
            failed = _through(roots, daemon, patience)
        finally:
            daemon.terminate()
            try:
                daemon.wait(patience)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
    last = (base / "said").read_text("utf-8", "replace").strip().splitlines()[-1:]
    return [f"{failed}: {last[0] if last else 'it said nothing'}"] if failed else []


def _through(roots: dict[str, Path], daemon: "subprocess.Popen[bytes]", patience: float) -> str:
    """What does not work, or nothing."""
    end = time.monotonic() + patience
    while not standing(roots["state-dir"]).running:
        if daemon.poll() is not None or time.monotonic() > end:
            return "A daemon does not start on a temporary folder"
        time.sleep(0.02)
    profile = roots["profiles-root"] / _WORKER
    profile.mkdir()
    aside = profile / ".runtime.json.new"
    aside.write_text(json.dumps(_checkpoint()))
    aside.replace(profile / "runtime.json")
    mission = profile / "memory" / "missions" / _MISSION
    while not all(_holds(mission / name) for name in ("events.jsonl", "SUMMARY.md")):
        if daemon.poll() is not None or time.monotonic() > end:
            return "A checkpoint that was written does not arrive in the memory"
        time.sleep(0.02)
    return ""


def _holds(path: Path) -> bool:
    try:
        return _RESULT in path.read_text("utf-8")
    except OSError:
        return False


def _checkpoint() -> dict[str, object]:
    at = int(time.time() * 1000)
    block = (
        f"STATE: IN_PROGRESS\nFILES_CHANGED: none\nCOMMANDS_RUN: none\nRESULT: {_RESULT}\n"
        "BLOCKER: none\nNEXT_ACTION: none"
    )
    return {
        "workerId": _WORKER,
        "state": "executing",
        "phase": "in_progress",
        "checkpointStatus": "in_progress",
        "currentTask": "Probe",
        "currentMissionId": _MISSION,
        "currentAssignmentId": "assign-doctor-probe",
        "lastDispatchAt": at - 2000,
        "lastOutputAt": at - 1000,
        "lastResult": _RESULT,
        "checkpointRaw": block,
    }
