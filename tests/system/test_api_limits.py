"""What holds the HTTP API up: those who do not end what they began, streams without a journal, a disk that is stuck,
and an installation without it."""

import contextlib
import json
import re
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.api import SERVED, Api, api_of
from tests.support.daemon import PATIENCE, Home, dispatched, running, until

MEMORY = "/api/swarm-memory"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """One worker."""
    home = Home(tmp_path_factory.mktemp("limits") / "home")
    home.write("builder-1", dispatched("mission-1", "Build the shed"))
    return home


@pytest.fixture
def api(home: Home) -> Iterator[Api]:
    """The API of a daemon."""
    with running(home, *SERVED):
        home.looked_at()
        yield api_of(home)


def asked(api: Api, head: str, body: bytes = b"") -> socket.socket:
    """A request on a connection that stays open."""
    found = socket.create_connection(("127.0.0.1", api.port), timeout=2 * PATIENCE)
    common = f"Host: 127.0.0.1:{api.port}\r\nAuthorization: Bearer {api.token}\r\n"
    line, _, more = head.partition("\r\n")
    found.sendall(f"{line}\r\n{common}{more}\r\n".encode() + body)
    return found


def code(connection: socket.socket) -> int:
    """The code of the answer."""
    return int(connection.recv(1 << 16).split()[1])


def test_a_body_that_is_announced_as_too_large_is_refused_before_it_comes(api: Api) -> None:
    for size in (2 << 20, 10**19):
        with asked(api, f"POST {MEMORY} HTTP/1.1\r\nContent-Length: {size}\r\n", b"{") as connection:
            assert code(connection) == 413
    with asked(api, f"GET {MEMORY}?kind=shared HTTP/1.1\r\nContent-Length: {4 << 20}\r\n") as connection:
        assert code(connection) == 413


def test_who_sends_no_request_does_not_hold_a_connection(api: Api) -> None:
    address = ("127.0.0.1", api.port)
    with (
        socket.create_connection(address, timeout=2 * PATIENCE) as silent,
        socket.create_connection(address, timeout=2 * PATIENCE) as halfway,
        asked(api, "GET /healthz HTTP/1.1\r\n") as again,
    ):
        halfway.sendall(b"GET /healthz HTTP/1.1\r\nHo")
        answer = b""
        while not answer.endswith(b'{"ok":true}'):
            answer += again.recv(1 << 16)
        again.sendall(b"GET /healthz HTTP/1.1\r\nHo")
        assert silent.recv(1) == b""
        for connection in (halfway, again):
            answer = b"".join(iter(lambda: connection.recv(1 << 16), b""))  # noqa: B023
            assert answer.startswith(b"HTTP/1.1 400 ")
            assert json.loads(answer.partition(b"\r\n\r\n")[2])["ok"] is False


def test_there_are_never_more_streams_than_there_may_be(api: Api) -> None:
    with contextlib.ExitStack() as open_:
        streams = [open_.enter_context(asked(api, "GET /api/events HTTP/1.1\r\n")) for _ in range(130)]
        codes = [code(one) for one in streams]
    assert codes.count(200) == 100
    assert codes.count(503) == 30
    until(
        lambda: re.search(rb"^swarmmemd_streams 0$", api.ask("GET", "/metrics").body, re.M),
        "all of them to be forgotten",
    )


def test_the_head_of_a_stream_has_an_end(api: Api) -> None:
    with asked(api, "HEAD /api/events HTTP/1.1\r\nConnection: close\r\n") as connection:
        found = b"".join(iter(lambda: connection.recv(1 << 16), b""))
    assert found.startswith(b"HTTP/1.1 200 ")
    assert b"text/event-stream" in found


@contextlib.contextmanager
def serving(home: Home, folder: Path, *, site: Path | None = None) -> Iterator[Api]:
    """`swarmmemd serve`; `site` is a folder with a `sitecustomize.py`."""
    environment = home.environment()
    if site is not None:
        environment["PYTHONPATH"] = str(site)
    with (folder / "serve.log").open("w") as log:
        command = home.arguments("serve", "--api-listen", "127.0.0.1:0")
        server = subprocess.Popen(command, env=environment, stderr=log, stdout=log)
    try:
        until(lambda: "/link/" in (folder / "serve.log").read_text(), "the server")
        address = re.search(r"Serving at (\S+)\.", (folder / "serve.log").read_text())
        assert address is not None
        yield Api(address[1], (home.state / "token").read_text().strip())
        server.send_signal(signal.SIGTERM)
        assert server.wait(timeout=PATIENCE) == 0
    finally:
        server.kill()
        server.wait()


def test_a_stream_waits_for_a_journal(tmp_path: Path) -> None:
    """Who opens the panel before the daemon ran for the first time sees the first event as it is recorded."""
    home = Home(tmp_path / "home")
    home.write("builder-1", dispatched("mission-1", "Build the shed"))
    with serving(home, tmp_path) as api:
        with api.stream(recent=5) as newest, api.stream() as new, running(home):
            assert next(newest)["type"] == next(new)["type"] == "mission-start"
        assert "Traceback" not in (tmp_path / "serve.log").read_text()


_STUCK = """import os, time
_fsync = os.fsync
def fsync(file):
    while os.path.exists(%r):
        time.sleep(0.01)
    _fsync(file)
os.fsync = fsync
"""


def test_nobody_who_reads_waits_for_posts_that_wait_for_the_disk(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.write("builder-1", dispatched("mission-1", "Build the shed"))
    stuck, site = tmp_path / "stuck", tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(_STUCK % str(stuck))
    with running(home), serving(home, tmp_path, site=site) as api, contextlib.ExitStack() as open_:
        home.looked_at()
        stuck.touch()
        body = {"workerId": "builder-1", "kind": "mission", "missionId": "mission-1"}
        posts = []
        for number in range(40):
            data = json.dumps({**body, "content": f"Note {number}"}).encode()
            head = f"POST {MEMORY} HTTP/1.1\r\nContent-Length: {len(data)}\r\n"
            posts.append(open_.enter_context(asked(api, head, data)))
        with api.stream(recent=1) as events:
            assert next(events)["type"] == "dispatch"
        assert api.get(MEMORY, workerId="builder-1", kind="mission")["files"]
        assert api.ask("GET", "/healthz").code == 200
        stuck.unlink()
        assert [code(one) for one in posts] == [200] * 40


def test_a_token_that_is_a_link_to_something_else_tells_nobody_what_stands_there(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    secret = tmp_path / "secret"
    secret.write_text("two\nlines of a diary")
    secret.chmod(stat.S_IRUSR | stat.S_IWUSR)
    home.state.mkdir()
    (home.state / "token").symlink_to(secret)
    with socket.create_server(("127.0.0.1", 0)) as other:
        done = home.command("serve", "--link", "--api-listen", f"127.0.0.1:{other.getsockname()[1]}")
    assert done.returncode == 77
    assert str(home.state / "token") in done.stderr
    assert "diary" not in done.stdout + done.stderr


def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\nsys.modules.update(starlette=None, uvicorn=None)\n"
    )
    environment = {**home.environment(), "PYTHONPATH": str(tmp_path)}

    def done(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-m", "swarmmemd", "--state-dir", str(home.state), *arguments],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    for arguments in (("serve",), ("run", *SERVED)):
        found = done(*arguments)
        assert found.returncode == 78
        assert "pip install 'swarmmemd[api]'" in found.stderr
        assert "Traceback" not in found.stderr
    assert done("once").returncode == 0
