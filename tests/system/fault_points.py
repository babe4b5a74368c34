"""`python -m tests.system.fault_points FOLDER`: a worker that dies at each of its awaits.

What is run is the pool as it stands: a trace function sees its coroutines begin, wait, go on and
end, and kills the process at the one that is wanted. Each point has a database of its own. The
first worker of a scenario lives and only notes which points there are; then for each of them one
dies there, and another finds what it left. All are forked from here: to start Python a hundred
times would cost a minute of the processor.

Prints a JSON line for each point: its name, whether somebody died there, what was left and what
became of the jobs.
"""

import asyncio
import json
import os
import shutil
import signal
import sqlite3
import sys
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from inspect import CO_COROUTINE
from itertools import groupby
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

from gateway import child, lease, pool, reaper
from gateway.pool import Pool
from gateway.reaper import Reaper
from gateway.store import jobs
from gateway.store.clock import Instant
from gateway.store.database import Database, connect
from gateway.store.jobs import Asked, Queue

KINDS = "tests.system.job_kinds:registry"
AT_ONCE = 8
TIMES = 2  # that each point is died at: the first and second time it is passed
GIVE_UP_S = 60.0
# Long beside what a busy machine takes away from a thread, short beside what a test may last.
LEASE_S = 1.5

_WATCHED = {module.__file__: module.__name__ for module in (pool, reaper, lease, child)}
_THREADS = {"_renew"}  # what is watched beside coroutines


class Scenario(NamedTuple):
    """Jobs, and the worker that meets them.

    Attributes:
        ask: (kind, seconds) of each.
        ahead: how many the worker takes at a time, to begin with.
        stop_after: what a job has noted when the worker is stopped; None: it works to the end.
        is_orphaned: another worker took the jobs, and is gone.
        modules: where it is died.
    """

    name: str
    ask: tuple[tuple[str, float], ...]
    modules: tuple[str, ...] = ("pool", "lease")
    ahead: int = 1
    stop_after: str | None = None
    is_orphaned: bool = False


SCENARIOS = (
    Scenario("working", (("slow", 0.5), ("flaky", 0))),
    Scenario("ahead", (("slow", 0.1), ("slow", 0), ("slow", 0)), ahead=4),
    Scenario("stopping", (("slow", 0.7),), stop_after="began"),
    Scenario("rescuing", (("slow", 0),), ("reaper", "child"), is_orphaned=True),
)


class Trace:
    """Calls `met` with the name of each point that is passed."""

    def __init__(self, met: Callable[[str], None]) -> None:
        self._met = met
        self._passed: Counter[str] = Counter()
        self._lock = threading.Lock()

    def start(self) -> None:
        threading.settrace(self._enter)
        sys.settrace(self._enter)

    def _enter(self, frame: FrameType, event: str, arg: object) -> Any:
        if not _is_watched(frame.f_code):
            return None
        self._pass(frame, "in")
        frame.f_trace_lines = False
        return self._leave

    def _leave(self, frame: FrameType, event: str, arg: object) -> Any:
        if event == "return":
            self._pass(frame, "out")
        return self._leave

    def _pass(self, frame: FrameType, way: str) -> None:
        code = frame.f_code
        point = f"{_WATCHED[code.co_filename]}.{code.co_qualname}:{frame.f_lineno}:{way}"
        with self._lock:
            self._passed[point] += 1
            times = self._passed[point]
        self._met(f"{point}:{times}")


def _is_watched(code: CodeType) -> bool:
    is_named = code.co_flags & CO_COROUTINE or code.co_name in _THREADS
    return bool(is_named) and code.co_filename in _WATCHED


class Place:
    """One database with the jobs of a scenario, and what is done to it."""

    def __init__(self, folder: Path, scenario: Scenario) -> None:
        folder.mkdir()
        self.folder = folder
        self.scenario = scenario
        self.db = folder / "fieldpost.db"
        template = folder.parent / "template.db"
        if not template.exists():
            connect(str(template)).close()
        shutil.copy(template, self.db)
        with closing(connect(str(self.db))) as connection:
            self._prepare(connection)

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        for kind, seconds in self.scenario.ask:
            asked = Asked(kind, json.dumps({"seconds": seconds}))
            Queue().enqueue(connection, asked, int(time.time() * 1000))
        if self.scenario.is_orphaned:
            kinds = frozenset(kind for kind, _ in self.scenario.ask)
            Queue().claim_several(connection, Instant.now(), "gone", kinds, 9)
            connection.execute("UPDATE job SET lease_until_ms = 1")
        connection.execute("COMMIT")

    def note_points(self) -> None:
        """Work, and write down which points are passed."""
        file = os.open(self.folder / "points", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        Trace(lambda point: os.write(file, f"{point}\n".encode()) and None).start()
        self.work()

    def die_at(self, wanted: str) -> None:
        """Work until that point is passed."""

        def met(point: str) -> None:
            if point == wanted:
                os.kill(os.getpid(), signal.SIGKILL)

        Trace(met).start()
        self.work()

    def work(self) -> None:
        asyncio.run(asyncio.wait_for(self._work(self.scenario.stop_after), GIVE_UP_S))

    def recover(self) -> None:
        """Work to the end, as whoever comes after."""
        asyncio.run(asyncio.wait_for(self._work(None), GIVE_UP_S))

    def points(self) -> list[str]:
        """Return the points, but one of those that are passed together: a coroutine that waits
        lets those wait that wait for it, and begins or goes on within them.
        """
        passed = (self.folder / "points").read_text().splitlines()
        ways = groupby(passed, lambda point: ":out:" in point)
        found = [next(several) if is_out else list(several)[-1] for is_out, several in ways]
        wanted = tuple(f"gateway.{module}." for module in self.scenario.modules)
        return [
            point
            for point in found
            if int(point.rpartition(":")[2]) <= TIMES and point.startswith(wanted)
        ]

    def left(self) -> dict[str, Any]:
        with closing(sqlite3.connect(self.db)) as connection:
            rows = connection.execute(
                "SELECT id, state, attempts, crashes, error FROM job"
            ).fetchall()
            moves = connection.execute(
                "SELECT job_id, verb, state FROM job_event ORDER BY id"
            ).fetchall()
        marks = self.folder / "marks"
        noted = [line.split() for line in marks.read_text().splitlines()] if marks.exists() else []
        return {"jobs": rows, "moves": moves, "marks": [(int(one[0]), one[1]) for one in noted]}

    async def _work(self, stop_after: str | None) -> None:
        database = await Database.open(str(self.db), readers=1)
        works = Pool(database, KINDS, {"folder": str(self.folder)}, workers=1)
        works.queue = replace(works.queue, random=lambda: -0.9999)  # no waits
        works._ahead = self.scenario.ahead
        reaps = Reaper(database, works.queue, works._now, wake=works.wake)
        tasks = [asyncio.create_task(loop()) for loop in (works.run, reaps.run)]
        await _until(partial(self._is_time, database, stop_after))
        await works.stop(0)
        await tasks[0]
        tasks[1].cancel()
        await asyncio.wait(tasks)
        await database.close()

    async def _is_time(self, database: Database, stop_after: str | None) -> bool:
        if stop_after is not None:
            return any(what == stop_after for _, what in self.left()["marks"])
        rows = await database.all("SELECT DISTINCT state FROM job")
        return {row["state"] for row in rows} <= {"done", "failed", "discarded"}


async def _until(holds: Callable[[], Awaitable[bool]]) -> None:
    while not await holds():
        await asyncio.sleep(0.02)


def _fork(work: Callable[[], None]) -> int:
    """Do it in a process of its own; return its id."""
    pid = os.fork()
    if pid:
        return pid
    with suppress(BaseException):
        work()
        os._exit(0)
    os._exit(1)


def _all_at(point: str, place: Place) -> None:
    """Let one die at the point and another go on; print what it came to."""
    _, status = os.waitpid(_fork(lambda: place.die_at(point)), 0)
    died = os.WIFSIGNALED(status)
    left = place.left()
    place.recover()
    told = {"scenario": place.scenario.name, "point": point, "died": died, "left": left["jobs"]}
    os.write(1, json.dumps(told | place.left()).encode() + b"\n")


def _tries(folder: Path) -> Iterator[Callable[[], None]]:
    known: set[str] = set()
    for number, scenario in enumerate(SCENARIOS):
        first = Place(folder / str(number), scenario)
        _, status = os.waitpid(_fork(first.note_points), 0)
        assert status == 0, f"nobody died, and {scenario.name} did not end well: {first.left()}"
        for point in first.points():
            if point not in known:
                place = folder / f"{number}-{len(known)}"
                known.add(point)
                yield partial(_try, place, scenario, point)


def _try(folder: Path, scenario: Scenario, point: str) -> None:
    _all_at(point, Place(folder, scenario))


def main() -> int:
    jobs.LEASE_MS = int(LEASE_S * 1000)
    lease.RENEW_S, lease.LOOK_S = LEASE_S / 8, LEASE_S / 16
    reaper.LOOK_S = 0.1
    reaper.PRUNE_S = 10.0
    bad, running = 0, set[int]()
    for one in _tries(Path(sys.argv[1])):
        if len(running) >= AT_ONCE:
            bad += _wait_for_one(running)
        running.add(_fork(one))
    while running:
        bad += _wait_for_one(running)
    return 1 if bad else 0


def _wait_for_one(running: set[int]) -> bool:
    pid, status = os.wait()
    running.discard(pid)
    return status != 0


if __name__ == "__main__":
    sys.exit(main())
