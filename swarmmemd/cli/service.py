"""`swarmmemd service`: the daemon as a service of systemd or launchd. docs/operations.md."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from swarmmemd.cli.options import common_options, load_config
from swarmmemd.cli.output import say, say_json, say_line
from swarmmemd.cli.spelling import spelled, uptime
from swarmmemd.errors import ConfigError, DeniedError, Exit, ServiceError, UsageError

if TYPE_CHECKING:
    from swarmmemd.config import Loaded
    from swarmmemd.install.overview import Overview
    from swarmmemd.install.program import Program
    from swarmmemd.install.supervised import Manager
    from swarmmemd.standing import Standing

SCHEMA = 1
DEFAULT = "launchd" if sys.platform == "darwin" else "systemd"
_PATIENCE = 60.0
_EPILOG = """\b
Examples:
  swarmmemd service install
  swarmmemd service install --dry-run
  swarmmemd service status
  swarmmemd service logs -f
  swarmmemd service uninstall
"""


@click.group("service", epilog=_EPILOG)
def service_command() -> None:
    """Run the daemon as a service of this user: under systemd on Linux, under launchd on macOS."""


def _options(command: Callable[..., int]) -> Callable[..., int]:
    """The options that every one of these commands has."""
    supervisor = click.option(
        "--supervisor",
        type=click.Choice(["systemd", "launchd"]),
        default=DEFAULT,
        help="Which manager; default: the platform's.",
    )
    as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
    return supervisor(as_json(common_options(click.pass_context(command))))


_wait = click.option(
    "--wait",
    "patience",
    type=click.FloatRange(min=0.1),
    default=_PATIENCE,
    show_default=True,
    metavar="SECONDS",
    help="How long the daemon may take to come up.",
)


@service_command.command("install", epilog=_EPILOG)
@click.option("--force", is_flag=True, help="Replace a definition that was edited by hand.")
@click.option("--dry-run", is_flag=True, help="Show the file and the commands; change nothing.")
@click.option("--print", "print_only", is_flag=True, help="Print the file only; change nothing.")
@click.option("--no-hardening", is_flag=True, help="Without the sandbox, for old kernels (systemd).")
@click.option("--linger", is_flag=True, help="Keep it running after the last logout (systemd).")
@_wait
@_options
def install_command(
    ctx: click.Context,
    supervisor: str,
    as_json: bool,
    force: bool,
    dry_run: bool,
    print_only: bool,
    no_hardening: bool,
    linger: bool,
    patience: float,
) -> int:
    """Install the service, start it and wait until it is healthy; else put back what was there.

    Twice changes nothing. It starts with every login.
    """
    from swarmmemd.install import systemd, transaction
    from swarmmemd.install.health import Health

    loaded = load_config(ctx)
    home = _home(ctx)
    manager = _manager(supervisor, home)
    program = _program(supervisor, home, loaded)
    plan = transaction.plan(manager, program.argv, not no_hardening)
    if print_only:
        say(plan.text, nl=False)
        return Exit.DONE
    told: dict[str, Any] = {"action": plan.action, "path": str(manager.path), "argv": list(program.argv)}
    commands = [*_lingering(linger, supervisor), *manager.commands()]
    told |= {"dry_run": dry_run, "warnings": list(program.warnings), "commands": commands}
    if dry_run:
        _say(told, as_json, f"{manager.path} ({plan.action}):\n\n{plan.text}\nThen:")
        if not as_json:
            say("".join(f"  {one}\n" for one in commands), nl=False)
        return Exit.DONE
    _refuse(manager)
    _check(program, home)
    for warning in program.warnings:
        say_line(f"warning: {warning}", err=True)
    if linger:
        # First of all: who asked for it is not served by half of it, and without a login it brings the manager up.
        systemd.linger()
    try:
        health = Health(loaded.config.state_dir, manager)
        outcome = transaction.install(manager, plan, force, patience, health)
    except transaction.EditedError as error:
        say(error.difference, err=True)
        raise
    told |= {"action": outcome.action, "saved": _spelled(outcome.saved), "stays": _stays(supervisor)}
    _say(told, as_json, f"{outcome.action}: {outcome.path}")
    _say_saved(outcome.saved)
    if outcome.action == "updated" and not as_json:
        say(plan.difference(outcome.path), err=True)
    return Exit.DONE


@service_command.command("uninstall", epilog=_EPILOG)
@click.option("--dry-run", is_flag=True, help="Say what would be removed; change nothing.")
@_options
def uninstall_command(ctx: click.Context, supervisor: str, as_json: bool, dry_run: bool) -> int:
    """Stop the service and remove it. Memory, state and configuration stay. Twice is once."""
    from swarmmemd.install import transaction

    manager = _manager(supervisor, _home(ctx))
    stays = [str(path) for path in (*_roots(ctx), *manager.left())]
    told: dict[str, Any] = {"path": str(manager.path), "dry_run": dry_run, "stays": stays}
    if dry_run:
        there = os.path.lexists(manager.path)
        told |= {"action": "removed" if there else "not installed"}
        _say(told, as_json, f"{'would be removed' if there else 'not installed'}: {manager.path}")
    else:
        _refuse(manager)
        outcome = transaction.uninstall(manager)
        told |= {"action": outcome.action, "saved": _spelled(outcome.saved), "other": outcome.other}
        _say(told, as_json, f"{outcome.action}: {outcome.path}")
        _say_saved(outcome.saved)
        if outcome.other:
            say_line(f"note: {outcome.other} is another service of that name, and stays as it is", err=True)
    if not as_json:
        say_line(f"These stay: {', '.join(stays)}")
    return Exit.DONE


def _roots(ctx: click.Context) -> tuple[Path, ...]:
    """What belongs to the workers, and the state; of a configuration that cannot be used the state only."""
    from swarmmemd.cli.options import state_directory

    try:
        config = load_config(ctx).config
    except ConfigError:
        return (state_directory(ctx),)
    return (config.profiles_root, config.shared_root, config.state_dir)


@service_command.command("start", epilog=_EPILOG)
@_wait
@_options
def start_command(ctx: click.Context, supervisor: str, as_json: bool, patience: float) -> int:
    """Start the service and wait until it is up, also after its manager gave up."""
    return _begin(ctx, supervisor, as_json, patience, "started")


@service_command.command("restart", epilog=_EPILOG)
@_wait
@_options
def restart_command(ctx: click.Context, supervisor: str, as_json: bool, patience: float) -> int:
    """Stop and start the service: after an upgrade, or a change of the roots."""
    return _begin(ctx, supervisor, as_json, patience, "restarted")


@service_command.command("stop", epilog=_EPILOG)
@_options
def stop_command(ctx: click.Context, supervisor: str, as_json: bool) -> int:
    """Stop the service until the next start or login."""
    manager = _installed(supervisor, _home(ctx))
    manager.stop()
    _say({"action": "stopped", "path": str(manager.path)}, as_json, "stopped")
    return Exit.DONE


@service_command.command("status", epilog=_EPILOG)
@_options
def status_command(ctx: click.Context, supervisor: str, as_json: bool) -> int:
    """Say how the service stands: what its manager, its file and the daemon itself say. Exits 3 if none runs."""
    found = look(ctx, supervisor)
    if as_json:
        say_json({"schema": SCHEMA, **_as_told(found)}, indent=2)
    else:
        for name, text in (("manager", _manager_says(found)), ("file", _file_says(found))):
            say_line(f"{name:<9} {text}")
        say_line(f"{'daemon':<9} {_daemon_says(found)}")
        if found.supervisor is not None and found.supervisor.stays is False:
            say_line(f"{'note':<9} it ends at the last logout: swarmmemd service install --linger")
    return Exit.DONE if found.standing.running else Exit.NOT_RUNNING


@service_command.command("logs", epilog=_EPILOG)
@click.option("-f", "--follow", is_flag=True, help="Go on as lines are written.")
@click.option(
    "-n",
    "count",
    type=click.IntRange(0, 2**31 - 1),
    default=50,
    show_default=True,
    help="The newest N lines.",
)
@click.option("--journal", is_flag=True, help="From journald, with what systemd itself says.")
@_options
def logs_command(
    ctx: click.Context, supervisor: str, as_json: bool, follow: bool, count: int, journal: bool
) -> int:
    """Show the daemon's log: the file in the state folder, else journald's. With --json a JSON object a line."""
    from swarmmemd.cli.options import state_directory
    from swarmmemd.layout import LOG
    from swarmmemd.recall import logs

    # Also where the configuration cannot be used: that is what somebody may be looking for.
    folder = state_directory(ctx) / LOG
    if journal or (supervisor == "systemd" and not (folder.is_dir() and _writes_files(ctx))):
        return _journal(count, follow, as_json)
    show = str if as_json else _readable
    lines = logs.newest(folder, count)
    for line in lines:
        say(show(line))
    try:
        for line in logs.follow(folder) if follow else ():
            say(show(line))
    except KeyboardInterrupt:
        return Exit.DONE
    if lines or not count:
        return Exit.DONE
    say_line(f"No log in {folder}", err=True)
    return Exit.NOTHING


def _writes_files(ctx: click.Context) -> bool:
    """Whether the daemon writes a log of its own: an old one tells nothing of now."""
    try:
        return load_config(ctx).config.log.files > 0
    except ConfigError:
        return True


def _readable(line: str) -> str:
    """Time, level, what happened, and the fields."""
    from swarmmemd.text import harmless

    try:
        event = json.loads(line)
        head = f"{event.pop('timestamp')[:19]}Z  {event.pop('level'):<7}  {event.pop('event')}"
    except (ValueError, KeyError, TypeError, AttributeError):
        return harmless(line)
    fields = "  ".join(f"{key}={value}" for key, value in event.items())
    return harmless(f"{head}  {fields}".rstrip())


def _journal(count: int, follow: bool, as_json: bool) -> int:
    """journald's, by journalctl; what it says goes through as it is."""
    import subprocess

    from swarmmemd.install.supervised import tool
    from swarmmemd.install.unit import NAME

    command = [tool("journalctl", "Set log.files in the configuration."), "--user", f"--unit={NAME}"]
    command += [f"--lines={count}", f"--output={'json' if as_json else 'short-iso'}", "--no-pager"]
    return subprocess.run([*command, *(["--follow"] if follow else [])], check=False).returncode


def look(ctx: click.Context, supervisor: str | None = None) -> "Overview":
    """How the service stands."""
    from swarmmemd.cli.options import state_directory
    from swarmmemd.install.overview import overview
    from swarmmemd.standing import seen

    home, kind = _home(ctx), supervisor or DEFAULT
    try:
        argv = _program(kind, home, load_config(ctx)).argv
    except (ServiceError, ConfigError):
        argv = None
    return overview(_manager(kind, home), argv, seen(state_directory(ctx)))


def brief(ctx: click.Context, found: "Standing") -> str | None:
    """The service in a line, for `status`; None where none is installed. Its manager is asked only if there is."""
    from swarmmemd.install.overview import overview

    manager = _manager(DEFAULT, _home(ctx))
    return _manager_says(overview(manager, None, found)) if manager.path.exists() else None


def _as_told(found: "Overview") -> dict[str, Any]:
    import msgspec

    holder, figures = found.standing.holder, found.standing.figures
    daemon = {
        "running": found.standing.running,
        "pid": holder.pid if holder else None,
        "version": holder.version if holder else None,
        "since": holder.since if holder else None,
        "uptime_s": uptime(holder.since) if holder else None,
        "by_service": found.by_service,
        "unseen": found.standing.unseen,
        "troubles": figures.get("troubles", []) if found.standing.running else [],
    }
    told = {"supervisor": found.supervisor, "unasked": found.unasked, "definition": found.definition}
    last = found.standing.last_exit
    return {
        **msgspec.to_builtins(told),
        "daemon": daemon,
        "installed_version": found.installed_version,
        "last_exit": msgspec.to_builtins(last) if last else None,
    }


def _manager_says(found: "Overview") -> str:
    one = found.supervisor
    if one is None:
        return f"cannot be asked: {found.unasked}"
    if not one.loaded:
        return f"{one.manager} knows no such service"
    told = f"{one.manager}: {one.active}, {'starts' if one.enabled else 'does not start'} with the login"
    told += f", since {one.since}" if one.since and one.active == "active" else ""
    told += f", restarted {one.restarts} times" if one.restarts else ""
    if one.active == "failed":
        told += f", ended with {one.last_exit} ({one.result})"
        told += "; it gave up, begin anew: swarmmemd service start" if one.gave_up else ""
    return told + (", its file changed: swarmmemd service install" if one.outdated else "")


def _file_says(found: "Overview") -> str:
    one = found.definition
    told = {
        "missing": "there is none. Install it: swarmmemd service install",
        "outdated": "is outdated: swarmmemd service install",
        "edited": "was edited by hand",
        "foreign": "was not made by swarmmemd service install",
    }
    return f"{one.path} {told.get(one.state, 'is current')}"


def _daemon_says(found: "Overview") -> str:
    holder, last = found.standing.holder, found.standing.last_exit
    if found.standing.unseen:
        return f"cannot be told: {found.standing.unseen}"
    if found.elsewhere is not None:
        return (
            f"process {found.elsewhere} of the service holds no lock in this state folder: swarmmemd doctor"
        )
    if holder is None:
        return f"does not run: {last.reason} (exit {last.exit}). {last.mend}" if last else "does not run"
    told = f"{holder.version} {'runs' if found.standing.running else 'is starting'}, process {holder.pid}"
    told += f", for {spelled(uptime(holder.since))}"
    if not found.by_service:
        told += "; it was not started by the service"
    if holder.version != found.installed_version:
        told += f"; installed is {found.installed_version}: swarmmemd service restart"
    return told


def _begin(ctx: click.Context, supervisor: str, as_json: bool, patience: float, action: str) -> int:
    from swarmmemd.install.health import Health
    from swarmmemd.install.transaction import begin

    state_dir = load_config(ctx).config.state_dir
    manager = _installed(supervisor, _home(ctx))
    health = Health(state_dir, manager)
    begin(health, manager.start if action == "started" else manager.restart, patience)
    _say({"action": action, "path": str(manager.path)}, as_json, action)
    return Exit.DONE


def _home(ctx: click.Context) -> Path:
    """The home that the service lives in: the account's, also for a worker that calls this."""
    from swarmmemd.cli.options import home_directory

    return home_directory(ctx)


def _manager(supervisor: str, home: Path) -> "Manager":
    if supervisor == "launchd":
        from swarmmemd.install.launchd import Launchd

        return Launchd(home)
    from swarmmemd.install.systemd import Systemd

    return Systemd(home)


def _installed(supervisor: str, home: Path) -> "Manager":
    manager = _manager(supervisor, home)
    if not manager.path.exists() and not manager.look().loaded:
        raise ServiceError("The service is not installed", "Install it: swarmmemd service install")
    return manager


def _program(supervisor: str, home: Path, loaded: "Loaded") -> "Program":
    from swarmmemd.config import account
    from swarmmemd.install.program import find_program

    return find_program(supervisor, home, loaded, account())


def _check(program: "Program", home: Path) -> None:
    from swarmmemd.install.program import check

    check(program.script, home)


def _refuse(manager: "Manager") -> None:
    """What would leave files of root's in a user's home, or cut off the branch that this sits on."""
    if os.geteuid() == 0 and os.environ.get("SUDO_USER"):
        raise DeniedError(
            f"Under sudo the service would be root's, not {os.environ['SUDO_USER']}'s",
            "Run it without sudo: it is a service of the user.",
        )
    if manager.inside():
        raise ServiceError(
            "This runs inside the service that it would change", "Run it in a shell of your own."
        )


def _lingering(wanted: bool, supervisor: str) -> list[str]:
    """The command that keeps the user's manager up without a login, where it is wanted and not so already."""
    from swarmmemd.install import systemd

    if wanted and supervisor != "systemd":
        raise UsageError("--linger is for systemd", "An agent of launchd runs while its user is logged in.")
    return [" ".join(systemd.enable_linger())] if wanted and not systemd.lingers() else []


def _stays(supervisor: str) -> bool | None:
    """Whether the service stays after the last logout; None where that is no question."""
    from swarmmemd.install import systemd

    if supervisor != "systemd":
        return None
    if not systemd.lingers():
        say_line(
            "note: it ends at the last logout and starts with the next login; to keep it running, also after"
            " a reboot: swarmmemd service install --linger",
            err=True,
        )
    return systemd.lingers()


def _spelled(path: Path | None) -> str | None:
    return str(path) if path is not None else None


def _say_saved(saved: Path | None) -> None:
    if saved is not None:
        say_line(f"note: what stood there was not ours as it was, and is kept: {saved}", err=True)


def _say(told: dict[str, Any], as_json: bool, text: str) -> None:
    if as_json:
        say_json({"schema": SCHEMA, **told}, indent=2)
    else:
        say(text)
