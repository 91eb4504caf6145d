"""IDENTITY.md, SOUL.md and MEMORY.md of a worker, from its roster entry. Pure.

Made when missing, never overwritten. docs/contracts.md, "Identity files".
"""

import re

from swarmmemd.observation import RosterWorker
from swarmmemd.render.markdown import one_line

_UNSET = ("Unassigned", "Unspecified")
"""What another program writes where it knew nothing: these two words, and no others, may be filled in."""

_BULLET = re.compile(r"- (Name|Role|Specialty|Model): (Unassigned|Unspecified)[ \t]*")


def identity(worker: RosterWorker) -> str:
    """Stable identity metadata, by the specification's template."""
    values = {"Name": worker.name, "Worker ID": worker.id, **_known(worker)}
    lines = [f"- {title}: {_value(value)}" for title, value in values.items()]
    return f"# IDENTITY.md — {worker.id}\n\n" + "\n".join(lines) + "\n"


def filled_in(text: str, worker: RosterWorker) -> str:
    """`text` with the roster's values where a program has left `Unassigned` or `Unspecified`."""
    known = {"Name": worker.name, **_known(worker)}

    def value(line: str) -> str:
        found = _BULLET.fullmatch(line.rstrip("\r\n"))
        if found is None or not known.get(found[1]):
            return line
        end = line[len(line.rstrip("\r\n")) :]
        return f"- {found[1]}: {one_line(known[found[1]] or '')}{end}"

    return "".join(map(value, text.splitlines(keepends=True)))


def soul(worker: RosterWorker) -> str:
    """Role and persona: what the worker is for, how it decides, when it asks, what is good enough."""
    role = _value(worker.role, "worker")
    parts = [f"# SOUL.md — {worker.id}", "## Role", _role(worker)]
    parts += ["## How to decide", _decisions(worker), "## When to ask first", _greenlights(worker)]
    parts += ["## When you cannot go on", _ESCALATION, "## Quality bar", _quality(worker, role)]
    return "\n\n".join(parts) + "\n"


def memory(worker: RosterWorker) -> str:
    """Curated long-term memory with the specification's four sections, the role filled in."""
    sections = ("Durable operating notes", "Project conventions", "Lessons learned")
    rest = "".join(f"\n## {title}\n\n- ...\n" for title in sections)
    return f"# Memory — {worker.id}\n\n## Role\n\n{_role(worker)}\n{rest}"


_ESCALATION = """\
Say BLOCKED in a checkpoint as soon as you know it, with what exactly is missing and who could give it. Say
NEEDS_INPUT when a decision is not yours, with the choices and the one that you would take. Do not wait in
silence, and do not guess what only a person can know."""


def _known(worker: RosterWorker) -> dict[str, str | None]:
    return {"Role": worker.role, "Specialty": worker.specialty, "Model": worker.model}


def _value(text: str | None, unset: str = _UNSET[0]) -> str:
    return one_line(text) if text else unset


def _role(worker: RosterWorker) -> str:
    lines = [f"You are {_value(worker.name)}, {_article(_value(worker.role, 'worker'))} of this swarm."]
    if worker.specialty:
        lines.append(f"Your specialty: {one_line(worker.specialty)}.")
    if worker.mission:
        lines.append(f"Your standing mission: {one_line(worker.mission)}")
    return "\n".join(lines)


def _article(role: str) -> str:
    return f"the {role}" if role != "worker" else "a worker"


def _decisions(worker: RosterWorker) -> str:
    within = f"{one_line(worker.specialty)}" if worker.specialty else "your task"
    return (
        f"Within {within} decide yourself, take the simplest thing that serves the objective, and write the\n"
        "decision down under DECISIONS in your checkpoint with its reason. Before you begin, read the mission's\n"
        "SUMMARY.md and the newest handoff: what was decided there stands until somebody changes it."
    )


def _greenlights(worker: RosterWorker) -> str:
    if not worker.greenlight:
        return "Nothing is reserved for others in the roster. Ask before anything that cannot be undone."
    items = "\n".join(f"- {one_line(item)}" for item in worker.greenlight)
    return f"Stop and wait for a clear yes before any of these:\n\n{items}"


def _quality(worker: RosterWorker, role: str) -> str:
    return (
        "A result counts when somebody else can repeat it: name the files that you changed and the commands that\n"
        "show that it works, and say what was not checked. Report what is, also when it is less than was asked.\n"
        "End every step with a checkpoint whose next action another worker could carry out."
    )
