"""`python -m gateway jobs VERB`: what stands on the command line, and what is printed."""

import argparse
import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from gateway import job_desk
from gateway.config import Config
from gateway.job_desk import Wish
from gateway.log import one_line
from gateway.states import State, Verb
from gateway.web.instants import iso
from gateway.web.shapes import Job

AddVerb = Callable[[str, Callable[[argparse.Namespace], int], str], argparse.ArgumentParser]
ReadConfig = Callable[[argparse.Namespace], Config]

_DECISIONS = {
    Verb.RETRY: "try a failed job again",
    Verb.DISCARD: "let a failed job be",
    Verb.CANCEL: "do not do a job: one that runs is asked to stop",
}


def _whole(least: int, most: int) -> Callable[[str], int]:
    def whole_number(text: str) -> int:
        if not least <= int(text) <= most:
            raise ValueError(text)
        return int(text)

    return whole_number


_ID = _whole(1, 2**63 - 1)


def add(verb: AddVerb, config: ReadConfig) -> None:
    """Add the verbs, each by `verb`; what they do begins with `config`."""

    def listed(args: argparse.Namespace) -> int:
        state = State(args.state) if args.state else None
        return _print(asyncio.run(job_desk.listed(config(args), state, args.limit)), args.json)

    def shown(args: argparse.Namespace) -> int:
        return _print_life(asyncio.run(job_desk.shown(config(args), args.id)), args.json)

    def decided(args: argparse.Namespace) -> int:
        job = asyncio.run(job_desk.decided(config(args), args.decision, args.id))
        return _print_one(job, args.json)

    def enqueued(args: argparse.Namespace) -> int:
        wish = Wish(args.kind, args.args, args.priority, args.run_at_ms, args.idempotency_key)
        return _print_one(asyncio.run(job_desk.enqueued(config(args), wish)), args.json)

    parsers = [verb("list", listed, "list the newest jobs")]
    parsers[0].add_argument("--state", choices=[str(state) for state in State])
    parsers[0].add_argument(
        "--limit", type=_whole(1, 1000), default=20, help="how many at most (default: 20)"
    )
    parsers.append(verb("show", shown, "show a job and every move of its life"))
    parsers[-1].add_argument("id", metavar="ID", type=_ID)
    for decision, help_ in _DECISIONS.items():
        parsers.append(verb(str(decision), decided, help_))
        parsers[-1].add_argument("id", metavar="ID", type=_ID)
        parsers[-1].set_defaults(decision=decision)
    parsers.append(_enqueue(verb("enqueue", enqueued, "ask for a job")))
    for parser in parsers:
        parser.add_argument("--json", action="store_true", help="print one JSON object or array")


def _enqueue(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("kind", metavar="KIND")
    parser.add_argument("args", metavar="ARGS", nargs="?", default="{}", help="a JSON object")
    parser.add_argument("--priority", type=int, default=0, help="higher first (default: 0)")
    parser.add_argument("--run-at-ms", type=int, metavar="MS", help="not before (default: now)")
    parser.add_argument(
        "--idempotency-key", metavar="KEY", help="the same key again asks for nothing new"
    )
    return parser


def _print(jobs: Iterable[Job], as_json: bool) -> int:
    if as_json:
        print(json.dumps([_plain(job) for job in jobs]))
    for job in () if as_json else jobs:
        print(_line(job))
    return 0


def _print_one(job: Job, as_json: bool) -> int:
    print(json.dumps(_plain(job)) if as_json else _line(job))
    return 0


def _print_life(life: job_desk.Life, as_json: bool) -> int:
    job = _plain(life.job)
    if as_json:
        print(json.dumps(job | {"moves": life.moves}))
        return 0
    for name, value in job.items():
        shown = iso(value) if name.endswith("_ms") and value is not None else value
        said = shown if isinstance(shown, str) else json.dumps(shown)
        print(f"{name}: {'' if shown is None else one_line(said)}")
    for move in life.moves:
        said = one_line(" ".join(str(move[name]) for name in ("worker", "detail") if move[name]))
        print(f"{iso(move['at_ms'])}  {move['verb']} -> {move['state']}  {said}".rstrip())
    return 0


def _line(job: Job) -> str:
    told = (job.id, job.kind, job.state, f"{job.progress} %", job.attempts, job.error or "")
    return "\t".join(one_line(str(value)) for value in told)


def _plain(job: Job) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(job)
    return found
