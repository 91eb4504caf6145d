"""What holds for every text: no error, and a block that was read is read again from its plain form."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmmemd.checkpoint import decode, own_part, parse, render
from swarmmemd.model import Checkpoint, CheckpointState, WorkerId

ME = WorkerId("builder-1")
LABELS = ("STATE", "FILES_CHANGED", "COMMANDS_RUN", "RESULT", "BLOCKER", "NEXT_ACTION", "DECISIONS")
NAMES = st.sampled_from(
    [*LABELS, *map(str.lower, LABELS), "Result", "Next action", "State", "TESTS", "Decisions"]
)
LEADS = st.sampled_from(
    ["", "", "", "> ", "> > ", "- ", "* ", "## ", "**", "__", "`", "| ", "  ", "\\", "1. ", "✅ "]
)
SEPARATORS = st.sampled_from([": ", ": ", ":", "：", " = ", "**: ", ":** ", "`: ", " | ", "", " ", ":= "])
VALUES = st.sampled_from(
    [
        "DONE",
        "BLOCKED",
        "x",
        "none",
        "-",
        "**a**",
        "**a** b **c**",
        "`a`",
        "*`**`*",
        "DONE | BLOCKED",
        "<x>",
        "...",
        "a or none",
        "\\",
        "\\\\",
        "```",
        "RESULT: y",
        "**```**",
        "***",
        "= a",
        ": a",
        "| a |",
        "",
        "\u200b",
        "a**",
    ]
)
ANYTHING = st.text(st.characters(codec=None), max_size=20)
LINES = st.one_of(
    st.builds("".join, st.tuples(LEADS, NAMES, SEPARATORS, VALUES)),
    st.builds("".join, st.tuples(LEADS, VALUES)),
    st.sampled_from(
        ["", "", "```", "```sh", "~~~", "---", "> ", "| --- | --- |", "# Head", "    deep", "  - item"]
    ),
    st.sampled_from(
        ["scout-2 reported:", "Example:", "\\", "\\\\", "\\# x", "\\\\RESULT: x", "[PRIOR CONTEXT x]"]
    ),
    st.sampled_from(["[CONTEXT SUMMARY]: a", "--- END OF CONTEXT SUMMARY", "[END OF PRIOR CONTEXT — b]"]),
    ANYTHING,
)
BREAKS = st.sampled_from(["\n", "\n", "\n", "\r\n", "\u2028"])
TEXTS = st.lists(st.builds("".join, st.tuples(LINES, BREAKS)), max_size=25).map("".join)


@st.composite
def messages(draw: st.DrawFn) -> str:
    """A block in some style and order, with lines of any kind strewn in."""
    case = draw(st.sampled_from([str.upper, str.lower, str.title]))
    lead, separator = draw(
        st.sampled_from([("", ": "), ("> ", ": "), ("**", ":** "), ("## ", ": "), ("| ", " | ")])
    )
    order = ["STATE", *draw(st.permutations(LABELS[1:]))]
    text = ""
    for name in order:
        value = (
            draw(st.sampled_from(["DONE", "BLOCKED"]))
            if name == "STATE"
            else draw(st.one_of(VALUES, ANYTHING))
        )
        below = draw(st.lists(LINES, max_size=3)) if draw(st.booleans()) else []
        text += "\n".join([f"{lead}{case(name)}{separator}{value}", *below]) + "\n"
    return text


def assert_read_again(found: tuple[Checkpoint, ...]) -> None:
    for checkpoint in found:
        assert parse(render(checkpoint)) == (msgspec.structs.replace(checkpoint, whole=True),)
        assert parse(render(checkpoint), ME) == parse(render(checkpoint))


@given(st.one_of(TEXTS, ANYTHING), st.sampled_from([None, ME]))
@settings(max_examples=400, deadline=None)
def test_any_text_is_read_without_an_error(text: str, worker: WorkerId | None) -> None:
    own_part(text)
    decode(text)
    decode(f"\0json:{text}")
    assert_read_again(parse(text, worker))


@given(messages())
@settings(max_examples=600, deadline=None)
def test_what_was_read_is_read_again_from_its_plain_form(text: str) -> None:
    assert_read_again(parse(text, ME))


PROSE = st.text(st.sampled_from("abcd éß漢,.!? \n"), max_size=80)
PLAIN_VALUES = st.text(st.sampled_from("abc xyz01"), min_size=1, max_size=12).map(
    lambda text: f"v{text.strip()}"
)


@given(PROSE, st.sampled_from(list(CheckpointState)), st.lists(PLAIN_VALUES, min_size=5, max_size=5))
@settings(deadline=None)
def test_prose_before_a_block_changes_nothing(prose: str, state: CheckpointState, values: list[str]) -> None:
    result, files, commands, blocker, following = values
    checkpoint = Checkpoint(
        state=state,
        result=result,
        files_changed=files,
        commands_run=commands,
        blocker=blocker,
        next_action=following,
    )
    assert parse(f"{prose}\n{render(checkpoint)}", ME) == (checkpoint,)


@given(TEXTS)
@settings(deadline=None)
def test_a_value_never_holds_a_hidden_line_break(text: str) -> None:
    for checkpoint in parse(f"STATE: DONE\nFILES_CHANGED: a\nBLOCKER: b\nNEXT_ACTION: c\nRESULT: {text}"):
        assert "\r" not in (checkpoint.result or "")
        assert "\u2028" not in (checkpoint.result or "")
