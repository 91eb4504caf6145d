"""More scenarios in the form of build.py, with what they lead to in more.yaml.

Not a command: tests/support/chats.py loads build.py as the module `chat_scenarios`, then this file.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from chat_scenarios import HANDOFF_REQUEST, ONE_LINE, Profile, Step, block, ids, iso, ms, prompt

SCENARIOS: dict[str, list[Step]] = {}


def step(name):
    def add(function: Step) -> Step:
        SCENARIOS.setdefault(name, []).append(function)
        return function

    return add


def begin(p: Profile, task: str, number: int, letter: str = "a", at: float = 0) -> None:
    p.dispatch(task, *ids(number, letter), at=at)
    if at == 0:
        p.session("main")
    p.say("user", prompt(task), at + 0.05)


def backup(p: Profile) -> None:
    """The database as it is now, whole: a plain copy of the file lacks what is still in its log."""
    with closing(sqlite3.connect(p.path / "backup")) as copy:
        p.con.backup(copy)


# -- whose answer it is -------------------------------------------------------------------------------


@step("old-answer-taken-for-the-new")
def taken_1(p: Profile) -> None:
    begin(p, "Mend the left boot", 101)
    p.say("assistant", block("DONE", "The left boot is mended"), 4)
    p.runtime_done(block("DONE", "The left boot is mended"), "The left boot is mended", 4.1)


@step("old-answer-taken-for-the-new")
def taken_2(p: Profile) -> None:
    begin(p, "Mend the right boot", 101, "b", at=10)


@step("old-answer-taken-for-the-new")
def taken_3(p: Profile) -> None:
    p.runtime_done(block("DONE", "The left boot is mended"), "The left boot is mended", 10.5)


@step("old-answer-taken-for-the-new")
def taken_4(p: Profile) -> None:
    p.say("assistant", block("DONE", "The right boot is mended"), 14)


@step("late-answer-taken-for-the-missed")
def missed_1(p: Profile) -> None:
    begin(p, "Dig the first well", 102)


@step("late-answer-taken-for-the-missed")
def missed_2(p: Profile) -> None:
    p.dispatch("Dig the second well", *ids(102, "b"), at=10)
    p.say("assistant", block("DONE", "The first well has water"), 10.5)
    p.runtime_done(block("DONE", "The first well has water"), "The first well has water", 10.6)
    p.runtime(currentTask="Dig the second well")  # as the loop leaves it


@step("late-answer-taken-for-the-missed")
def missed_3(p: Profile) -> None:
    p.say("user", "Dig the second well", 11)
    p.say("assistant", block("DONE", "The second well is dry"), 15)


@step("task-told-later")
def told_1(p: Profile) -> None:
    begin(p, "Dig the third well", 119)


@step("task-told-later")
def told_2(p: Profile) -> None:
    p.dispatch("Dig the fourth well", *ids(119, "b"), at=10)
    p.say("assistant", block("DONE", "The third well has water"), 10.5)
    p.runtime_done(block("DONE", "The third well has water"), "The third well has water", 10.6)


@step("task-told-later")
def told_3(p: Profile) -> None:
    p.runtime(currentTask="Dig the fourth well")


@step("task-told-later")
def told_4(p: Profile) -> None:
    p.say("user", "Dig the fourth well", 11)
    p.say("assistant", block("DONE", "The fourth well is dry"), 15)


@step("late-answer-after-the-next-dispatch")
def next_1(p: Profile) -> None:
    begin(p, "Prune the apple trees", 103)


@step("late-answer-after-the-next-dispatch")
def next_2(p: Profile) -> None:
    p.poll_timeout(1.5)


@step("late-answer-after-the-next-dispatch")
def next_3(p: Profile) -> None:
    p.dispatch("Prune the pear trees", *ids(103, "b"), at=10)


@step("late-answer-after-the-next-dispatch")
def next_4(p: Profile) -> None:
    p.say("assistant", block("DONE", "The apple trees are pruned"), 12)


@step("prompt-after-the-timeout")
def after_timeout_1(p: Profile) -> None:
    begin(p, "Weigh the flour", 104)
    p.say("assistant", block("DONE", "There are 40 pounds of flour"), 4)


@step("prompt-after-the-timeout")
def after_timeout_2(p: Profile) -> None:
    p.dispatch("Weigh the sugar", *ids(104, "b"), at=10)


@step("prompt-after-the-timeout")
def after_timeout_3(p: Profile) -> None:
    p.poll_timeout(11.5)


@step("prompt-after-the-timeout")
def after_timeout_4(p: Profile) -> None:
    p.say("user", "Weigh the sugar", 12)
    p.say("assistant", block("DONE", "There are 9 pounds of sugar"), 15)


@step("result-after-a-quick-answer")
def quick_1(p: Profile) -> None:
    begin(p, "Say when the moon rises", 105)
    p.say("assistant", block("DONE", "It rises at nine"), 0.1)


@step("result-after-a-quick-answer")
def quick_2(p: Profile) -> None:
    p.runtime(lastDispatchAt=ms(0.2), lastDispatchResult="Delivered", lastCheckIn=iso(0.2))


@step("result-after-a-quick-answer")
def quick_3(p: Profile) -> None:
    p.runtime_done(block("DONE", "It rises at nine"), "It rises at nine", 0.3)


@step("result-after-a-quick-answer")
def quick_4(p: Profile) -> None:
    # A one-shot's result: the status flips back, the phase stays.
    p.runtime(
        state="executing", checkpointStatus="in_progress", lastDispatchAt=ms(0.4), lastDispatchMode="oneshot",
        lastCheckIn=iso(0.4),
    )


@step("same-task-twice")
def twice_1(p: Profile) -> None:
    begin(p, "Feed the stove", 106)
    p.say("assistant", block("DONE", "It burns"), 3)
    p.runtime_done(block("DONE", "It burns"), "It burns", 3.1)


@step("same-task-twice")
def twice_2(p: Profile) -> None:
    begin(p, "Feed the stove", 106, at=60)


@step("same-task-twice")
def twice_3(p: Profile) -> None:
    p.say("assistant", block("DONE", "It burns"), 63)


@step("same-task-before-its-dispatch")
def again_early_1(p: Profile) -> None:
    begin(p, "Sweep the chimney", 116)
    p.say("assistant", block("DONE", "It draws"), 3)
    p.runtime_done(block("DONE", "It draws"), "It draws", 3.1)


@step("same-task-before-its-dispatch")
def again_early_2(p: Profile) -> None:
    p.say("user", prompt("Sweep the chimney"), 60)
    p.say("assistant", block("DONE", "It draws"), 60.2)


@step("same-task-before-its-dispatch")
def again_early_3(p: Profile) -> None:
    p.dispatch("Sweep the chimney", *ids(116), at=60.4)


@step("raw-prompt-before-its-dispatch")
def raw_early_1(p: Profile) -> None:
    p.dispatch("Oil the hinges", *ids(117), at=0)
    p.session("main")
    p.say("user", "Oil the hinges", 0.05)
    p.say("assistant", block("DONE", "No hinge squeaks"), 3)
    p.runtime_done(block("DONE", "No hinge squeaks"), "No hinge squeaks", 3.1)


@step("raw-prompt-before-its-dispatch")
def raw_early_2(p: Profile) -> None:
    p.say("user", "Oil the lock", 10)
    p.say("assistant", block("DONE", "The key turns"), 10.2)


@step("raw-prompt-before-its-dispatch")
def raw_early_3(p: Profile) -> None:
    p.dispatch("Oil the lock", *ids(117, "b"), at=10.4)


@step("old-memory-in-the-prompt")
def memory_1(p: Profile) -> None:
    begin(p, "Tune the violin", 107)
    p.say("assistant", block("DONE", "The violin is tuned"), 4)


@step("old-memory-in-the-prompt")
def memory_2(p: Profile) -> None:
    p.dispatch("Tune the cello", *ids(107, "b"), at=10)
    memory = "## Memory\n- dispatch: Tune the violin\n- " + block("DONE", "The violin is tuned")
    p.say("user", f"{memory}\n\n{prompt('Tune the cello')}", 10.05)
    p.say("assistant", block("IN_PROGRESS", "Two strings are tuned"), 12)


@step("made-up-in-progress")
def made_up_1(p: Profile) -> None:
    begin(p, "Sound the bay", 108)


@step("made-up-in-progress")
def made_up_2(p: Profile) -> None:
    p.runtime(
        state="executing", phase="in_progress", checkpointStatus="in_progress", lastResult="Sound the bay",
        lastSummary="Sound the bay", lastCheckIn=iso(0.2), lastOutputAt=ms(0.2),
    )


# -- lifecycle ----------------------------------------------------------------------------------------


@step("handoff-twice")
def handoffs_1(p: Profile) -> None:
    begin(p, "Translate the letters", 109)
    p.say("user", HANDOFF_REQUEST, 20)
    p.say("user", HANDOFF_REQUEST, 30)


@step("handoff-twice")
def handoffs_2(p: Profile) -> None:
    p.say("assistant", block("HANDOFF", "Letters 1 to 30 are translated"), 31)


@step("handoff-twice")
def handoffs_3(p: Profile) -> None:
    p.say("user", HANDOFF_REQUEST, 60)
    p.say("user", HANDOFF_REQUEST, 70)


@step("handoff-twice")
def handoffs_4(p: Profile) -> None:
    p.say("assistant", block("HANDOFF", "Letters 31 to 50 are translated"), 71)


@step("lifecycle-in-a-new-session")
def new_session_1(p: Profile) -> None:
    begin(p, "Measure the field", 110)
    p.say("user", HANDOFF_REQUEST, 20)
    p.say("assistant", block("HANDOFF", "Two sides are measured"), 21)


@step("lifecycle-in-a-new-session")
def new_session_2(p: Profile) -> None:
    p.session("second", "tui", at=30)
    p.say("user", "RESUME_AFTER_HANDOFF. Read your handoff.", 30, "second")
    p.say("assistant", block("IN_PROGRESS", "The third side is measured"), 40, "second")


@step("lifecycle-in-a-new-session")
def new_session_3(p: Profile) -> None:
    p.say("user", HANDOFF_REQUEST, 50, "second")


# -- rows ---------------------------------------------------------------------------------------------


@step("cut-off-but-whole")
def whole_1(p: Profile) -> None:
    begin(p, "List the islands", 111)
    p.say("assistant", block("DONE", "Nine islands", next_action="none").split("\nBLOCKER")[0], 5, finish_reason="incomplete")
    p.say("assistant", block("DONE", "Ten islands") + "\n\nAnd then", 6, finish_reason="length")


@step("carried-rows")
def carried_1(p: Profile) -> None:
    begin(p, "Bind the books", 112)
    p.say("assistant", block("IN_PROGRESS", "Four books are bound"), 3)
    p.say("tool", "glue", 4)
    p.say("assistant", block("IN_PROGRESS", "Four books are bound"), 5)


@step("carried-rows")
def carried_2(p: Profile) -> None:
    p.dispatch("Bind the maps", *ids(112, "b"), at=10)


@step("carried-rows")
def carried_3(p: Profile) -> None:
    uid = "message_uid" if "message_uid" in p.columns else "NULL"
    rows = p.con.execute(f"SELECT role, content, timestamp, {uid} FROM messages ORDER BY id").fetchall()
    p.con.execute("BEGIN IMMEDIATE")
    if "active" in p.columns:
        p.con.execute("UPDATE messages SET active = 0")
    else:
        p.con.execute("DELETE FROM messages")
    p.say("user", "[CONTEXT COMPACTION — REFERENCE ONLY] Books, then maps.", 11, _compressed_summary=1)
    for n, (role, content, timestamp, name) in enumerate(rows):
        at = (timestamp - rows[0][2]) / 60 + 0.05 if p.schema == 31 else 11 + n / 600
        p.say(role, content, at, message_uid=name)
    p.con.execute("COMMIT")


@step("carried-rows")
def carried_4(p: Profile) -> None:
    p.say("assistant", block("DONE", "Six books are bound"), 14)


@step("imported-into-another-session")
def imported_1(p: Profile) -> None:
    begin(p, "Wax the floor", 113)
    p.say("assistant", block("IN_PROGRESS", "Half of it shines"), 3)
    p.say("user", "Please go on.", 4)
    p.say("assistant", block("DONE", "All of it shines"), 6)


@step("imported-into-another-session")
def imported_2(p: Profile) -> None:
    rows = p.rows()
    p.session("imported", at=20)
    for n, (role, content, _) in enumerate(rows):
        p.say(role, content, 20 + n / 600, "imported")


@step("restored-database")
def restored_1(p: Profile) -> None:
    begin(p, "Paint the door", 114)
    p.say("assistant", block("IN_PROGRESS", "The door is primed"), 3)
    backup(p)


@step("restored-database")
def restored_2(p: Profile) -> None:
    p.say("assistant", block("DONE", "The door is green"), 9)


@step("restored-database")
def restored_3(p: Profile) -> None:
    p.close()
    for side in ("-wal", "-shm", "-journal"):
        Path(f"{p.db}{side}").unlink(missing_ok=True)
    (p.path / "backup").replace(p.db)
    begin(p, "Paint the shutters", 114, "b", at=20)


@step("restored-database")
def restored_4(p: Profile) -> None:
    p.say("assistant", block("DONE", "The shutters are green"), 25)


@step("restored-over-the-file")
def restored_over_1(p: Profile) -> None:
    begin(p, "Oil the hinge", 118)
    p.say("assistant", block("IN_PROGRESS", "The hinge is clean"), 3)
    backup(p)


@step("restored-over-the-file")
def restored_over_2(p: Profile) -> None:
    p.say("user", "Go on.", 4)
    p.say("assistant", block("DONE", "The hinge is oiled"), 9)


@step("restored-over-the-file")
def restored_over_3(p: Profile) -> None:
    with closing(sqlite3.connect(p.path / "backup")) as copy:
        copy.backup(p.con)
    begin(p, "Oil the lock", 118, "b", at=20)
    p.say("assistant", block("DONE", "The lock is oiled"), 25)
    p.say("assistant", "Is there more to do?", 26)


@step("copies-of-copies")
def copies_1(p: Profile) -> None:
    p.dispatch("Watch the kettle", *ids(115), at=0)
    p.session("main")
    p.say("user", ONE_LINE, 0.05)
    p.say("assistant", block("IN_PROGRESS", "It does not boil"), 3)
    p.say("user", "Go on.", 4)
    p.say_again()


@step("copies-of-copies")
def copies_2(p: Profile) -> None:
    p.dispatch("Watch the pot", *ids(115, "b"), at=10)
    p.say("user", ONE_LINE, 10.05)


@step("copies-of-copies")
def copies_3(p: Profile) -> None:
    p.compact("[CONTEXT COMPACTION — REFERENCE ONLY] The kettle was watched.", "user", 11)


@step("copies-of-copies")
def copies_4(p: Profile) -> None:
    p.say("assistant", block("DONE", "The pot boils"), 14)
