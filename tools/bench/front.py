"""`python -m tools.bench front`: what people and boards notice of heavy work: nothing.

Ten jobs are asked for that each keep a processor busy, by clients that wait for each answer; and
`POST /v1/readings` is measured idle and while four of them run, in interleaved rounds.
"""

import argparse
import http.client
import json
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from gateway.store.database import connect
from tools.bench.ingest import Ingest, server

WORK_S = 8.0
ASKED = 10
ANSWERS = 100  # to jobs, asked for while heavy ones run and wait
RUNNING = 4
CONNECTIONS, REQUESTS = 8, 100
MOST_ANSWER_MS = 25.0
MOST_INGEST_RATIO = 2.0


class Jobs:
    """The queue of one gateway, over one kept connection."""

    def __init__(self, port: int, db: str) -> None:
        self._client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self._db = db

    def ask(self, seconds: float, run_at_ms: int | None = None) -> float:
        """Ask for a job; return how many ms the answer took."""
        body = {"kind": "burn", "args": {"seconds": seconds}, "run_at_ms": run_at_ms}
        began = time.perf_counter()
        self._client.request(
            "POST", "/v1/jobs", json.dumps(body), {"Content-Type": "application/json"}
        )
        answer = self._client.getresponse()
        answer.read()
        assert answer.status == 202, answer.status
        return (time.perf_counter() - began) * 1000

    def until(self, sql: str, count: int) -> None:
        """Wait until the statement counts so many."""
        with closing(sqlite3.connect(self._db)) as connection:
            while connection.execute(sql).fetchone()[0] != count:
                time.sleep(0.05)


_RUNNING = "SELECT count(*) FROM jobs WHERE state = 'running'"
_OPEN = "SELECT count(*) FROM jobs WHERE state IN ('running', 'pending') AND run_at_ms < 4e12"


def raw_commit_ms(path: str) -> float:
    """Return the p99 of storing one row and committing it, alone."""
    times = []
    with closing(connect(path)) as connection:
        connection.execute("CREATE TABLE raw (id INTEGER PRIMARY KEY, body TEXT)")
        for _ in range(ANSWERS):
            began = time.perf_counter()
            connection.execute("INSERT INTO raw (body) VALUES ('{}')")
            times.append((time.perf_counter() - began) * 1000)
    return quantiles(times, n=100)[98]


def measure(folder: str, rounds: int) -> dict[str, Any]:
    db = f"{folder}/fieldpost.db"
    bench = Ingest(folder)
    answers: list[float] = []
    idle, busy, raw = [], [], []
    with server("tools.bench.burning", db) as port:
        jobs = Jobs(port, db)
        bench.load(port, 1, CONNECTIONS, REQUESTS)  # warms up
        for number in range(rounds):
            jobs.until(_OPEN, 0)
            idle.append(bench.load(port, 1, CONNECTIONS, REQUESTS).p99_ms)
            raw.append(raw_commit_ms(f"{folder}/raw-{number}.db"))
            answers += [jobs.ask(WORK_S) for _ in range(RUNNING)]
            jobs.until(_RUNNING, RUNNING)
            # The others wait for a worker, or for a day that never comes.
            answers += [jobs.ask(0.1) for _ in range(ASKED - RUNNING)]
            answers += [jobs.ask(0.1, 4_000_000_000_000) for _ in range(ANSWERS)]
            busy.append(bench.load(port, 1, CONNECTIONS, REQUESTS).p99_ms)
            jobs.until(_RUNNING, RUNNING)  # they did run all the while
            print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    answer = quantiles(answers, n=100)[98]
    found = {
        "answer_ms_p50": median(answers),
        "answer_ms_p99": answer,
        "answer_p99_over_raw_commit_p99": answer / median(raw),
        "work_ms": WORK_S * 1000,
        "ingest_p99_ms_idle": median(idle),
        "ingest_p99_ms_busy": median(busy),
        "ingest_p99_ratio_busy_idle": median(b / i for b, i in zip(busy, idle, strict=True)),
    }
    return {name: round(value, 3) for name, value in found.items()}


def holds(found: dict[str, Any]) -> bool:
    return bool(
        found["answer_ms_p99"] < MOST_ANSWER_MS
        and found["ingest_p99_ratio_busy_idle"] <= MOST_INGEST_RATIO
    )


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.bench front", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path(), help="on a disk, never on tmpfs")
    parser.add_argument("--json", action="store_true", help="one object on the last line")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=args.folder) as folder:
        found = measure(folder, args.rounds)
    for name, value in found.items():
        print(f"{name:34} {value}")
    good = holds(found)
    print("the targets hold" if good else "the targets do NOT hold")
    if args.json:
        print(json.dumps(found))
    return 0 if good else 1
