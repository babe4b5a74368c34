"""The experiments' kinds of jobs, beside the shipped ones."""

import asyncio
from dataclasses import replace
from typing import Any

import msgspec

from gateway import handlers
from gateway.handlers import send_email
from gateway.kinds import Context, Kind, Kinds
from gateway.store.jobs import Limits

REGISTRY = "tools.lab.kinds:registry"
_STEPS = 20


class Lasting(msgspec.Struct):
    seconds: float = 2.0


class Nothing(msgspec.Struct):
    pass


def registry(settings: dict[str, Any]) -> Kinds:
    return {
        **handlers.registry(settings),
        "lasting": Kind("lasting", _last, Lasting),
        "hopeless": Kind("hopeless", _fail, Nothing),
        "send_email_again": replace(
            send_email.kind(settings, repeat=True), name="send_email_again"
        ),
        # The limits are each kind's own parameters; these let it come to its end in a lesson.
        "hopeless_by_tries": Kind("hopeless_by_tries", _fail, Nothing, Limits(max_attempts=3)),
        "hopeless_by_time": Kind(
            "hopeless_by_time", _fail, Nothing, Limits(max_attempts=1000, deadline_ms=5000)
        ),
    }


async def _last(context: Context, args: Lasting) -> None:
    """Be slow as work at a sensor or on a network is: wait, and say how far it is."""
    for step in range(_STEPS):
        context.progress(step / _STEPS, "lasting")
        await asyncio.sleep(args.seconds / _STEPS)


async def _fail(context: Context, args: Nothing) -> None:
    raise OSError("this kind always fails")
