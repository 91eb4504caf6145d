"""The memory panel in a real browser: what a person sees, hears read out, and reaches without a mouse."""

import json
import os
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import pytest

from tests.support.api import SERVED, api_of
from tests.support.browser import Browser, browser, executable
from tests.support.daemon import STARTED, Daemon, Home, answered, dispatched, put_file, running, until

if executable() is None:
    assert not os.environ.get("SWARMMEMD_CI"), "no browser"
    pytest.skip("no browser: install Debian's chromium", allow_module_level=True)

_HOSTILE = (
    "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script> "
    "[click](javascript:document.title='owned') \u202egnp.exe" + "W" * 3000
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with nobody in it."""
    return Home(tmp_path_factory.mktemp("panel") / "home")


@pytest.fixture(scope="module")
def daemon(home: Home) -> Iterator[Daemon]:
    """A daemon that serves all tests of this module."""
    found = Daemon(home, *SERVED)
    try:
        found.ready()
        STARTED.remove(found.process)  # it outlives a test
        yield found
    finally:
        found.kill()


@pytest.fixture(scope="module")
def window(home: Home, daemon: Daemon) -> Iterator[Browser]:
    """The panel, opened by a one-time link."""
    with browser(home.root.parent) as found:
        found.window(1280, 900)
        api_of(home)
        found.open(home.command("serve", "--link").stdout.strip())
        yield found


@pytest.fixture
def page(window: Browser) -> Iterator[Browser]:
    """The panel, as it is after it was opened anew; nothing may have gone wrong in it meanwhile."""
    window.said.clear()
    window.window(1280, 900)
    window.reload()
    window.shows("Live", "#link")
    yield window
    assert window.said == []


def test_an_empty_swarm_is_said_in_words(page: Browser) -> None:
    page.shows("No workers yet", "#workers")
    page.shows("Waiting for the first event", "main")
    assert page.js("document.querySelectorAll('.card').length") == 0


def test_what_happens_on_disk_is_seen(home: Home, page: Browser) -> None:
    home.write("builder-1", dispatched("mission-1", "Build the shed"))
    page.shows("Build the shed", "[data-worker=builder-1]")
    page.shows("executing", "[data-worker=builder-1] .chip")
    home.write("builder-1", answered("mission-1", "The nails are used up", "BLOCKED"))
    page.shows("Blocked by\nThe nails are used up", "[data-worker=builder-1]")
    page.shows("blocked builder-1", "#events")
    page.shows("1 blocked", "#tally")
    assert page.js("document.querySelector('#events li').innerText").startswith("blocked builder-1")


def test_a_worker_s_memory_is_shown_as_pages_and_stays_current(home: Home, page: Browser) -> None:
    page.click("[data-worker=builder-1] button")
    page.shows("Mission mission-1 — Build the shed", "#page h3")
    assert page.js("[...document.querySelectorAll('#page h4')].map(n => n.innerText)")[0] == "Current state"
    home.write("builder-1", answered("mission-1", "A second bag was found", "IN_PROGRESS"))
    page.shows("A second bag was found", "#page")
    page.click("#tab-episodic")
    page.shows("Episodes — builder-1", "#page h3")
    page.click("#tab-handoff")
    page.shows("No handoff yet", "#page")


def test_the_open_page_goes_on_with_its_worker_to_the_next_mission(home: Home, page: Browser) -> None:
    home.write("mover-3", dispatched("mission-a", "Lay the floor"))
    page.click("[data-worker=mover-3] button")
    page.shows("Mission mission-a — Lay the floor", "#page h3")
    page.shows("Lay the floor · executing", "#sheet-about")
    home.write("mover-3", dispatched("mission-b", "Raise the roof", lastDispatchAt=1_777_000_090_000))
    page.shows("Mission mission-b — Raise the roof", "#page h3")
    page.shows("Raise the roof · executing", "#sheet-about")


def test_cards_stay_current_in_a_swarm_that_is_never_quiet(home: Home, page: Browser) -> None:
    """An event every few milliseconds puts nothing off, and touches no other card."""
    home.write("busy-10", dispatched("mission-1", "Hurry"))
    home.write("busy-9", dispatched("mission-1", "Hurry"))
    page.shows("Hurry", "[data-worker=busy-10]")
    page.shows("Hurry", "[data-worker=busy-9]")
    names = page.js("[...document.querySelectorAll('.open')].map(n => n.innerText)")
    assert names.index("busy-9") < names.index("busy-10")
    page.js("window.kept = document.querySelector('[data-worker=busy-10] .title').firstChild; 0")
    api = api_of(home)
    body = {"workerId": "busy-9", "kind": "mission", "missionId": "mission-1", "content": "Panting"}

    def seen() -> bool:
        api.post(**body)
        return "Panting" in page.text("[data-worker=busy-9]")

    until(seen, "the card of one that never rests")
    assert page.js("window.kept.isConnected")


def test_each_text_begins_where_its_writing_begins(home: Home, page: Browser) -> None:
    arabic = "أصلح المحلل (parser.py) ثم اختبره"
    home.write("writer-6", dispatched("mission-rtl", arabic))
    home.looked_at()
    home.write("writer-6", answered("mission-rtl", arabic, "BLOCKED"))
    page.shows(arabic, "[data-worker=writer-6] .blockers")
    page.shows(arabic, "#events")
    page.click("[data-worker=writer-6] button")
    page.shows(arabic, "#page")

    def directions(selector: str) -> set[str]:
        nodes = (
            f"[...document.querySelectorAll({json.dumps(selector)})].filter(n => n.innerText.startsWith('أ'))"
        )
        return set(page.js(f"{nodes}.map(n => getComputedStyle(n).direction)"))

    for selector in (
        "[data-worker=writer-6] .title",
        ".blockers li",
        "#events .what",
        "#page p",
        "#sheet-about bdi",
    ):
        assert directions(selector) == {"rtl"}, selector
    assert page.js("getComputedStyle(document.querySelector('#page h3')).direction") == "ltr"


def test_who_opens_a_used_link_is_told_how_to_get_another(home: Home, page: Browser) -> None:
    address = home.figures()["api"]
    page.open(f"{address}/link/used")
    page.shows("This link was used", "h1 + p")
    page.shows("swarmmemd serve --link", "pre")
    page.window(320, 600, dark=True)
    assert page.js("document.documentElement.scrollWidth") <= 320
    page.js((files("axe_core_python") / "axe.min.js").read_text() + "; 0")
    assert violations(page) == []
    assert page.js("getComputedStyle(document.body).backgroundColor") == "rgb(21, 23, 26)"
    assert all("403" in line for line in page.said), page.said
    page.said.clear()
    page.open(address + "/")
    page.shows("Live", "#link")


def test_a_search_marks_what_was_found(page: Browser) -> None:
    page.js("document.querySelector('#query').focus()")
    page.type("NAILS used")
    page.shows("hit", "#found-said")
    page.shows("nails are used", "#hits")
    marked = page.js("[...document.querySelectorAll('mark')].map(n => n.innerText.toLowerCase())")
    assert {"nails", "used"} <= set(marked)
    page.js("document.querySelector('#query').value = ''")
    page.type("xylophone")
    page.shows("Nothing remembered holds “xylophone”", "#found-said")
    page.press("Escape")
    until(lambda: page.text("#found") == "", "the search to close")


def test_everything_can_be_done_with_the_keyboard(page: Browser) -> None:
    page.shows("Build the shed", "#cards")
    page.tab_to("Skip to what happens")
    page.press("Enter")
    until(lambda: page.focused() == "stream", "the stream to have the focus")
    page.reload()
    page.shows("Build the shed", "#cards")
    page.tab_to("Skip to the workers")
    page.press("Enter")
    until(lambda: page.focused() == "workers", "the workers to have the focus")
    page.tab_to("builder-1")
    page.press("Enter")
    page.shows("Build the shed", "#page")
    page.tab_to("tab-mission")
    page.press("ArrowRight")
    until(lambda: page.focused() == "tab-handoff", "the next tab")
    page.press("ArrowLeft")
    page.press("Tab")
    assert page.focused() == "page"
    page.press("Escape")
    until(lambda: page.focused() == "builder-1", "the focus to be where it was")
    assert page.text("#sheet") == ""
    page.tab_to("pause")
    page.press("Enter")
    page.shows("Go on", "#pause")


def test_hostile_content_stays_text_and_breaks_no_layout(home: Home, page: Browser) -> None:
    page.js("window.addEventListener('securitypolicyviolation', e => console.log('violated', e.blockedURI))")
    (home.workspace / "swarm.yaml").write_text(
        json.dumps({"workers": [{"id": "evil-9", "name": _HOSTILE, "role": _HOSTILE}]})
    )
    put_file(
        home.profiles / "evil-9" / "memory" / "handoffs" / "latest.md",
        f"# {_HOSTILE}\n\n- {_HOSTILE}\n".encode(),
    )
    home.write("evil-9", dispatched("mission-evil", _HOSTILE))
    page.shows("<script>", "[data-worker=evil-9]")
    page.shows("onerror", "#events")
    page.click("[data-worker=evil-9] button")
    page.shows("<img src=x", "#page")
    for width in (320, 390, 1280):
        page.window(width, 800)
        for part in ("html", "#page", "#sheet"):
            assert page.js(f"document.querySelector('{part}').scrollWidth") <= width, (width, part)
        assert (
            page.js("new Set([...document.querySelectorAll('[role=tab]')].map(n => n.offsetTop)).size") == 1
        )
    assert page.js("document.title") == "Swarm memory"
    assert page.js("document.querySelectorAll('#page img, #page script, #page a, #events img').length") == 0
    assert "\u202e" not in page.text("#page")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("# One\ntwo\nthree\n\nfour", "<h3>One</h3><p>two three</p><p>four</p>"),
        ("- a\n- b\n  - c\n- d", "<ul><li>a</li><li>b<ul><li>c</li></ul></li><li>d</li></ul>"),
        ("  - a\n- b", "<ul><li>a</li></ul><ul><li>b</li></ul>"),
        ("1. a\n   more\n2. b", "<ol><li>a more</li><li>b</li></ol>"),
        (
            "```sh\nls <x>\n# no\n```\nout",
            '<pre tabindex="0"><code>ls &lt;x&gt;\n# no</code></pre><p>out</p>',
        ),
        ("```\nnever closed", '<pre tabindex="0"><code>never closed</code></pre>'),
        ("> a\n> b\n\n---", "<blockquote><p>a b</p></blockquote><hr>"),
        ("**a** *b c* `c*d*` 2*3*4", "<p><strong>a</strong> <em>b c</em> <code>c*d*</code> 2*3*4</p>"),
        (
            "[x](https://e.example/)",
            '<p><a href="https://e.example/" rel="noopener noreferrer" target="_blank">x</a></p>',
        ),
        ("[y](javascript:z) <b>", "<p>[y](javascript:z) &lt;b&gt;</p>"),
        ("####### seven", "<p>####### seven</p>"),
        (
            "- [x] done\n- [ ] *open*",
            (
                '<ul><li><span role="img" aria-label="done">☑</span> done</li>'
                '<li><span role="img" aria-label="open">☐</span> <em>open</em></li></ul>'
            ),
        ),
        (
            "__a__ (_b c_) snake_case_name __init__.py, _private",
            "<p><strong>a</strong> (<em>b c</em>) snake_case_name __init__.py, _private</p>",
        ),
        (
            "See <https://e.example/a_b_c>, or (http://e.example/x?y=1).",
            (
                '<p>See &lt;<a href="https://e.example/a_b_c" rel="noopener noreferrer" target="_blank">'
                "https://e.example/a_b_c</a>&gt;, or "
                '(<a href="http://e.example/x?y=1" rel="noopener noreferrer" target="_blank">http://e.example/x?y=1</a>).</p>'
            ),
        ),
        (
            "Why:\n| File | Why |\n|---|:-:|\n| `a|b` | \\| <b> |\nx | y | z\nend",
            (
                '<p>Why:</p><div class="table" tabindex="0"><table><thead><tr><th scope="col">File</th>'
                '<th scope="col">Why</th></tr></thead><tbody><tr><td>`a</td><td>b`</td></tr>'
                "<tr><td>x</td><td>y</td></tr></tbody></table></div><p>end</p>"
            ),
        ),
        (r"a \| b" + "\n---|---", r"<p>a \| b ---|---</p>"),
        ("", ""),
    ],
)
def test_markdown_becomes_what_it_means(page: Browser, text: str, shown: str) -> None:
    made = "import('/markdown.js').then(m => { const n = m.el('div'); n.append(m.render(%s)); return n.innerHTML; })"
    assert page.js(made % json.dumps(text)) == shown


def test_no_text_takes_long_to_show(page: Browser) -> None:
    """Texts that make a careless renderer go back and forth without end."""
    for piece in (
        *("*a", "[", "`", "- ", "> ", "[a](", "**a*", "#", "  - x\n"),
        *("_a", " _a", " __a_", "https://a.", "|", "|-", "| a\n|-\n", "- [x] "),
    ):
        made = "import('/markdown.js').then(m => m.render(%s.repeat(100000)).childNodes.length)"
        page.js(made % json.dumps(piece))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_nothing_keeps_anybody_out(page: Browser, dark: bool) -> None:
    axe = (files("axe_core_python") / "axe.min.js").read_text()
    page.window(390 if dark else 1280, 900, dark)
    page.shows("Build the shed", "#cards")
    page.js("document.querySelector('#query').focus()")
    page.type("shed")
    page.shows("hit", "#found-said")
    page.js(axe + "; 0")
    assert violations(page) == []
    page.click("[data-worker=builder-1] button")
    page.shows("Build the shed", "#page")
    assert violations(page) == []


def violations(page: Browser) -> list[Any]:
    """What axe-core finds wrong, in short."""
    found: list[Any] = page.js(
        "axe.run().then(r => r.violations.map(v => [v.id, v.nodes.slice(0, 3).map(n => n.html + n.failureSummary)]))"
    )
    return found


def test_the_stream_goes_on_after_a_restart_of_the_daemon(home: Home, page: Browser, daemon: Daemon) -> None:
    """The last test: the daemon that all share ends."""
    page.shows("Build the shed", "#cards")
    port = home.figures()["api"].rpartition(":")[2]
    assert daemon.stop() == 0
    page.shows("Disconnected. Trying again", "#link")
    assert "Build the shed" in page.text("#cards")
    page.click("[data-worker=builder-1] button")
    page.shows("It cannot be read right now: there is no connection", "#page")
    home.write("builder-1", answered("mission-1", "The shed stands after all"))
    with running(home, "--api-enabled", "--api-listen", f"127.0.0.1:{port}"):
        page.shows("The shed stands after all", "#page")
        page.press("Escape")
        page.shows("The shed stands after all", "#events")
        page.shows("Live", "#link")
        seen = page.js("[...document.querySelectorAll('#events li')].map(n => Number(n.dataset.seq))")
        assert seen == sorted(set(seen), reverse=True)
        page.said.clear()  # the browser's own words about the lost connection
        page.js("location.hash = ''")
        page.open(f"http://127.0.0.1:{port}/")
        page.shows("The shed stands after all", "#events")
    page.shows("Disconnected", "#link")
    page.said.clear()
