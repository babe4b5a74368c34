"""`python -m gateway devices VERB`, `login`, `logout`: who may come in, from the command line."""

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from gateway import links, registry
from gateway.config import Config
from gateway.errors import Misconfigured
from gateway.log import one_line

AddVerb = Callable[[str, Callable[[argparse.Namespace], int], str], argparse.ArgumentParser]
ReadConfig = Callable[[argparse.Namespace], Config]

_FOR_BOARD = 'Put it into the board\'s config.json: "device": "{}", "key": "…". Keep it secret.'
_FOR_CURL = 'Use it as "Authorization: Bearer …"; it is not shown again. Keep it secret.'
_BEARER = "a token for curl and other clients that can not sign, in place of a key"


def add(verb: AddVerb, config: ReadConfig) -> None:
    """Add the verbs of `devices`, each by `verb`; what they do begins with `config`."""

    def added(args: argparse.Namespace) -> int:
        if args.bearer:
            _print_bearer(args, _do(registry.give_bearer(config(args), args.name)))
        else:
            _print_key(args, _do(registry.add(config(args), args.name)))
        if args.may_ask:
            _do(registry.let_ask(config(args), args.name, True))
        return 0

    def rotated(args: argparse.Namespace) -> int:
        if args.bearer:
            _print_bearer(args, _do(registry.give_bearer(config(args), args.name)))
            return 0
        _print_key(args, _do(registry.rotate(config(args), args.name)))
        print("The old key stays valid until the board has used this one.", file=sys.stderr)
        return 0

    def revoked(args: argparse.Namespace) -> int:
        if args.bearer:
            _do(registry.revoke_bearer(config(args), args.name))
        if args.may_ask:
            _do(registry.let_ask(config(args), args.name, False))
        if not (args.bearer or args.may_ask):
            _do(registry.revoke(config(args), args.name))
        print(f"revoked; a gateway that runs notices within 5 s: {args.name}", file=sys.stderr)
        return 0

    def listed(args: argparse.Namespace) -> int:
        return _show(_do(registry.everybody(config(args))), args.json)

    parser = _named(verb("add", added, "register a board and print its key"))
    parser.add_argument("--bearer", action="store_true", help=_BEARER)
    parser.add_argument("--may-ask", action="store_true", help="it may ask for jobs, too")
    shown = verb("list", listed, "list the boards")
    renew = _named(verb("rotate", rotated, "print a new key; the old one is void once it is used"))
    renew.add_argument("--bearer", action="store_true", help="a new token; the old one is void")
    revoke = _named(verb("revoke", revoked, "make key and token void, for good"))
    revoke.add_argument("--bearer", action="store_true", help="the token only")
    revoke.add_argument("--may-ask", action="store_true", help="that it may ask for jobs, only")
    for each in (parser, shown, renew):
        each.add_argument("--json", action="store_true", help="print one JSON object or array")


def login(args: argparse.Namespace, config: Config) -> int:
    """Print a link that logs a browser in, once, within 10 minutes."""
    if config.folder is None:
        raise Misconfigured("a database in memory is another one here: `serve` prints the link")
    path = _do(registry.login_link(config))
    print(links.base(config, config.host, config.port) + path)
    print("Valid once, for 10 minutes. Who has it can do everything here.", file=sys.stderr)
    return 0


def logout(args: argparse.Namespace, config: Config) -> int:
    """End the sessions of all browsers."""
    ended = _do(registry.log_everybody_out(config))
    print(f"{ended} sessions ended; a gateway that runs notices within 5 s", file=sys.stderr)
    return 0


def _do(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def _named(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("name", metavar="NAME", help="1 to 64 of A-Z a-z 0-9 _ . -")
    return parser


def _print_key(args: argparse.Namespace, key: str) -> None:
    print(json.dumps({"device": args.name, "key": key}) if args.json else key)
    print(_FOR_BOARD.format(args.name), file=sys.stderr)


def _print_bearer(args: argparse.Namespace, token: str) -> None:
    print(json.dumps({"device": args.name, "bearer": token}) if args.json else token)
    print(_FOR_CURL, file=sys.stderr)


def _show(rows: list[dict[str, object]], as_json: bool) -> int:
    if as_json:
        print(json.dumps(rows))
    for row in () if as_json else rows:
        print("\t".join(one_line(str(value)) for value in row.values()))
    return 0
