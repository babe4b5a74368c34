"""What this queue does, measured in a process of its own: `-m tools.bench.our_queue FOLDER …`."""

import argparse
import asyncio
import json
import random
import time
from pathlib import Path
from typing import Any

import msgspec

from gateway.kinds import Context, Kind, Kinds
from gateway.pool import Pool
from gateway.store.clock import Instant
from gateway.store.database import Database, connect
from gateway.store.jobs import Asked, Queue

WORKERS = 4
TOGETHER = 32

_begun: list[float] = []  # when each handler began
_enough = asyncio.Event()
_wanted = 0


class Nothing(msgspec.Struct):
    """Args of a job that does nothing."""


async def _nothing(context: Context, args: Nothing) -> None:
    _begun.append(time.perf_counter())
    if len(_begun) >= _wanted:
        _enough.set()


def registry(settings: dict[str, Any]) -> Kinds:
    return {"nothing": Kind("nothing", _nothing, Nothing)}


def _want(more: int) -> None:
    global _wanted
    _wanted = len(_begun) + more
    _enough.clear()


ASKED = Asked("nothing", "{}")


async def measure(path: str, jobs: int, picks: int) -> dict[str, Any]:
    database = await Database.open(path)
    queue = Queue()

    async def ask() -> None:
        await database.write(lambda c: queue.enqueue(c, ASKED, Instant.now().wall_ms))

    async def ask_many(count: int) -> None:
        for _ in range(count):
            await ask()

    began = time.perf_counter()
    await ask_many(jobs // 2)
    one_by_one = time.perf_counter() - began
    began = time.perf_counter()
    await asyncio.gather(*(ask_many(jobs // 2 // TOGETHER) for _ in range(TOGETHER)))
    together = time.perf_counter() - began

    waiting = await database.one("SELECT count(*) AS n FROM job WHERE state = 'pending'")
    assert waiting is not None
    _want(waiting["n"])
    pool = Pool(database, "tools.bench.our_queue:registry", workers=WORKERS)
    began = time.perf_counter()
    working = asyncio.create_task(pool.run())
    await _enough.wait()
    await pool.stop(5)
    await working  # everything is handed in
    drained = time.perf_counter() - began
    left = await database.one("SELECT count(*) AS n FROM job WHERE state <> 'done'")
    assert left is not None
    assert left["n"] == 0

    pool = Pool(database, "tools.bench.our_queue:registry", workers=WORKERS)
    working = asyncio.create_task(pool.run())
    picked = []
    for _ in range(picks):
        await asyncio.sleep(0.01 + random.random() * 0.03)
        _want(1)
        asked_at = time.perf_counter()
        pool.wake()  # before the commit, so that a worker's claim shares it
        await ask()
        await _enough.wait()
        picked.append((_begun[-1] - asked_at) * 1000)
    await pool.stop(5)
    await working
    await database.close()
    return {
        "enqueued_per_s": jobs // 2 / one_by_one,
        "enqueued_together_per_s": jobs // 2 // TOGETHER * TOGETHER / together,
        "drained_per_s": waiting["n"] / drained,
        "picked_ms": picked,
    }


def raw(path: str, jobs: int) -> float:
    """Return how many claims and finishes `sqlite3` alone does in a second, each committed."""
    connection = connect(path)
    connection.execute("CREATE TABLE raw (id INTEGER PRIMARY KEY, state INTEGER NOT NULL)")
    connection.execute("CREATE INDEX raw_waiting ON raw (id) WHERE state = 0")
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO raw (state) VALUES (?)", [(0,)] * jobs)
    connection.execute("COMMIT")
    claim = (
        "UPDATE raw SET state = 1 WHERE id = (SELECT id FROM raw WHERE state = 0 LIMIT 1)"
        " RETURNING id"
    )
    began = time.perf_counter()
    for _ in range(jobs):
        [(id_,)] = connection.execute(claim).fetchall()
        connection.execute("UPDATE raw SET state = 2 WHERE id = ?", (id_,))
    seconds = time.perf_counter() - began
    connection.close()
    return jobs / seconds


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.bench.our_queue")
    parser.add_argument("folder", type=Path)
    parser.add_argument("jobs", type=int)
    parser.add_argument("picks", type=int)
    args = parser.parse_args()
    found = asyncio.run(measure(str(args.folder / "ours.db"), args.jobs, args.picks))
    found["raw_per_s"] = raw(str(args.folder / "raw.db"), args.jobs // 4)
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    from tools.bench import our_queue  # the module that the registry is found in, not its double

    raise SystemExit(our_queue.main())
