"""Bytes to values: `runtime.json`, the ledger and the roster. docs/contracts.md, "Sources"."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from swarmmemd.model import MissionId, Unreadable, WorkerId
from swarmmemd.observation import Ledger, Runtime
from swarmmemd.sources.document import json_object, millis
from swarmmemd.sources.ledger import parse_ledger
from swarmmemd.sources.roster import parse_roster
from swarmmemd.sources.runtime import parse_runtime

WRITTEN = 1_777_885_200_000
ME = WorkerId("builder-1")


def runtime(**fields: Any) -> Runtime:
    found = parse_runtime(json.dumps(fields).encode(), WRITTEN)
    assert isinstance(found, Runtime)
    return found


def ledger(*missions: Any) -> Ledger:
    found = parse_ledger(json.dumps({"missions": missions}).encode(), WRITTEN)
    assert isinstance(found, Ledger)
    return found


def mission(**fields: Any) -> dict[str, Any]:
    return {"id": "mission-a", "state": "executing", "title": "Wall", **fields}


# Objects


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b" \n",
        b"\0\0\0",
        b"{",
        b'{"a":',
        b"{} {}",
        b"[]",
        b"null",
        b"1",
        b'"x"',
        b"\xff{}",
        b"[" * 100_000,
        b'{"a":1}\0\0',
        b"NaN",
        b'{"a":NaN}',
        b'{"a":"\\ud83e',
        b'["\\ud83e"]',
    ],
)
def test_what_is_no_whole_object_is_unreadable(data: bytes) -> None:
    found = json_object(data)
    assert isinstance(found, Unreadable)
    assert found.reason


def test_a_byte_order_mark_is_left_out() -> None:
    assert json_object(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}


def test_half_an_emoji_becomes_a_replacement_and_a_whole_one_stays() -> None:
    data = b'{"a\\uD83E": ["\\ud83e\\uddf1", {"b": "x\\ud83e"}], "c": 1}'
    assert json_object(data) == {"a\ufffd": ["🧱", {"b": "x\ufffd"}], "c": 1}


def test_half_an_emoji_behind_a_backslash_that_is_text_stays_text() -> None:
    assert json_object(b'{"a": "\\\\ud83e\\uddf1 \\\\\\ud83e"}') == {"a": "\\ud83e\ufffd \\\ufffd"}


def test_half_an_emoji_makes_nothing_else_readable() -> None:
    for rest in (b"NaN", b"1e999", b"[", b'"\\udxyz"'):
        assert isinstance(json_object(b'{"a": "\\ud83e", "b": ' + rest + b"}"), Unreadable)


@given(st.binary(max_size=40))
def test_any_bytes_are_an_object_or_unreadable(data: bytes) -> None:
    assert isinstance(json_object(data), dict | Unreadable)
    for parse in (parse_runtime, parse_ledger):
        assert parse(data, WRITTEN) is not None


@given(
    st.binary(max_size=40) | st.text(alphabet="workers: -id[]{}&*!|>\n\t#'\"0a", max_size=60).map(str.encode)
)
def test_any_bytes_are_a_roster_or_unreadable(data: bytes) -> None:
    assert isinstance(parse_roster(data, WRITTEN), dict | Unreadable)


@pytest.mark.parametrize("value", [None, True, "1", 0, -1, 1e14, 10**40, [1], {}])
def test_what_is_no_time_in_ms_is_not_given(value: object) -> None:
    assert millis({"at": value}, "at") is None


def test_a_time_with_a_fraction_is_cut() -> None:
    assert millis({"at": 1777885200000.7}, "at") == 1_777_885_200_000


# runtime.json


def test_fields_are_taken_by_their_names() -> None:
    found = runtime(
        phase="done",
        checkpointStatus="done",
        currentTask="Lay",
        currentMissionId="mission-a",
        currentAssignmentId="as-1",
        lastDispatchAt=1,
        lastDispatchMode="tmux",
        lastDispatchResult="sent",
        lastCheckIn="1970-01-01T00:00:00.002Z",
        lastOutputAt=3,
        cancelledAt="1970-01-01T00:00:00.004Z",
        blockedReason="no key",
        lastResult="laid",
        nextAction="rest",
        lastControlMessage="go",
        cancellationReason="rain",
        checkpointRaw="STATE: DONE",
    )
    assert found == Runtime(
        phase="done",
        status="done",
        task="Lay",
        mission=MissionId("mission-a"),
        assignment=found.assignment,
        dispatch_at=1,
        dispatch_mode="tmux",
        dispatch_result="sent",
        check_in=2,
        output_at=3,
        cancelled_at=4,
        blocked_reason="no key",
        result="laid",
        next_action="rest",
        control_message="go",
        cancellation="rain",
        raw="STATE: DONE",
        written=WRITTEN,
    )
    assert found.assignment == "as-1"


def test_an_empty_object_gives_nothing() -> None:
    assert runtime() == Runtime(written=WRITTEN)


@pytest.mark.parametrize("value", [None, ""])
def test_no_id_is_no_bad_id(value: object) -> None:
    assert runtime(currentMissionId=value, currentAssignmentId=value).bad_ids == ()


@pytest.mark.parametrize("value", ["../x", "a\n", 7, True, ["a"], "x" * 129])
def test_a_bad_id_hides_the_good_one_beside_it_and_is_named(value: object) -> None:
    found = runtime(currentMissionId=value, currentAssignmentId="as-1")
    assert (found.mission, found.assignment) == (None, None)
    assert [bad.partition("=")[0] for bad in found.bad_ids] == ["currentMissionId"]
    assert len(found.bad_ids[0]) < 120


def test_unknown_keys_are_left_alone() -> None:
    assert runtime(phase="done", Phase="x", checkpoint_status="done", workerId=[1]) == runtime(phase="done")


# The ledger


@pytest.mark.parametrize("missions", [None, {}, "x", 1])
def test_missions_that_are_no_list_are_unreadable(missions: object) -> None:
    assert isinstance(parse_ledger(json.dumps({"missions": missions}).encode(), 0), Unreadable)


@pytest.mark.parametrize(
    "bad",
    [{"id": "../x"}, {"id": None}, {"state": "archived"}, {"state": None}, {"state": 1}],
)
def test_a_bad_mission_is_left_out_and_the_others_count(bad: dict[str, Any]) -> None:
    assert list(ledger(mission(**bad), "x", None, mission(id="mission-b")).missions) == ["mission-b"]


@pytest.mark.parametrize("assignments", [None, {}, "x", [None, 1, "x", {}, {"workerId": "a/b"}]])
def test_assignments_that_are_none_name_nobody(assignments: object) -> None:
    found = ledger(mission(assignments=assignments))
    assert (found.missions[MissionId("mission-a")].assignments, dict(found.by_worker)) == ((), {})


def test_a_mission_without_a_title_is_called_by_its_id() -> None:
    assert ledger(mission(title=None)).missions[MissionId("mission-a")].title == "mission-a"


def test_the_workers_task_is_that_of_the_first_assignment_that_has_one() -> None:
    listed = [
        {"id": "as-1", "workerId": "scout-2", "task": "look"},
        {"id": "as-2", "workerId": ME, "task": ""},
        {"id": "as-3", "workerId": ME, "task": "Lay"},
    ]
    found = ledger(mission(assignments=listed)).missions[MissionId("mission-a")]
    assert found.task_of(ME) == "Lay"
    assert found.task_of(WorkerId("nobody")) is None


# The roster


def roster(text: str) -> Any:
    return parse_roster(text.encode(), WRITTEN)


@pytest.mark.parametrize(
    ("value", "greenlight"),
    [
        ("deploy to production", ("deploy to production",)),
        ("[deploy, 7, 2026-05-04, null, '']", ("deploy", "7", "2026-05-04")),
        ("[{deploy: production}, {spend: [money, time]}]", ("deploy: production", "spend: money, time")),
        ("{deploy: production, publish: null}", ("deploy: production", "publish")),
        ("[[a, b], c]", ("a, b", "c")),
        ("4", ("4",)),
        ("[]", ()),
        ("", ()),
    ],
)
def test_what_needs_a_green_light_is_never_dropped(value: str, greenlight: tuple[str, ...]) -> None:
    found = roster(f"workers: [{{id: a-1, greenlightRequiredFor: {value}}}]")
    assert found["a-1"].greenlight == greenlight


@pytest.mark.parametrize(
    "value", ["4.5", "[gpt, 5]", "{name: x, size: 7}", "true", "2026-05-04", "''", "' '", "null"]
)
def test_a_value_that_is_no_text_is_not_given(value: str) -> None:
    found = roster(f"workers: [{{id: a-1, name: {value}, model: {value}}}]")["a-1"]
    assert (found.name, found.model) == ("a-1", None)


def test_aliases_in_aliases_end() -> None:
    nested = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}, *a{n - 1}, *a{n - 1}, *a{n - 1}]\n" for n in range(1, 12)
    )
    found = roster(nested + "workers: [{id: a-1, greenlightRequiredFor: *a11}]")
    assert len(str(found["a-1"].greenlight)) < 10_000


@pytest.mark.parametrize(
    "text",
    [
        "",
        "workers",
        "[]",
        "workers: {}",
        "workers: x",
        "{",
        "\t- a",
        "a: !!python/object:os.system {}",
        "&a [*a, *b]",
        "workers: [",
        "workers: [\0]",
        "workers: [" + "0, " * 120_000 + "]",
        "workers: [" + "{}, " * 120_000 + "]",
        "workers: " + "[" * 40 + "]" * 40,
        "a: &a {x: 1}\nworkers:\n" + "- {<<: *a}\n" * 30_000,
        "a0: &a0 {x: 1}\n"
        + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}], k{n}: 1}}\n" for n in range(1, 600))
        + "workers: []",
        "workers: []\na: !!int " + "1:" * 200_000 + "1",
        "workers: []\na: !!int 0x" + "f" * 10_000,
    ],
)
def test_what_is_no_roster_is_unreadable(text: str) -> None:
    assert isinstance(roster(text), Unreadable)


def test_a_roster_of_thousands_with_long_texts_is_read() -> None:
    said = "A worker who lays paths and repairs what others have left behind. " * 9
    fields = f"  name: Builder\n  role: Builder\n  model: large\n  mission: Lay it\n  specialty: {said}\n"
    found = roster("workers:\n" + "".join(f"- id: builder-{n}\n{fields}" for n in range(5_000)))
    assert len(found) == 5_000
    assert found["builder-4999"].specialty == said.strip()


def test_merge_keys_give_what_they_name() -> None:
    found = roster("all: &all {role: Builder, model: large}\nworkers: [{id: a, <<: *all}, {<<: *all, id: b}]")
    assert [(one.role, one.model) for one in found.values()] == [("Builder", "large")] * 2


@pytest.mark.parametrize("value", ["7" * 5_000, "1:" * 2_000 + "1", "0x" + "f" * 5_000, "1" * 300 + ".5"])
def test_a_number_that_is_longer_than_any_is_a_text(value: str) -> None:
    found = roster(f"workers: [{{id: a, role: {value}}}]")
    assert found["a"].role == value
    found = roster(f"workers: [{{id: a, greenlightRequiredFor: {value}}}]")
    assert found["a"].greenlight == (value,)


def test_no_workers_are_a_roster() -> None:
    assert roster("workers: []") == {}


def test_the_first_of_two_entries_for_one_worker_counts() -> None:
    found = roster("workers:\n- {id: a, name: One}\n- {id: a, name: Two}")
    assert found[WorkerId("a")].name == "One"


def test_values_of_another_type_are_not_given() -> None:
    found = roster("workers: [{id: a, name: [x], role: 7, specialty: ' ', greenlightRequiredFor: [x, 1]}]")
    (worker,) = found.values()
    assert (worker.name, worker.role, worker.specialty, worker.greenlight) == ("a", None, None, ("x", "1"))
