"""`python -m tests.browser.page_process DB PORT WORKERS [--stalled-after-s S] [--lease-ms N]`.

A gateway in open mode with the kinds of jobs that people have, and one that fails the first time.
"""

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Any

import msgspec

from gateway import handlers, lease
from gateway.config import Config
from gateway.kinds import Context, Kind, Kinds
from gateway.outcomes import Permanent
from gateway.store import jobs
from gateway.tables import Alarms


class Args(msgspec.Struct):
    seconds: float = 0.0


def registry(settings: dict[str, Any]) -> Kinds:
    folder = Path(settings["folder"])

    async def fails_once(context: Context, args: Args) -> None:
        mark = folder / f"failed-{context.job_id}"
        if not mark.exists():
            mark.touch()
            raise Permanent("no answer from <the other side>")

    async def slow(context: Context, args: Args) -> None:
        context.progress(0.5, "half of it")
        await asyncio.sleep(args.seconds)

    own = {"fails_once": Kind("fails_once", fails_once, Args), "slow": Kind("slow", slow, Args)}
    return {**handlers.registry(settings), **own}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("db")
    parser.add_argument("port", type=int)
    parser.add_argument("workers", type=int)
    parser.add_argument("--stalled-after-s", type=float, default=300.0)
    parser.add_argument("--lease-ms", type=int, default=jobs.LEASE_MS)
    parser.add_argument("--work", action="store_true", help="workers only, no front")
    args = parser.parse_args()
    jobs.LEASE_MS = args.lease_ms
    lease.RENEW_S = args.lease_ms / 3000
    lease.LOOK_S = min(lease.LOOK_S, lease.RENEW_S / 2)
    config = Config(
        db=args.db, port=args.port, workers=args.workers, open=True, drain_timeout_s=1.0,
        min_free_bytes=0,
        alarms=Alarms(look_s=0.2, stalled_after_s=args.stalled_after_s, disk_low_bytes=0),
    )  # fmt: skip
    kinds = "tests.browser.page_process:registry"
    if args.work:
        from gateway.work import work

        return asyncio.run(work(config, kinds))
    from gateway import app  # only now: the page takes the length of a lease as it finds it

    return asyncio.run(app.serve(config, registry=kinds))


if __name__ == "__main__":
    sys.exit(main())
