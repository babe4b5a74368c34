"""A try in a process of its own: for handlers that need the processor, and for jobs that crashed.

The parent can kill it at any instant, and it ends when its parent does, so a rescued job never
runs beside its orphan. `python -m gateway.child_process` reads one Order from stdin, tells of its
progress line by line, and of the outcome on the last one.
"""

import asyncio
import ctypes
import importlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal

import msgspec

from gateway import log, outcomes
from gateway.kinds import Context, Kinds, Progress
from gateway.outcomes import Crashed, Done, Failed, Outcome, Snoozed
from gateway.store.database import Database
from gateway.store.jobs import Claimed

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


class Order(msgspec.Struct):
    """What a child does: one try of one job, with the kinds that `registry` returns.

    Attributes:
        registry: `module:function`; called with `settings`, it returns the kinds.
    """

    database: str
    registry: str
    settings: dict[str, Any]
    claimed: Claimed


class _Said(msgspec.Struct, omit_defaults=True):
    what: Literal["progress", "done", "failed", "snoozed"]
    percent: int = 0
    text: str | None = None
    permanent: bool = False
    ms: int | None = None


def kinds_of(registry: str, settings: dict[str, Any]) -> Kinds:
    """Return the kinds that `module:function` makes of the settings."""
    module, _, function = registry.partition(":")
    found: Kinds = getattr(importlib.import_module(module), function)(settings)
    return found


async def run(order: Order, report: Progress) -> Outcome:
    """Run a try in a child; if this is cancelled, the child is killed."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway.child_process",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        process_group=0,  # and not a new session, see child_process
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(msgspec.json.encode(order) + b"\n")  # stays open: its end is ours
        outcome: Outcome | None = None
        while line := await process.stdout.readline():
            said = msgspec.json.decode(line, type=_Said)
            if said.what == "progress":
                report(said.percent, said.text)
            else:
                outcome = _heard(said)
        code = await process.wait()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # whatever it started goes with it
        await process.wait()
        process.stdin.close()
    return outcome or Crashed(f"its process ended with {code} in the middle")


def _heard(said: _Said) -> Outcome:
    match said.what:
        case "done":
            return Done(said.text)
        case "snoozed":
            return Snoozed(said.ms or 0, said.text)
    return Failed(said.text or "", said.permanent, said.ms)


def _said(outcome: Outcome) -> _Said:
    match outcome:
        case Done(result):
            return _Said("done", text=result)
        case Snoozed(delay_ms, why):
            return _Said("snoozed", text=why, ms=delay_ms)
        case Failed(error, permanent, retry_after_ms):
            return _Said("failed", text=error, permanent=permanent, ms=retry_after_ms)
    raise AssertionError(outcome)


async def _try(order: Order, say: Callable[[_Said], None]) -> None:
    kind = kinds_of(order.registry, order.settings)[order.claimed.kind]
    database = await Database.open(order.database)
    try:
        context = Context(
            order.claimed.id,
            order.claimed.request_id,
            database,
            log.of_job(order.claimed.id, order.claimed.request_id),
            lambda percent, stage: say(_Said("progress", percent, stage)),
        )
        outcome: Outcome = Done(await kind.handler(context, kind.decode(order.claimed.args)))
    except Exception as error:
        outcome = outcomes.of(error)
    finally:
        await database.close()
    say(_said(outcome))


def _tie_to_parent() -> None:
    """End when the parent does: at once on Linux, and elsewhere when its end of stdin closes."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    def wait_for_the_end() -> None:
        while os.read(0, 65536):  # past Python's buffer: its lock would be in the way of our end
            pass
        os._exit(1)

    threading.Thread(target=wait_for_the_end, daemon=True).start()


def main() -> None:
    order = msgspec.json.decode(sys.stdin.buffer.readline(), type=Order)
    _tie_to_parent()
    lock, out = threading.Lock(), sys.stdout.buffer
    sys.stdout = sys.stderr  # what a handler prints is no answer of ours

    def say(said: _Said) -> None:
        with lock:
            out.write(msgspec.json.encode(said) + b"\n")
            out.flush()

    asyncio.run(_try(order, say))
