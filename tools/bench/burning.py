"""This gateway, with a kind of job that only burns the processor: `… DB`, prints its port."""

import asyncio
import sys
import time
from typing import Any

import msgspec

from gateway.kinds import Context, Kind, Kinds

REGISTRY = "tools.bench.burning:registry"


class Args(msgspec.Struct):
    seconds: float


async def _burn(context: Context, args: Args) -> None:
    end = time.monotonic() + args.seconds
    while time.monotonic() < end:
        sum(range(10_000))


def registry(settings: dict[str, Any]) -> Kinds:
    return {"burn": Kind("burn", _burn, Args, heavy=True)}


if __name__ == "__main__":
    from gateway import app  # not for the child processes that only want the kind
    from gateway.config import Config

    config = Config(db=sys.argv[1], open=True, port=0, drain_timeout_s=0)
    asyncio.run(app.serve(config, registry=REGISTRY))
