"""`swarmmemd serve`: the HTTP API and the memory panel, without the daemon or beside it."""

from typing import TYPE_CHECKING

import click

from swarmmemd.cli.options import common_options, load_config
from swarmmemd.cli.output import say_line
from swarmmemd.errors import ConfigError, Exit, NotRunningError

if TYPE_CHECKING:
    from swarmmemd.config import Config

_EPILOG = """\b
Examples:
  swarmmemd serve
  swarmmemd serve --api-listen 127.0.0.1:8000
  swarmmemd serve --link
"""
EXTRA = "The HTTP API needs starlette and uvicorn; install them: pip install 'swarmmemd[api]'"


@click.command("serve", epilog=_EPILOG)
@click.option(
    "--link", is_flag=True, help="Print a one-time link to the panel of the server that runs already."
)
@common_options
@click.pass_context
def serve_command(ctx: click.Context, link: bool) -> int:
    """Serve the HTTP API and the memory panel, in the foreground, from the files as they are.

    The daemon serves both itself where api.enabled is set. Posts need a running daemon. Prints a link that opens
    the panel once.
    """
    config = load_config(ctx).config
    if link:
        say_line(_link(config))
        return Exit.DONE
    check_extra()
    import signal

    from swarmmemd.instance import is_running
    from swarmmemd.web.server import Server

    ends = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)  # in every thread: they are waited for here
    with Server(config, holds_lock=is_running(config.state_dir) is None) as server:
        _tell(server.address.shown, server.link())
        signal.sigwait(ends)
    return Exit.DONE


def check_extra() -> None:
    """Raises `ConfigError` where the extra is not installed."""
    from importlib.util import find_spec

    if not (find_spec("starlette") and find_spec("uvicorn")):
        raise ConfigError([EXTRA])


def _tell(address: str, link: str) -> None:
    say_line(f"Serving at {address}. End it with Ctrl-C.", err=True)
    if address.startswith("http"):
        say_line("The panel, opened once within ten minutes:", err=True)
        say_line(link)


def _link(config: "Config") -> str:
    """Asks the server that runs for a link."""
    import http.client
    import json

    from swarmmemd.standing import standing
    from swarmmemd.web.keys import held

    if config.api.listen.startswith("unix:"):
        raise NotRunningError("A browser reaches no Unix socket", "Set api.listen to 127.0.0.1:7768.")
    shown = standing(config.state_dir).figures.get("api") or f"http://{config.api.listen}"
    mend = "Start it: swarmmemd serve, or set api.enabled for the daemon."
    try:
        asked = http.client.HTTPConnection(shown.removeprefix("http://"), timeout=10)
        asked.connect()
        token = held(config.state_dir) or b""
        asked.request("POST", "/api/link", headers={"Authorization": b"Bearer " + token})
        answer = json.loads(asked.getresponse().read())
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise NotRunningError(f"{shown}: no API answers there ({error})", mend) from error
    if not answer.get("ok"):
        raise NotRunningError(f"{shown}: {answer.get('error')}", mend)
    return str(answer["url"])
