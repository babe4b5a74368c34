"""What another queue does, run by the Python that has it: `peer_queues.py NAME FOLDER JOBS PICKS`.

Each is used as its documentation does, with 4 workers and a sync at every commit.
"""

import itertools
import json
import random
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

WORKERS = 4
POLL_S = 0.01  # of the one that has nothing to wait on

Measured = dict[str, Any]


class Begun:
    """When each job began; waits for a number of them."""

    def __init__(self) -> None:
        self._at: list[float] = []
        self._news = threading.Condition()

    def note(self) -> None:
        with self._news:
            self._at.append(time.perf_counter())
            self._news.notify_all()

    def wait_for(self, count: int) -> float:
        with self._news:
            self._news.wait_for(lambda: len(self._at) >= count)
            return self._at[-1]


def measured(
    put: Callable[[], object], begun: Begun, drain: Callable[[int], object],
    start: Callable[[], Callable[[], object]], jobs: int, picks: int,
) -> Measured:  # fmt: skip
    began = time.perf_counter()
    for _ in range(jobs):
        put()
    enqueued = time.perf_counter() - began
    began = time.perf_counter()
    drain(jobs)
    drained = time.perf_counter() - began
    stop = start()
    picked = []
    for number in range(picks):
        time.sleep(0.01 + random.random() * 0.03)
        asked_at = time.perf_counter()
        put()
        picked.append((begun.wait_for(jobs + number + 1) - asked_at) * 1000)
    stop()
    return {
        "enqueued_per_s": jobs / enqueued, "drained_per_s": jobs / drained, "picked_ms": picked,
    }  # fmt: skip


def threads(work: Callable[[], object], count: int = WORKERS) -> list[threading.Thread]:
    started = [threading.Thread(target=work, daemon=True) for _ in range(count)]
    for thread in started:
        thread.start()
    return started


def huey(folder: Path, jobs: int, picks: int) -> Measured:
    from huey import SqliteHuey  # type: ignore[import-not-found]

    queue, begun = SqliteHuey(filename=str(folder / "huey.db"), fsync=True), Begun()

    @queue.task()  # type: ignore[untyped-decorator]
    def nothing() -> None:
        begun.note()

    def start() -> Callable[[], object]:
        consumer = queue.create_consumer(workers=WORKERS, worker_type="thread", periodic=False)
        consumer.start()
        return lambda: consumer.stop(graceful=True)

    def drain(count: int) -> None:
        stop = start()
        begun.wait_for(count)
        stop()

    return measured(nothing, begun, drain, start, jobs, picks)


def litequeue(folder: Path, jobs: int, picks: int) -> Measured:
    from litequeue import LiteQueue  # type: ignore[import-not-found]

    begun = Begun()

    def opened() -> Any:
        queue = LiteQueue(str(folder / "litequeue.db"), timeout=30)
        queue.conn.execute("PRAGMA synchronous = FULL")
        return queue

    putting = opened()

    def work(is_over: Callable[[], bool]) -> None:
        queue = opened()
        while True:
            message = queue.pop()
            if message is not None:
                begun.note()
                queue.done(message.message_id)
            elif is_over():
                return
            else:
                time.sleep(POLL_S)

    def drain(count: int) -> None:
        # One connection does better than four that fight for the lock.
        work(lambda: True)

    def start() -> Callable[[], object]:
        over = threading.Event()
        working = threads(lambda: work(over.is_set))

        def stop() -> None:
            over.set()
            for thread in working:
                thread.join()

        return stop

    return measured(lambda: putting.put("{}"), begun, drain, start, jobs, picks)


def persist_queue(folder: Path, jobs: int, picks: int) -> Measured:
    from persistqueue import Empty, SQLiteAckQueue  # type: ignore[import-not-found]

    queue, begun = SQLiteAckQueue(str(folder / "persist"), multithreading=True), Begun()
    over = threading.Event()

    def work(**how: Any) -> None:
        while not over.is_set():
            try:
                item = queue.get(raw=True, **how)
            except Empty:
                return
            begun.note()
            queue.ack(id=item["pqid"])

    def drain(count: int) -> None:
        for thread in threads(lambda: work(block=False)):
            thread.join()

    def start() -> Callable[[], object]:
        threads(work)
        return over.set

    return measured(lambda: queue.put({}), begun, drain, start, jobs, picks)


def main() -> int:
    name, folder, jobs, picks = sys.argv[1:]
    place = Path(folder) / f"{name}-{next(itertools.count())}"
    place.mkdir(parents=True, exist_ok=True)
    peers = {"huey": huey, "litequeue": litequeue, "persist-queue": persist_queue}
    print(json.dumps(peers[name](place, int(jobs), int(picks))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
