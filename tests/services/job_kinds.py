"""Kinds of jobs that only tests know: they note what they did in a folder."""

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

import msgspec

from gateway.kinds import Context, Kind, Kinds
from gateway.outcomes import Permanent, RetryAfter, Snooze
from gateway.store.jobs import Limits


class Args(msgspec.Struct):
    do: str = "nothing"
    mark: str = ""
    seconds: float = 0.0
    pause_s: float = 0.0


def registry(settings: dict[str, Any]) -> Kinds:
    folder = Path(settings["folder"])

    def note(args: Args, what: str) -> None:
        with (folder / f"{args.mark}.txt").open("a") as file:
            file.write(f"{what} {os.getpid()}\n")

    async def act(context: Context, args: Args) -> str | None:
        note(args, "began")
        match args.do:
            case "fail":
                raise OSError("as asked")
            case "permanent":
                raise Permanent("never")
            case "retry_after":
                raise RetryAfter(77, "429")
            case "snooze":
                raise Snooze(60)
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case "block":
                time.sleep(args.seconds)
            case "wait":
                context.progress(0.5, "waiting")
                await asyncio.sleep(args.seconds)
            case "effect":
                async with context.effect(f"test:{args.mark}") as effect:
                    if effect.is_due:
                        note(args, "acted")
                        await asyncio.sleep(args.pause_s)
                        if args.seconds:
                            raise OSError("after the act")
        note(args, "ended")
        return f"/results/{args.mark}"

    limits = Limits(**settings.get("limits", {}))
    timeout_s = settings.get("timeout_s", 300)
    return {
        "act": Kind("act", act, Args, limits, timeout_s),
        "heavy": Kind("heavy", act, Args, limits, timeout_s, heavy=True),
    }
