"""Checkpoint blocks: the cases, and the forms that they do not hold. docs/contracts.md, "Checkpoints"."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from swarmmemd.checkpoint import decode, own_part, parse, render
from swarmmemd.model import Checkpoint, CheckpointState, WorkerId

CASES = Path(__file__).parents[1] / "cases" / "checkpoints"
EXPECTED: dict[str, Any] = yaml.safe_load((CASES / "expected.yaml").read_text("utf-8"))
ME = WorkerId(EXPECTED["worker"])
FIELDS = {
    "filesChanged": "files_changed",
    "commandsRun": "commands_run",
    "result": "result",
    "blocker": "blocker",
    "nextAction": "next_action",
    "decisions": "decisions",
}
BLOCK = (
    "STATE: DONE\nFILES_CHANGED: a.py\nCOMMANDS_RUN: make\nRESULT: works\nBLOCKER: none\nNEXT_ACTION: rest"
)
TABLE = (
    "| STATE | DONE |\n|---|---|\n| FILES_CHANGED | a.py |\n| COMMANDS_RUN | make |\n| RESULT | works |\n"
    "| BLOCKER | n/a |\n| NEXT_ACTION | rest |"
)
PLAIN = Checkpoint(
    state=CheckpointState.DONE, files_changed="a.py", commands_run="make", result="works", next_action="rest"
)


def block(state: str = "DONE", result: str = "works", next_action: str = "rest") -> str:
    return f"STATE: {state}\nFILES_CHANGED: none\nRESULT: {result}\nBLOCKER: none\nNEXT_ACTION: {next_action}"


def only(text: str, worker: WorkerId | None = ME) -> Checkpoint:
    (found,) = parse(text, worker)
    return found


def each_line(before: str, behind: str = "") -> str:
    """The block with something before each line and behind each label."""
    lines = (line.split(":", 1) for line in BLOCK.split("\n"))
    return "\n".join(f"{before}{label}{behind}:{value}" for label, value in lines)


def folded(value: str | None) -> str | None:
    return None if value is None else " ".join(value.split())


def case_text(name: str) -> str:
    text = (CASES / name).read_bytes().decode()
    if not name.endswith(".json"):
        return text
    row = json.loads(text)
    assert decode(row["content"]) == row["text"]
    return decode(row["content"])


def agrees(got: str | None, expected: Any) -> bool:
    if isinstance(expected, dict):
        text = folded(got) or ""
        return text.startswith(expected["starts"]) and len(text) == expected["chars"]
    return folded(got) == folded(expected)


def test_every_case_has_an_answer() -> None:
    assert {path.name for path in CASES.iterdir()} - {"expected.yaml"} == set(EXPECTED["files"])


@pytest.mark.parametrize("name", EXPECTED["files"])
def test_case(name: str) -> None:
    found = parse(case_text(name), ME)
    expected = EXPECTED["files"][name]
    assert [checkpoint.state for checkpoint in found] == [one["state"] for one in expected]
    for checkpoint, one in zip(found, expected, strict=True):
        for key, field in FIELDS.items():
            assert agrees(getattr(checkpoint, field), one.get(key)), key
        assert parse(render(checkpoint)) == (msgspec.structs.replace(checkpoint, whole=True),)


@pytest.mark.parametrize(
    "text",
    [
        each_line("✅ "),
        each_line("- [x] "),
        each_line("2) "),
        each_line("> > "),
        each_line("\ufeff"),
        each_line("\u200b\u2060"),
        each_line("**📁 ", "**"),
        each_line("- **", "**"),
        each_line("_", "_"),
        each_line("***", "***"),
        BLOCK.replace("STATE", "ST\u200bATE"),
        BLOCK.replace("_", "\\_"),
        BLOCK.replace("\n", "\r"),
        BLOCK.replace("\n", "\u2028"),
        BLOCK.replace("DONE\n", "DONE\n\n\n"),
        f"- Checkpoint:\n\n  ```text\n  {BLOCK}\n  ```".replace("\n", "\n  "),
        "~~~\n" + BLOCK + "\n~~~",
        BLOCK.replace("COMMANDS_RUN: make", "COMMANDS_RUN: ```sh\nmake\n```"),
        f"{TABLE}\nMore.",
        f"The STATE: DONE line comes last.\n{BLOCK}",
        f"{BLOCK}\n\n```json\n{{}}\n```",
        f"{BLOCK}\n***\nresult: something else",
    ],
)
def test_forms_that_are_read(text: str) -> None:
    assert only(text) == PLAIN


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ("`DONE`", "DONE"),
        ("FINISHED", "DONE"),
        ("已完成。", "DONE"),
        ("stuck on the key", "BLOCKED"),
        ("NEEDS INPUT", "NEEDS_INPUT"),
        ("Waiting for input", "NEEDS_INPUT"),
        ("hand-off", "HANDOFF"),
        ("IN-PROGRESS", "IN_PROGRESS"),
        ("ready for review", "NEEDS_REVIEW"),
        ("DONE, handoff file written", "DONE"),
        ("~~BLOCKED~~ DONE", "DONE"),
    ],
)
def test_states(said: str, state: str) -> None:
    assert only(block(said)).state == state


@pytest.mark.parametrize(
    "said",
    [
        *(
            "NOT DONE",
            "DONELY",
            "未完成",
            "完成度50%",
            "",
            "[ ] DONE",
            "<DONE or BLOCKED>",
            "DONE or BLOCKED",
        ),
        *(
            "`DONE` | `BLOCKED`",
            "DONE / HANDOFF",
            "DONE, BLOCKED, HANDOFF",
            "DONE \\| BLOCKED",
            "\n- DONE\n- BLOCKED",
        ),
    ],
)
def test_no_states(said: str) -> None:
    assert parse(block(said)) == ()


@pytest.mark.parametrize("nothing", ["", "-", "—", "n/a", "None.", "`none`", "**N/A**", "\u200b"])
def test_values_of_nothing(nothing: str) -> None:
    assert only(block(next_action=nothing)).next_action is None


def test_blocked_needs_no_result_but_a_blocker() -> None:
    text = "STATE: {}\nFILES_CHANGED: none\nBLOCKER: {}\nNEXT_ACTION: wait"
    assert only(text.format("BLOCKED", "no key")).blocker == "no key"
    assert parse(text.format("BLOCKED", "none")) == ()
    assert parse(text.format("DONE", "no key")) == ()


def test_decisions_is_not_one_of_the_four() -> None:
    assert parse("STATE: DONE\nRESULT: x\nDECISIONS: y\nNEXT_ACTION: z") == ()


def test_a_message_that_ends_with_the_bare_result_label_is_cut_off() -> None:
    assert parse("STATE: DONE\nFILES_CHANGED: a\nCOMMANDS_RUN: b\nRESULT:\n") == ()


def test_whole_means_all_six() -> None:
    assert only(BLOCK).whole
    assert not only(block()).whole


def test_blocks_back_to_back() -> None:
    first, second = parse(f"{BLOCK}\n{block('BLOCKED', next_action='an example')}\n{BLOCK}")[:2]
    assert (first, second.state) == (PLAIN, "BLOCKED")
    assert len(parse(f"{block(next_action='write an example')}\n{BLOCK}")) == 2


def test_a_state_like_line_in_another_case_is_text() -> None:
    text = BLOCK.replace("make", "kubectl get\nstate: running\nstate: done")
    assert only(text).commands_run == "kubectl get\nstate: running\nstate: done"


def test_the_indent_of_a_list_stays() -> None:
    text = BLOCK.replace(" works", "\n  - a\n    - b\n  - c")
    assert only(text).result == "- a\n  - b\n- c"


@pytest.mark.parametrize(
    "inner", [f"> {block('BLOCKED')}".replace("\n", "\n> "), f"```\n{block('BLOCKED')}\n```"]
)
def test_a_block_quoted_within_a_value_is_text(inner: str) -> None:
    found = only(BLOCK.replace(" works", f" the log shows\n{inner}"))
    assert (found.state, found.next_action) == ("DONE", "rest")
    assert found.result is not None
    assert found.result.startswith("the log shows")


def test_commands_in_a_fence_within_a_fenced_block() -> None:
    assert only("```\n" + BLOCK.replace(" make", "\n```bash\nmake\n```") + "\n```\nBye.") == PLAIN


@pytest.mark.parametrize(
    "above",
    [
        *("scout-2 reported:", "**scout-2** said:", "Worker: scout", "## Checkpoint from scout-2", "@scout:"),
        *(
            "Checkpoint from scout:",
            "Scout-2's last report:",
            "| Worker | scout-2 |",
            "Worker scout-2 wrote this:",
        ),
        *("checkpoint by the worker `scout-2`:\nIt is short.", "For example:", "A sample\n\n## Checkpoint"),
    ],
)
def test_announced_blocks_are_refused(above: str) -> None:
    assert parse(f"{above}\n\n{BLOCK}", ME) == ()
    assert parse(f"{BLOCK}\n{above}\n{BLOCK}", ME)[1:] == () or not above.endswith(":")


@pytest.mark.parametrize(
    "above",
    [
        *(
            "Builder-1 reported:",
            "Checkpoint from builder-1:",
            "Worker: builder-1",
            "I read scout-2's report.",
        ),
        *(
            "I wait for worker scout-2.",
            "Checkpoint of task-1:",
            "Checkpoint from 2026-04-28:",
            "I reported:",
        ),
        *("scout-2 reported:\nMy checkpoint:", "scout-2 reported:\n1\n2\n3", "pytest-cov reported nothing."),
    ],
)
def test_own_blocks_are_not_refused(above: str) -> None:
    assert only(f"{above}\n\n{BLOCK}") == PLAIN


def test_one_form_value_is_a_value_and_two_are_a_form() -> None:
    assert only(block(result="<none>"))
    assert parse(block(result="...", next_action="the next step or none")) == ()


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("plain [CONTEXT SUMMARY]: text", "plain [CONTEXT SUMMARY]: text"),
        ("[CONTEXT COMPACTION — X]\nold\n--- END OF CONTEXT SUMMARY — now ---\nmine", "\nmine"),
        ("\n[CONTEXT SUMMARY]: a\n--- END OF CONTEXT SUMMARY\nb\n--- END OF CONTEXT SUMMARY\nc", "\nc"),
        ("[CONTEXT SUMMARY]: a\n--- END OF CONTEXT SUMMARY\n[CONTEXT SUMMARY]: b", ""),
        ("[PRIOR CONTEXT — x]\nmine\n[END OF PRIOR CONTEXT — y]\nold", "\nmine\n"),
        (
            "[PRIOR CONTEXT x]\n[PRIOR CONTEXT y]\nmine\n[END OF PRIOR CONTEXT]\n[END OF PRIOR CONTEXT]",
            "\nmine\n",
        ),
        ("[PRIOR CONTEXT — x]\n[CONTEXT SUMMARY]: old", ""),
        ("[PRIOR CONTEXT", ""),
    ],
)
def test_own_part(text: str, own: str) -> None:
    assert own_part(text) == own


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("", ""),
        ('["a"]', '["a"]'),
        ("[1, 2]", "[1, 2]"),
        ("[]", "[]"),
        ("\0json:[]", ""),
        ('\0json:{"type": "text"}', '\0json:{"type": "text"}'),
        (
            '\0json:[{"type": "text", "text": "a"}, 7, {"type": "text"}, {"type": "text", "text": "b"}]',
            "a\nb",
        ),
        ('\0json:[{"type": "text", "text": "\\ud800"}]', "\ud800"),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_decode(content: str | None, text: str) -> None:
    assert decode(content) == text


@pytest.mark.parametrize(
    "piece",
    [
        *(
            "\n",
            " ",
            ">",
            "> ",
            "*",
            "`",
            "- ",
            "| - ",
            "#",
            "1. ",
            "[ ] ",
            "_ ",
            "\\",
            "\0",
            "x",
            "\u200b",
            "✅",
        ),
        *(
            "FILES____",
            "STATE:",
            "STATE:\n\n\n\n",
            "STATE: DONE\n\n",
            "State:\n\nRESULT:\nresult:\n",
            "RESULT:\n",
        ),
        *("```a\nSTATE: DONE\n", "> STATE: DONE\nRESULT: x\n", f"{BLOCK}\n", "[PRIOR CONTEXT x]\n", "\\\n"),
        *(
            "STATE: DONE\nBLOCKER: x\nNEXT_ACTION: y\nRESULT:\n",
            "scout-2 reported STATE: DONE example\n",
            "\ud800\n",
        ),
    ],
)
def test_a_mebibyte_of_anything(piece: str) -> None:
    """A single look back over the text for each line would take hours."""
    text = piece * ((1 << 20) // len(piece))
    parse(f"STATE: DONE\n{text}")
    own_part(f"[CONTEXT SUMMARY]: {text}")
    decode(f"\0json:{text}")


@pytest.mark.parametrize("piece", ["x", "\n", " ", f"{BLOCK}\n"])
def test_four_mebibytes(piece: str) -> None:
    parse(f"STATE: DONE\n{piece * ((4 << 20) // len(piece))}")


def test_deep_nests() -> None:
    quotes = "".join(">" * depth + " STATE: DONE\n" for depth in range(2000))
    fences = "> ```a\n> STATE: DONE\n" * 50_000
    assert parse(f"{quotes}RESULT: x\n" * 2) == ()
    assert parse(f"STATE: DONE\nRESULT: a\n{fences}" + "RESULT: x\n" * 50_000) == ()


@pytest.mark.parametrize(
    "line", ["STATE: DONE", "state:", "> STATE: DONE", "```", "RESULT: old", "-", "#", ">", ""]
)
@pytest.mark.parametrize("times", [1, 2, 3, 40])
def test_lines_again_and_again_above_a_block_change_nothing_in_it(line: str, times: int) -> None:
    block = "STATE: DONE\nFILES_CHANGED: a\nCOMMANDS_RUN: b\nRESULT: c\nBLOCKER: none\nNEXT_ACTION: d"
    (found,) = parse(f"STATE: BLOCKED\n{(line + chr(10)) * times}{block}")
    assert (found.state, found.files_changed, found.result, found.next_action) == ("DONE", "a", "c", "d")


@pytest.mark.parametrize("times", [1, 2, 3, 40])
def test_of_a_label_again_and_again_the_last_one_counts(times: int) -> None:
    again = "RESULT:\n" * times
    (found,) = parse(f"STATE: DONE\nFILES_CHANGED: a\n{again}last\nBLOCKER: none\nNEXT_ACTION: d")
    assert found.files_changed == "\n".join(["a", *["RESULT:"] * (times - 1)])
    assert found.result == "last"
