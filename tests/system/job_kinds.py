"""Kinds of jobs for processes that are killed: they note what they did in the database's folder."""

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import msgspec

from gateway.kinds import Context, Kind, Kinds


class Args(msgspec.Struct):
    seconds: float = 0.0


def registry(settings: dict[str, Any]) -> Kinds:
    folder = Path(settings["folder"])

    def note(context: Context, what: str) -> None:
        # One write with O_APPEND: lines of several processes do not mix.
        file = os.open(folder / "marks", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, f"{context.job_id} {what} {os.getpid()} {time.monotonic()}\n".encode())
        os.close(file)

    async def act(context: Context) -> None:
        async with context.effect(f"test:{context.job_id}") as effect:
            if effect.is_due:
                note(context, "acted")

    async def nothing(context: Context, args: Args) -> None:
        await asyncio.sleep(args.seconds)
        note(context, "acted")

    async def slow(context: Context, args: Args) -> None:
        note(context, "began")
        await asyncio.sleep(args.seconds)
        await act(context)

    async def flaky(context: Context, args: Args) -> None:
        note(context, "began")
        if f"{context.job_id} failed" not in (folder / "marks").read_text():
            note(context, "failed")
            raise OSError("the first time")
        await act(context)

    return {
        "flaky": Kind("flaky", flaky, Args),
        "nothing": Kind("nothing", nothing, Args),
        "slow": Kind("slow", slow, Args),
        "heavy": Kind("heavy", slow, Args, heavy=True),
    }
