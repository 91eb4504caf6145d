"""A real browser, driven through its debugging pipe: what a person sees and does, and a picture of it."""

import base64
import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.support.daemon import until

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_OPTIONS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage"),
    *(
        "--disable-extensions",
        "--disable-background-networking",
        "--disable-component-update",
        "--hide-scrollbars",
    ),
    "--remote-debugging-pipe",
)
_LEFT_THE_PAGE = ("Inspected target navigated", "Execution context was destroyed", "Cannot find context")
"""What the browser answers to a question about a page that another has just taken the place of."""
_KEYS = {
    "Tab": (9, ""),
    "Enter": (13, "\r"),
    "Escape": (27, ""),
    "ArrowRight": (39, ""),
    "ArrowLeft": (37, ""),
    " ": (32, " "),
}


def executable() -> str | None:
    """Where the browser is; None where there is none."""
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


class LeftThePage(AssertionError):
    """The page was asked while another took its place: there is no answer, and there may be one at once."""


class Browser:
    """One page of it. Calls are answered in order; events are kept as they come."""

    def __init__(self, profile: Path) -> None:
        program = executable()
        assert program is not None
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        line = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        command = [
            "bash",
            "-c",
            line,
            "browser",
            program,
            *_OPTIONS,
            f"--user-data-dir={profile}",
            "about:blank",
        ]
        with (profile.parent / "browser.log").open("wb") as log:
            self._process = subprocess.Popen(
                command, pass_fds=(theirs_in, theirs_out), stdout=log, stderr=log, start_new_session=True
            )
        os.close(theirs_in)
        os.close(theirs_out)
        self._in, self._out = os.fdopen(ours_in, "rb"), os.fdopen(ours_out, "wb")
        self._numbers = itertools.count(1)
        self._rest = b""
        self._session: str | None = None
        self.said: list[str] = []
        """What the page wrote to its console, and errors that nobody caught."""
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(one["targetId"] for one in targets if one["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        """Ends it, with all its processes."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._in.close()
        with contextlib.suppress(OSError):
            self._out.close()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Calls a method of the debugging protocol."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        self._out.write(json.dumps(message).encode() + b"\0")
        self._out.flush()
        for answer in self._answers():
            if answer.get("id") == number:
                if any(words in str(answer.get("error")) for words in _LEFT_THE_PAGE):
                    raise LeftThePage(f"{method}: {answer['error']}")
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result
            self._heard(answer)
        raise AssertionError("the browser has ended")

    def _answers(self) -> Iterator[dict[str, Any]]:
        while True:
            whole, ended, rest = self._rest.partition(b"\0")
            if ended:
                self._rest = rest
                yield json.loads(whole)
                continue
            part = os.read(self._in.fileno(), 1 << 20)
            if not part:
                return
            self._rest += part

    def _heard(self, message: Mapping[str, Any]) -> None:
        told = message.get("params", {})
        if message.get("method") == "Runtime.exceptionThrown":
            self.said.append(str(told["exceptionDetails"].get("exception", {}).get("description")))
        elif message.get("method") == "Runtime.consoleAPICalled":
            self.said.append(" ".join(str(one.get("value")) for one in told["args"]))
        elif message.get("method") == "Log.entryAdded":
            self.said.append(f"{told['entry']['text']} {told['entry'].get('url', '')}")

    # What a person does and sees

    def open(self, url: str) -> None:
        """Goes there, and waits until it is loaded."""
        self.call("Page.navigate", url=url)
        until(self._complete, f"{url} to load")

    def js(self, expression: str) -> Any:
        """The value of an expression in the page; a promise is awaited."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def text(self, selector: str = "body") -> str:
        """What can be read there; nothing where there is no such part, or it is hidden."""
        part = f"document.querySelector({json.dumps(selector)})"
        return str(self.js(f"{part}?.checkVisibility() ? {part}.innerText : ''"))

    def shows(self, words: str, selector: str = "body") -> None:
        """Waits until the words can be read there."""
        try:
            until(lambda: words in self.text(selector), f"{words!r} in {selector}")
        except AssertionError as error:
            raise AssertionError(f"{error}; there is: {self.text(selector)[:2000]!r}; {self.said}") from None

    def click(self, selector: str) -> None:
        """Clicks, once it is there."""
        part = f"document.querySelector({json.dumps(selector)})"
        until(lambda: self.js(f"!!{part}?.checkVisibility()"), f"{selector} to be there")
        self.js(f"{part}.click()")

    def reload(self) -> None:
        """Opens the page anew, without what stands behind its `#`."""
        self.js("window.before = true; history.replaceState(null, '', location.pathname); location.reload()")
        until(lambda: self._complete("!window.before"), "the page to load")

    def _complete(self, besides: str = "true") -> bool:
        try:
            return bool(self.js(f"document.readyState == 'complete' && {besides}"))
        except LeftThePage:
            return False

    def press(self, key: str, shift: bool = False) -> None:
        """Presses a key."""
        code, text = _KEYS[key]
        common = {"key": key, "code": "Space" if key == " " else key, "modifiers": 8 if shift else 0}
        for kind in ("keyDown", "keyUp"):
            self.call(
                "Input.dispatchKeyEvent",
                type=kind,
                windowsVirtualKeyCode=code,
                **common,
                **({"text": text} if text and kind == "keyDown" else {}),
            )

    def type(self, text: str) -> None:
        """Types into what has the focus."""
        self.call("Input.insertText", text=text)

    def focused(self) -> str:
        """What has the focus: its id, or the beginning of its text."""
        return str(self.js("document.activeElement.id || document.activeElement.innerText.slice(0, 80)"))

    def tab_to(self, name: str, most: int = 40) -> None:
        """Presses Tab until that has the focus."""
        for _ in range(most):
            if self.focused() == name:
                return
            self.press("Tab")
        raise AssertionError(f"{name} cannot be reached with Tab; at the end: {self.focused()}")

    def window(self, width: int, height: int, dark: bool = False) -> None:
        """Another size of the window, and light or dark."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.call("Emulation.setEmulatedMedia", features=[scheme, still])

    def picture(self) -> bytes:
        """What the window shows, as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])


@contextlib.contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser with a profile of its own below the folder."""
    found = Browser(folder / "profile")
    try:
        yield found
    finally:
        found.close()
