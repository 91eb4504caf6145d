"""The HTTP API as a client meets it that was written from its description alone."""

import json
import re
import signal
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.api import SERVED, Api, api_of
from tests.support.daemon import STARTED, Daemon, Home, answered, dispatched, running, until

MEMORY = "/api/swarm-memory"
SEARCH = "/api/swarm-memory/search"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Two workers that have told something."""
    home = Home(tmp_path_factory.mktemp("served") / "home")
    (home.workspace / "swarm.yaml").write_text(
        "workers:\n  - {id: builder-1, name: Mason, role: Builder, specialty: sheds}\n"
    )
    home.write("builder-1", dispatched("mission-1", "Build the shed"))
    home.write("painter-2", dispatched("mission-2", "Paint the shed"))
    return home


@pytest.fixture(scope="module")
def api(home: Home) -> Iterator[Api]:
    """The API of a daemon that serves all tests of this module."""
    daemon = Daemon(home, *SERVED)
    try:
        daemon.ready()
        STARTED.remove(daemon.process)  # it outlives a test
        home.looked_at()
        home.write("builder-1", answered("mission-1", "The shed stands", "HANDOFF"))
        home.write("painter-2", answered("mission-2", "No paint left", "BLOCKED"))
        home.looked_at()
        yield api_of(home)
        assert daemon.stop() == 0
    finally:
        daemon.kill()


# Reading


def test_every_kind_of_memory_is_read(home: Home, api: Api) -> None:
    names = {
        "profile": ["IDENTITY.md", "SOUL.md", "MEMORY.md"],
        "mission": ["SUMMARY.md", "events.jsonl", "handoff.md"],
        "episodic": ["2026-04-24.md"],
        "handoff": ["mission-1.md"],
        "shared": ["builder-1-latest.md"],
    }
    for kind, expected in names.items():
        found = api.get(MEMORY, workerId="builder-1", kind=kind)
        assert list(found) == ["ok", "workerId", "kind", "path", "files"]
        assert (found["ok"], found["workerId"], found["kind"]) == (True, "builder-1", kind)
        assert [file["name"] for file in found["files"]] == expected
        for file in found["files"]:
            assert file["content"] == Path(file["path"]).read_text()
            assert Path(file["path"]).is_relative_to(found["path"])
    assert "The shed stands" in api.get(MEMORY, workerId="builder-1", kind="handoff")["files"][0]["content"]


def test_a_mission_or_a_day_can_be_named_and_what_is_not_there_is_an_empty_list(api: Api) -> None:
    ask = {"workerId": "builder-1"}
    assert len(api.get(MEMORY, kind="mission", missionId="mission-1", **ask)["files"]) == 3
    assert len(api.get(MEMORY, kind="episodic", date="2026-04-24", **ask)["files"]) == 1
    assert api.get(MEMORY, kind="mission", missionId="mission-9", **ask)["files"] == []
    assert api.get(MEMORY, kind="episodic", date="2025-01-01", **ask)["files"] == []


def test_shared_memory_is_read_without_a_worker(home: Home, api: Api) -> None:
    manifest = home.shared / "swarm" / "missions" / "mission-0" / "manifest.json"
    manifest.parent.mkdir(parents=True)
    manifest.write_text('{"missionId": "mission-0"}\n')
    found = api.get(MEMORY, kind="shared")
    assert found["workerId"] is None
    assert [file["name"] for file in found["files"]] == ["builder-1-latest.md", "mission-0/manifest.json"]


def test_a_search_tells_path_line_and_snippet(api: Api) -> None:
    for word in ("query", "q"):
        found = api.get(SEARCH, workerId="builder-1", **{word: "shed stands"})
        assert (found["ok"], found["query"]) == (True, "shed stands")
        first = found["results"][0]
        line = Path(first["path"]).read_text().split("\n")[first["line"] - 1]
        assert "shed stands" in line
        assert "shed stands" in first["snippet"]
        assert first["workerId"] == "builder-1"
        assert first["score"] == 102
    everywhere = api.get(SEARCH, query="shed", scope="all", limit=100)["results"]
    assert {hit["workerId"] for hit in everywhere} == {"builder-1", "painter-2"}
    assert len(api.get(SEARCH, query="shed", scope="all")["results"]) == 10
    assert len(api.get(SEARCH, query="shed", scope="all", limit=1)["results"]) == 1
    shared = api.get(SEARCH, query="shed", scope="shared")["results"]
    assert shared
    assert all("/handoffs/swarm/" in hit["path"] for hit in shared)
    assert api.get(SEARCH, query="xylophone", scope="all")["results"] == []


def test_a_card_for_each_worker(api: Api) -> None:
    found = api.get("/api/workers")
    assert found["running"] is True
    cards = {card["workerId"]: card for card in found["workers"]}
    builder, painter = cards["builder-1"], cards["painter-2"]
    assert (builder["name"], builder["role"], builder["missionId"]) == ("Mason", "Builder", "mission-1")
    assert (builder["title"], builder["status"]) == ("Build the shed", "executing")
    assert (builder["lastEvent"]["type"], builder["lastEvent"]["summary"]) == (
        "checkpoint",
        "The shed stands",
    )
    assert (painter["name"], painter["status"], painter["blockers"]) == (
        "painter-2",
        "blocked",
        ["No paint left"],
    )


def test_metrics_are_prometheus_text(api: Api) -> None:
    until(lambda: b"swarmmemd_turns_total 0\n" not in api.ask("GET", "/metrics").body, "a turn to be counted")
    found = api.ask("GET", "/metrics")
    assert found.headers["content-type"].startswith("text/plain; version=0.0.4")
    samples = {}
    for line in found.body.decode().splitlines():
        if not line.startswith("# "):
            name, value = re.fullmatch(r"(swarmmemd_\w+(?:\{\w+=\"[\w.-]+\"\})?) ([0-9.e+-]+)", line).groups()  # type: ignore[union-attr]
            samples[name] = float(value)
    assert samples['swarmmemd_events_total{type="dispatch"}'] == 2
    assert samples['swarmmemd_events_total{type="blocked"}'] == 1
    assert samples["swarmmemd_up"] == samples["swarmmemd_watcher_alive"] == 1
    assert samples["swarmmemd_workers"] == 2
    assert samples["swarmmemd_turns_total"] > 0
    assert samples["swarmmemd_turn_seconds_total"] > 0
    assert samples["swarmmemd_journal_bytes"] > 4096
    assert {
        f"swarmmemd_{name}" for name in ("lag_seconds", "queue_events", "disk_free_bytes")
    } <= samples.keys()


# Events


def test_the_stream_begins_with_the_newest_goes_on_and_resumes(home: Home, api: Api) -> None:
    recorded = home.events()
    with api.stream(recent=2) as events:
        assert [next(events)["seq"], next(events)["seq"]] == [one["seq"] for one in recorded[-2:]]
        home.write("walker-3", dispatched("mission-3", "Walk the dog"))
        came = [next(events), next(events)]
    assert [one["type"] for one in came] == ["mission-start", "dispatch"]
    assert came == home.events()[len(recorded) :]
    with api.stream(last=recorded[0]["seq"]) as events:
        assert [next(events) for _ in recorded] == home.events()[1 : len(recorded) + 1]
    with api.stream(after=came[0]["seq"]) as events:
        assert next(events) == came[1]


def test_a_stream_that_is_left_is_forgotten(api: Api) -> None:
    def streams() -> bytes:
        return re.search(rb"^swarmmemd_streams (\d+)$", api.ask("GET", "/metrics").body, re.M)[1]  # type: ignore[index]

    until(lambda: streams() == b"0", "the streams of other tests to end")
    with api.stream(recent=1) as events:
        next(events)
        assert streams() == b"1"
    until(lambda: streams() == b"0", "the stream to end")


# Who may ask


@pytest.mark.parametrize(
    ("code", "method", "path", "headers"),
    [
        (401, "GET", "/", {"Authorization": None}),
        (401, "GET", "/panel.js", {"Authorization": None}),
        (401, "GET", f"{MEMORY}?kind=shared", {"Authorization": None}),
        (401, "GET", "/metrics", {"Authorization": None}),
        (401, "GET", "/openapi.json", {"Authorization": None}),
        (401, "GET", "/nothing", {"Authorization": None}),
        (401, "POST", MEMORY, {"Authorization": None}),
        (401, "POST", "/api/link", {"Authorization": None}),
        (401, "GET", "/metrics", {"Authorization": "Bearer "}),
        (401, "GET", "/metrics", {"Authorization": "Bearer Grüße"}),
        (401, "GET", "/metrics", {"Authorization": "Basic b3A6b3A="}),
        (
            401,
            "GET",
            "/metrics",
            {"Authorization": None, "Cookie": "swarmmemd-PORT=9999999999.x.y; swarmmemd-PORT=;a"},
        ),
        (403, "GET", "/metrics", {"Host": "evil.example"}),
        (403, "GET", "/healthz", {"Host": "127.0.0.1"}),
        (403, "GET", "/healthz", {"Host": "127.0.0.1.evil.example:7768"}),
        (403, "GET", "/metrics", {"Origin": "http://evil.example"}),
        (403, "GET", "/metrics", {"Origin": "null"}),
        (403, "POST", MEMORY, {"Origin": "http://127.0.0.1:1"}),
        (403, "OPTIONS", MEMORY, {"Origin": "http://evil.example"}),
        (403, "GET", "/link/guessed", {"Authorization": None}),
        (404, "GET", "/nothing", {}),
        (404, "GET", "/../token", {}),
        (404, "GET", f"{MEMORY}/", {}),
        (405, "PUT", MEMORY, {}),
        (405, "POST", SEARCH, {}),
        (405, "OPTIONS", MEMORY, {}),
    ],
)
def test_who_may_not_ask(api: Api, code: int, method: str, path: str, headers: dict[str, str | None]) -> None:
    given = {name: value.encode().decode("latin-1") if value else value for name, value in headers.items()}
    given = {name: value.replace("PORT", str(api.port)) if value else value for name, value in given.items()}
    found = api.ask(method, path, headers=given)
    assert found.code == code
    is_refused(found.json)
    assert not [name for name in found.headers if name.startswith("access-control")]
    assert found.headers["x-content-type-options"] == "nosniff"


def is_refused(content: Any) -> None:
    """Every refusal has this form."""
    assert content["ok"] is False
    assert isinstance(content["error"], str)
    assert content["error"]


def test_a_missing_or_doubled_host_is_refused(api: Api) -> None:
    for hosts in (b"", f"Host: 127.0.0.1:{api.port}\r\nHost: evil\r\n".encode()):
        found = api.raw(b"GET /healthz HTTP/1.1\r\n" + hosts + b"Connection: close\r\n\r\n")
        assert found.startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("request_", [b"\xff\r\n\r\n", b"GET / HTTP/1.1\r\nX: %b\r\n\r\n" % (b"x" * 40_000)])
def test_what_is_no_request_is_refused_in_the_same_form(api: Api, request_: bytes) -> None:
    head, _, body = api.raw(request_).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"nosniff" in head
    is_refused(json.loads(body))


def test_a_stranger_learns_only_that_it_is_well(api: Api) -> None:
    found = api.ask("GET", "/healthz", headers={"Authorization": None})
    assert (found.code, found.json) == (200, {"ok": True})


def test_the_token_is_private(home: Home) -> None:
    for path, mode in ((home.state / "token", 0o600), (home.state, 0o700)):
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_link_opens_the_panel_once(home: Home, api: Api) -> None:
    link = home.command("serve", "--link").stdout.strip()
    assert link.startswith(f"{api.address}/link/")
    path = link.removeprefix(api.address)
    opened = api.ask("GET", path, headers={"Authorization": None})
    assert (opened.code, opened.headers["location"]) == (303, "/")
    assert opened.headers["referrer-policy"] == "no-referrer"
    cookie = opened.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(cookie.split("; "))
    assert api.token not in cookie
    name = cookie.partition("=")[0]
    assert str(api.port) in name  # another server's cookie does not take its place
    assert api.get("/openapi.json")["components"]["securitySchemes"]["cookie"]["name"] == name
    again = api.ask("GET", path, headers={"Authorization": None})
    assert again.code == 403
    is_refused(again.json)
    by_cookie: dict[str, str | None] = {"Authorization": None, "Cookie": cookie.split("; ")[0]}
    page = api.ask("GET", "/", headers=by_cookie)
    assert page.code == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "unsafe" not in page.headers["content-security-policy"]
    # Another port of this machine is the same site: the cookie comes along, the request is refused.
    for headers in ({"Sec-Fetch-Site": "same-site"}, {"Origin": "http://127.0.0.1:1"}):
        assert api.ask("GET", f"{MEMORY}?kind=shared", headers={**by_cookie, **headers}).code == 403
    assert api.ask("POST", "/api/link", headers=by_cookie).code == 403
    ours = {"Origin": api.address}
    assert api.ask("POST", "/api/link", {}, headers={**by_cookie, **ours}).code == 200
    form = {"Content-Type": "text/plain"}
    assert api.ask("POST", "/api/link", b"{}", headers={**by_cookie, **ours, **form}).code == 400


def test_a_browser_without_a_key_is_told_how_to_get_one(api: Api) -> None:
    found = api.ask("GET", "/", headers={"Authorization": None, "Accept": "text/html,*/*"})
    assert found.code == 401
    assert b"swarmmemd serve --link" in found.body
    found = api.ask("GET", "/link/used", headers={"Authorization": None, "Accept": "text/html,*/*"})
    assert (found.code, found.headers["content-type"]) == (403, "text/html; charset=utf-8")
    assert b"This link was used" in found.body
    for path in ("/", "/link/used"):  # no key would mend that
        is_refused(api.ask("GET", path, headers={"Host": "evil.example", "Accept": "text/html"}).json)
    assert b"swarmmemd serve --link" in found.body


# Questions that mean nothing


@pytest.mark.parametrize(
    ("code", "path", "query"),
    [
        (400, MEMORY, {"workerId": "builder-1"}),
        (400, MEMORY, {"workerId": "builder-1", "kind": "private"}),
        (400, MEMORY, {"kind": "mission"}),
        (400, MEMORY, {"kind": "mission", "workerId": "../builder-1"}),
        (400, MEMORY, {"kind": "mission", "workerId": "builder-1", "missionId": "../../../etc"}),
        (400, MEMORY, {"kind": "mission", "workerId": "builder-1", "missionId": "a/b"}),
        (400, MEMORY, {"kind": "shared", "workerId": "x\n"}),
        (400, MEMORY, {"kind": "episodic", "workerId": "builder-1", "date": "../../x"}),
        (400, MEMORY, {"kind": "episodic", "workerId": "builder-1", "date": "2026-02-30"}),
        (400, f"{MEMORY}?kind=profile", {"kind": "shared"}),
        (404, MEMORY, {"kind": "profile", "workerId": "nobody"}),
        (400, SEARCH, {"scope": "all"}),
        (400, SEARCH, {"query": "shed"}),
        (400, SEARCH, {"query": "shed", "scope": "worker"}),
        (400, SEARCH, {"query": "shed", "scope": "everything"}),
        (400, SEARCH, {"query": " ", "scope": "all"}),
        (400, f"{SEARCH}?query=shed", {"query": "paint", "scope": "all"}),
        (400, SEARCH, {"query": "shed", "scope": "all", "limit": "0"}),
        (400, SEARCH, {"query": "shed", "scope": "all", "limit": "ten"}),
        (404, SEARCH, {"query": "shed", "workerId": "nobody"}),
        (400, "/api/events", {"after": "-1"}),
        (400, "/api/events?after=1", {"after": "2"}),
        (400, "/api/events", {"recent": "501"}),
    ],
)
def test_what_cannot_be_answered(api: Api, code: int, path: str, query: dict[str, Any]) -> None:
    more = "&" if "?" in path and query else ""
    found = api.ask("GET", f"{path}{more}{urlencode(query)}") if more else api.ask("GET", path, **query)
    assert found.code == code
    is_refused(found.json)


def test_a_body_that_is_too_large_is_refused(api: Api) -> None:
    found = api.ask("POST", MEMORY, b"x" * (4 << 20))
    assert found.code == 413
    is_refused(found.json)


# The description


def test_what_is_answered_is_what_is_described(api: Api) -> None:
    """Arbitrary questions: each answer has a code that is described, and its form."""
    document = api.get("/openapi.json")
    operations = [
        (path, method, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if operation["operationId"] != "events"  # has no end
    ]
    assert len(operations) == 8
    words = st.sampled_from(
        ["builder-1", "mission-1", "mission", "shared", "handoff", "all", "shed", "2026-04-24"]
    )
    values = words | st.text(max_size=20) | st.integers(-1, 2000).map(str)

    @given(st.data())
    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    def asked(data: st.DataObject) -> None:
        path, method, operation = data.draw(st.sampled_from(operations))
        names = [one["name"] for one in operation.get("parameters", [])]
        query: dict[str, Any] = {name: data.draw(values) for name in names if data.draw(st.booleans())}
        body = None
        if method == "post":
            keys = ["workerId", "kind", "missionId", "eventType", "content", "event", "mirrorShared", "other"]
            anything = (
                values | st.none() | st.booleans() | st.dictionaries(st.text(max_size=5), values, max_size=2)
            )
            body = data.draw(
                st.dictionaries(st.sampled_from(keys), anything) | st.lists(anything, max_size=2)
            )
        found = api.ask(
            method.upper(), path, body, **{k: v.encode("utf-8", "replace") for k, v in query.items()}
        )
        described(document, operation, found.code, found.headers["content-type"], found.body)

    asked()


def described(document: dict[str, Any], operation: dict[str, Any], code: int, kind: str, body: bytes) -> None:
    """Whether the description knows of such an answer."""
    assert str(code) in operation["responses"], (operation["operationId"], code, body)
    content = operation["responses"][str(code)]["content"]
    assert kind.partition(";")[0] in content
    if kind == "application/json":
        schema = {**content[kind]["schema"], "components": document["components"]}
        jsonschema.validate(json.loads(body), schema)


# Posting

TYPES = [
    "mission-start",
    "dispatch",
    "checkpoint",
    "handoff-requested",
    "resume",
    "blocked",
    "complete",
    "note",
]


@pytest.fixture(scope="module")
def teller(home: Home, api: Api) -> str:
    """A worker that only posts tell of."""
    home.write("teller-4", {"state": "idle"})
    home.looked_at()
    return "teller-4"


def test_each_type_of_event_is_posted_and_stands_in_its_files_with_the_answer(
    home: Home, api: Api, teller: str
) -> None:
    for kind in TYPES:
        told = api.post(
            workerId=teller, kind="mission", missionId="mission-4", eventType=kind, content=f"Told: {kind}"
        )
        assert (told["ok"], told["workerId"], told["kind"]) == (True, teller, "mission")
        assert told["event"]["type"] == kind
        lines = [json.loads(line) for line in Path(told["path"]).read_text().splitlines()]
        assert told["id"] in [line["id"] for line in lines]
    assert Path(told["path"]) == home.mission(teller, "mission-4") / "events.jsonl"
    assert home.status_of(teller, "mission-4") == "complete"
    assert set(home.types(teller)) == set(TYPES)


def test_a_checkpoint_keeps_its_fields_and_is_one_however_often_it_is_posted(
    home: Home, api: Api, teller: str
) -> None:
    event = {"state": "DONE", "result": "41 tests are green", "nextAction": "Merge it", "sure": True}
    body = {
        "workerId": teller,
        "kind": "mission",
        "missionId": "mission-5",
        "eventType": "checkpoint",
        "event": event,
    }
    first, again = api.post(**body, content="Parser merged"), api.post(**body, content="Parser merged")
    assert first["id"] == again["id"]
    assert first["event"]["event"].items() >= {"state": "DONE", "result": "41 tests are green"}.items()
    found = api.get(MEMORY, workerId=teller, kind="mission", missionId="mission-5")["files"]
    assert "41 tests are green" in found[0]["content"]
    assert "Merge it" in found[0]["content"]


def test_a_day_takes_what_belongs_to_no_mission(api: Api, home: Home) -> None:
    home.write("idler-5", {"state": "idle"})
    home.looked_at()
    told = api.post(workerId="idler-5", kind="episodic", content="The cat sat on the keyboard")
    assert "The cat sat on the keyboard" in Path(told["path"]).read_text()
    assert told["event"]["missionId"] is None
    day = api.get(MEMORY, workerId="idler-5", kind="episodic")["files"][0]
    assert day["path"] == told["path"]


def test_half_an_emoji_costs_a_letter_and_no_post(api: Api, teller: str) -> None:
    """Clients cut texts by UTF-16 units."""
    told = api.post(
        workerId=teller,
        kind="episodic",
        content="Painted \ud83c",
        event={"result": "Blue \ude00", "\ud83d": "x"},
    )
    assert told["event"]["summary"] == "Painted \ufffd"
    assert told["event"]["event"].items() >= {"result": "Blue \ufffd", "\ufffd": "x"}.items()
    assert "Painted \ufffd" in Path(told["path"]).read_text()
    whole = api.post(workerId=teller, kind="episodic", content="Painted \ud83c\udfa8")
    assert whole["event"]["summary"] == "Painted \U0001f3a8"
    for wrong in ('"event": {"n": NaN}', '"event": [1]', '"kind": "mission"'):
        body = f'{{"workerId": "{teller}", "kind": "episodic", "content": "\\ud83c", {wrong}}}'
        assert api.ask("POST", MEMORY, body.encode()).code == 400


def test_a_handoff_is_kept_whole_and_mirrored_unless_it_is_not_to_be(
    home: Home, api: Api, teller: str
) -> None:
    body = {"workerId": teller, "kind": "handoff", "missionId": "mission-6"}
    text = f"# Handoff — {teller} — mission-6\n\n## Next exact action\n\nWater the plants\n"
    told = api.post(**body, content=text)
    shared = home.shared / "handoffs" / "swarm" / f"{teller}-latest.md"
    assert Path(told["path"]).read_text() == text
    until(lambda: shared.exists() and shared.read_text() == text, "the shared copy")
    private = text.replace("plants", "secret plants")
    told = api.post(**body, content=private, mirrorShared=False)
    assert Path(told["path"]).read_text() == private
    home.looked_at()
    assert shared.read_text() == text
    assert told["event"]["event"]["mirrorShared"] is False
    api.post(**body, content=text.replace("plants", "trees"))
    until(lambda: "trees" in shared.read_text(), "the next one")


@pytest.mark.parametrize(
    ("code", "change"),
    [
        (400, {"kind": "shared"}),
        (400, {"kind": "profile"}),
        (400, {"kind": "private"}),
        (400, {"kind": None}),
        (400, {"workerId": "../x"}),
        (400, {"workerId": 5}),
        (404, {"workerId": "nobody"}),
        (400, {"missionId": "../../x"}),
        (400, {"missionId": None}),
        (400, {"assignmentId": "a b"}),
        (400, {"eventType": "party"}),
        (400, {"eventType": "handoff-written"}),
        (400, {"content": " "}),
        (400, {"event": {"state": {"deep": 1}}, "content": ""}),
        (400, {"event": {"count": 10**30}}),
        (400, {"kind": "handoff", "content": ""}),
        (409, {"kind": "handoff", "content": "# Handoff — somebody-else — mission-1\n\nMine\n"}),
    ],
)
def test_what_is_not_taken(home: Home, api: Api, code: int, change: dict[str, Any]) -> None:
    before = len(home.events())
    body = {"workerId": "builder-1", "kind": "mission", "missionId": "mission-1", "content": "x", **change}
    found = api.ask("POST", MEMORY, body)
    assert found.code == code, found
    is_refused(found.json)
    assert len(home.events()) == before


def test_half_an_emoji_is_no_bug(api: Api, teller: str) -> None:
    body = (
        b'{"workerId": "teller-4", "kind": "episodic", "content": "\\ud83e alone", "event": {"a": "\\udd80"}}'
    )
    found = api.ask("POST", MEMORY, body)
    assert found.code in (200, 400), found
    assert api.ask("GET", f"{SEARCH}?scope=all&query=%ff%ed%a0%80").code == 200


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"[]", b"{", b"\xff", b"[" * 100_000),
        b'{"workerId": "painter-2", "workerId": "builder-1", "kind": "episodic", "content": "x"}',
        b'{"workerId": "builder-1", "kind": "episodic", "content": "x", "event": {"state": "DONE", "state": ""}}',
        b'{"workerId": "builder-1", "kind": "episodic", "content": "x", "more": %b1%b}'
        % (b"[" * 9999, b"]" * 9999),
    ],
)
def test_a_body_that_is_no_post(api: Api, body: bytes) -> None:
    found = api.ask("POST", MEMORY, body)
    assert found.code == 400
    is_refused(found.json)


# The documentation


def examples() -> list[tuple[int, str, str]]:
    """The code that is expected, the commands, and the JSON below them, of each example that is to be run."""
    page = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
    pattern = r"<!-- run ?(\d*) -->\n```sh\n(.*?)```\n(?:\n```json\n(.*?)```)?"
    return [(int(code or 200), text, json) for code, text, json in re.findall(pattern, page, re.S)]


def test_the_documentation_s_examples_do_what_it_says(home: Home, api: Api) -> None:
    home.write("swarm5", dispatched("mission-x", "Write the parser"))
    home.looked_at()
    first, *others = examples()
    assert len(others) >= 11
    for code, command, expected in others:
        script = f"{first[1]}{command}".replace("~/.local/state/swarmmemd", str(home.state))
        script = script.replace(":7768", f":{api.port}").replace("curl -s", r"curl -s -w '\n%{http_code}'")
        done = subprocess.run(
            ["bash", "-ec", script], capture_output=True, text=True, timeout=30, check=False
        )
        body, _, status = done.stdout.rpartition("\n")
        assert (done.returncode, int(status)) == (0, code), (command, done)
        if code != 200:
            is_refused(json.loads(body))
        elif expected:
            assert list(json.loads(body)) == list(json.loads(expected)), command


# Without a daemon, and how it ends


def test_serve_reads_without_a_daemon_and_takes_posts_beside_one(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.write("builder-1", dispatched("mission-1", "Build the shed"))
    assert home.command("once").returncode == 0
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))  # what a server that was killed leaves behind
    command = home.arguments("serve", "--api-listen", f"unix:{path}")
    server = subprocess.Popen(command, env=home.environment(), stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        assert f"unix:{path}" in server.stderr.readline()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        token = (home.state / "token").read_text().strip()

        def ask(method: str, target: str, body: str = "") -> tuple[int, Any]:
            with socket.socket(socket.AF_UNIX) as asked:
                asked.connect(str(path))
                head = f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
                asked.sendall(
                    f"{head}Connection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
                )
                answer = b"".join(iter(lambda: asked.recv(1 << 16), b"")).decode()
            return int(answer.split()[1]), json.loads(answer.partition("\r\n\r\n")[2])

        code, found = ask("GET", f"{MEMORY}?workerId=builder-1&kind=mission")
        assert (code, found["files"][0]["name"]) == (200, "SUMMARY.md")
        code, found = ask("GET", "/api/workers")
        assert (code, found["running"], found["workers"][0]["title"]) == (200, False, "Build the shed")
        memory = home.profiles / "builder-1" / "memory"
        memory.rename(memory.with_name("aside"))
        memory.symlink_to("aside")  # which is not followed: nobody knows what there is
        for target in (f"{MEMORY}?workerId=builder-1&kind=mission", f"{SEARCH}?scope=all&q=shed"):
            code, found = ask("GET", target)
            assert code == 503
            is_refused(found)
        memory.unlink()
        memory.with_name("aside").rename(memory)
        body = json.dumps(
            {"workerId": "builder-1", "kind": "mission", "missionId": "mission-1", "content": "x"}
        )
        code, found = ask("POST", MEMORY, body)
        assert code == 503
        is_refused(found)
        assert ask("GET", "/healthz")[0] == 503
        with running(home):  # one that serves nothing itself
            code, found = ask("POST", MEMORY, body)
            assert (code, found["event"]["summary"]) == (200, "x")
            assert ask("GET", "/healthz")[0] == 200
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=10) == 0
        assert not path.exists()
    finally:
        server.kill()
        server.communicate()


def test_a_port_that_is_taken_and_a_token_that_others_can_read_are_refused(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    with socket.create_server(("127.0.0.1", 0)) as other:
        done = home.command("serve", "--api-listen", f"127.0.0.1:{other.getsockname()[1]}")
    assert done.returncode == 74
    assert "in use" in done.stderr
    home.state.mkdir(exist_ok=True)
    (home.state / "token").write_text("x" * 43)
    (home.state / "token").chmod(0o644)
    done = home.command("serve", "--api-listen", "127.0.0.1:0")
    assert done.returncode == 77
    assert str(home.state / "token") in done.stderr
    assert home.command("serve", "--link").returncode == 69


def test_a_port_that_is_taken_stops_no_recording_and_is_tried_again(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.write("builder-1", dispatched("mission-1", "Build the shed"))

    def told() -> str:
        return str([one["reason"] for one in home.figures()["troubles"] if one["what"] == "api"])

    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        daemon = Daemon(home, "--api-enabled", "--api-listen", f"127.0.0.1:{port}")
        try:
            daemon.ready()
            home.looked_at()
            assert [event["type"] for event in home.events()] == ["mission-start", "dispatch"]
            until(lambda: "in use" in told(), "the trouble in status")
            assert home.figures()["api"] is None
            other.close()
            assert api_of(home).get(MEMORY, kind="shared")["ok"]
            assert home.figures()["api"] == f"http://127.0.0.1:{port}"
            until(lambda: told() == "[]", "the end of the trouble")
            assert daemon.stop() == 0
        finally:
            daemon.kill()


def test_what_was_answered_survives_kill_9(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.write("builder-1", dispatched("mission-1", "Build the shed"))
    with running(home, *SERVED) as daemon:
        home.looked_at()
        api = api_of(home)
        told = api.post(
            workerId="builder-1", kind="mission", missionId="mission-1", content="The saw is blunt"
        )
        daemon.kill()
    assert told["id"] in [event["id"] for event in home.events()]
    assert told["id"] in Path(told["path"]).read_text()
    assert home.command("once").returncode == 0
    assert [event["summary"] for event in home.events()].count("The saw is blunt") == 1


def test_a_stream_outlives_nothing_but_holds_up_nobody(tmp_path: Path) -> None:
    """SIGTERM ends the daemon with 0, streams or not; the same number goes on at the next one."""
    home = Home(tmp_path / "home")
    home.write("builder-1", dispatched("mission-1", "Build the shed"))
    with running(home, *SERVED) as daemon:
        home.looked_at()
        with api_of(home).stream(after=0) as events:
            last = [next(events) for _ in range(2)][-1]
            assert daemon.stop(5.0) == 0
            assert list(events) == []
    home.write("builder-1", answered("mission-1", "The shed stands"))
    with running(home, *SERVED), api_of(home).stream(last=last["seq"]) as events:
        assert next(events)["summary"] == "The shed stands"
    until(lambda: not home.figures()["running"], "the end")
