"""The command line. A mistake costs one clear line and exit code 2."""

import argparse
import asyncio
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

from gateway import __version__, app, backup, check, device_verbs, job_verbs, log, registry
from gateway.config import Config, expected, flag, settings
from gateway.errors import Misconfigured, Unavailable
from gateway.log import one_line

# What the verbs beside `serve` and `check` need to know of the settings.
_DATABASE_ONLY = ("db",)
_OF_LINKS = ("db", "host", "port", "tls_cert", "tls_key")
_OF_WORKERS = (
    "db", "workers", "keep_done_days", "keep_failed_days", "keep_events_days", "drain_timeout_s",
    "log_level", "log_format",
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the command line says; return the exit code."""
    try:
        args = parser().parse_args(argv)
        act: Callable[[argparse.Namespace], int] = args.act
        return act(args)
    except (Misconfigured, Unavailable) as error:
        print(f"fieldpost: {one_line(str(error))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, with the nearest flag there is."""

    def error(self, message: str) -> NoReturn:
        unknown = re.search(r"unrecognized arguments: (--[\w-]+)", message)
        near = get_close_matches(unknown[1], _flags(), n=1) if unknown else []
        hint = f"did you mean {near[0]}?" if near else f"{self.prog} --help tells what there is"
        self.exit(2, f"fieldpost: {one_line(message)}; {hint}\n")


def parser() -> Parser:
    top = Parser(prog="python -m gateway", description="Fieldpost's gateway.", allow_abbrev=False)
    top.add_argument("--version", action="version", version=f"fieldpost {__version__}")
    verbs = top.add_subparsers(metavar="VERB", required=True)
    _verb(verbs, "serve", _serve, "run the gateway")
    _verb(verbs, "work", _work, "do jobs beside a gateway, in a process of its own", _OF_WORKERS)
    _verb(verbs, "check", _check, "verify what `serve` would start with; changes nothing")
    copy = _verb(
        verbs, "backup", _backup, "copy the database, also while it is used", _DATABASE_ONLY
    )
    copy.add_argument("path", metavar="PATH", type=Path, help="the file that is to be made")
    copy.add_argument("--force", action="store_true", help="replace it if it is there")
    _verb(verbs, "accept-key", _accept_key, "go on with another master key", _DATABASE_ONLY)
    of_jobs = _group(verbs, "jobs", "the queue: what was asked for, and what a person decides")
    job_verbs.add(
        lambda name, act, help: _verb(of_jobs, name, act, help, _DATABASE_ONLY), config_of
    )
    of_devices = _group(verbs, "devices", "boards and their keys")
    device_verbs.add(
        lambda name, act, help: _verb(of_devices, name, act, help, _DATABASE_ONLY), config_of
    )
    _verb(verbs, "login", _login, "print a link that logs a browser in, once", _OF_LINKS)
    _verb(verbs, "logout", _logout, "log every browser out", _DATABASE_ONLY)
    of_alarms = _group(verbs, "alarms", "what a person should know")
    alarms = _verb(of_alarms, "list", _alarms, "list the open alarms", _DATABASE_ONLY)
    close = _verb(of_alarms, "close", _close, "close one: you have seen to it", _DATABASE_ONLY)
    knows = _verb(
        of_alarms, "acknowledge", _acknowledge, "say that you know of one", _DATABASE_ONLY
    )
    for verb in (close, knows):
        verb.add_argument("id", metavar="ID", type=int, help="as `alarms list` shows it")
    knows.add_argument(
        "note", metavar="NOTE", nargs="?", default="", help="what others should know"
    )
    alarms.add_argument("--json", action="store_true", help="print one JSON object or array")
    return top


def _group(verbs: Any, name: str, help: str) -> Any:
    group = verbs.add_parser(name, help=help, allow_abbrev=False)
    return group.add_subparsers(metavar="VERB", required=True)


def _verb(
    verbs: Any,
    name: str,
    act: Callable[[argparse.Namespace], int],
    help: str,
    only: Sequence[str] = (),
) -> argparse.ArgumentParser:
    verb: argparse.ArgumentParser = verbs.add_parser(
        name, help=help, description=help, allow_abbrev=False
    )
    verb.set_defaults(act=act)
    verb.add_argument("--config", metavar="FILE", type=Path, help="TOML file with settings")
    for setting in settings():
        if only and setting.name not in only:
            continue
        told = f"{setting.metadata['help']}: {expected(setting)} (default: {setting.default})"
        action: Any = {"action": "store_true"} if setting.type is bool else {}
        if setting.metadata["is_list"]:
            action, told = {"action": "append"}, f"{told}; may be given several times"
        verb.add_argument(flag(setting.name), default=argparse.SUPPRESS, help=told, **action)
    return verb


def _flags() -> list[str]:
    own = ["--config", "--json", "--version", "--state", "--limit", "--priority", "--run-at-ms"]
    own += ["--bearer", "--may-ask"]
    return [*own, "--idempotency-key", "--force"] + [flag(setting.name) for setting in settings()]


def config_of(args: argparse.Namespace) -> Config:
    names = {setting.name for setting in settings()}
    given = {name: value for name, value in vars(args).items() if name in names}
    return Config.load(given, os.environ, args.config)


def _serve(args: argparse.Namespace) -> int:
    config = config_of(args)
    log.configure(config.log_level, config.log_format)
    return asyncio.run(app.serve(config))


def _work(args: argparse.Namespace) -> int:
    config = config_of(args)
    log.configure(config.log_level, config.log_format)
    return asyncio.run(app.work(config))


def _backup(args: argparse.Namespace) -> int:
    return backup.run(config_of(args), args.path, force=args.force)


def _accept_key(args: argparse.Namespace) -> int:
    count = asyncio.run(registry.accept_key(config_of(args)))
    print(f"give each of {count} devices the key that `python -m gateway devices add` prints now")
    return 0


def _check(args: argparse.Namespace) -> int:
    return check.run(config_of(args))


def _login(args: argparse.Namespace) -> int:
    return device_verbs.login(args, config_of(args))


def _logout(args: argparse.Namespace) -> int:
    return device_verbs.logout(args, config_of(args))


def _alarms(args: argparse.Namespace) -> int:
    return _show(asyncio.run(registry.open_alarms(config_of(args))), args.json)


def _close(args: argparse.Namespace) -> int:
    return _found(args.id, asyncio.run(registry.close_alarm(config_of(args), args.id)))


def _acknowledge(args: argparse.Namespace) -> int:
    note = one_line(args.note)
    return _found(args.id, asyncio.run(registry.acknowledge_alarm(config_of(args), args.id, note)))


def _found(alarm_id: int, was_open: bool) -> int:
    if was_open:
        return 0
    raise Misconfigured(f"there is no open alarm {alarm_id}: `alarms list` shows them")


def _show(rows: list[dict[str, object]], as_json: bool) -> int:
    if as_json:
        print(json.dumps(rows))
    for row in () if as_json else rows:
        print("\t".join(one_line(str(value)) for value in row.values()))
    return 0
