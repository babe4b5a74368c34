"""`python -m tools.bench ingest`: what storing durably costs, as ratios within one run.

(a) this gateway's application with the same decoding, answering without storing;
(b) this gateway, committing with `synchronous=FULL`; (c) `sqlite3` alone, storing the same rows
with the same schema and pragmas, the rows of 64 requests in a transaction. The rounds of the three
are interleaved, each figure is the median of the rounds. The load comes from another process over
64 keep-alive connections; databases stand on the disk below the present folder.
"""

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

from gateway.store import queries
from gateway.store.database import connect

TARGETS = {"ratio_1": 0.65, "ratio_50": 0.45}
MOST_P99_RATIO = 2.0
CONNECTIONS = 64
REQUESTS = {1: 150, 50: 40}  # of each connection in a round
IDLE_REQUESTS = 300


class Round(NamedTuple):
    """What one round of load measured."""

    requests_per_s: float
    readings_per_s: float
    p50_ms: float
    p99_ms: float


class Ingest:
    """One run of the bench. Every round numbers its readings in a boot of its own."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._boots = 0

    def load(self, port: int, readings: int, connections: int, requests: int) -> Round:
        self._boots += 1
        command = [sys.executable, "-m", "tools.bench.load", "--boot", f"be9c0000{self._boots}"]
        for name, value in (
            ("port", port), ("readings", readings),
            ("connections", connections), ("requests", requests),
        ):  # fmt: skip
            command += [f"--{name}", str(value)]
        measured = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        cuts = quantiles(measured["latencies_ms"], n=100)
        seconds = measured["seconds"]
        return Round(
            measured["requests"] / seconds, measured["readings"] / seconds, cuts[49], cuts[98]
        )

    def bare(self, requests: int) -> float:
        """Return readings/s of sqlite3 alone, with rows like those of the 50-reading rounds."""
        self._boots += 1
        path = f"{self._folder}/bare-{self._boots}.db"
        connection = connect(path)
        _parents(connection)
        insert = queries.load("readings").add_reading
        began = time.perf_counter()
        for number in range(requests):
            connection.execute("BEGIN IMMEDIATE")
            for device in range(1, CONNECTIONS + 1):
                connection.executemany(insert, _rows(device, number, 50))
            connection.execute("COMMIT")
        seconds = time.perf_counter() - began
        connection.close()
        os.remove(path)
        return CONNECTIONS * requests * 50 / seconds

    def raw_commit_ms(self) -> float:
        """Return the median time of storing and committing one row, alone."""
        self._boots += 1
        connection = connect(f"{self._folder}/raw-{self._boots}.db")
        _parents(connection)
        insert = queries.load("readings").add_reading
        times = []
        for number in range(IDLE_REQUESTS):
            began = time.perf_counter()
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(insert, next(_rows(1, number, 1)))
            connection.execute("COMMIT")
            times.append((time.perf_counter() - began) * 1000)
        connection.close()
        return median(times)


def _parents(connection: sqlite3.Connection) -> None:
    for device in range(1, CONNECTIONS + 1):
        name = f"bench-{device:04d}"
        connection.execute(
            "INSERT INTO device (id, name, added_at_ms) VALUES (?, ?, 0)", (device, name)
        )
        connection.execute(
            "INSERT INTO sensor VALUES (?, ?, 'dht22.temperature')", (device, device)
        )
        connection.execute("INSERT INTO boot VALUES (?, ?, 'be9c00001', 0, 0, 0)", (device, device))


def _rows(device: int, number: int, count: int) -> Iterator[tuple[object, ...]]:
    now_ms = time.time_ns() // 1_000_000
    for n in range(number * count + 1, number * count + count + 1):
        yield (
            f"bench-{device:04d}-be9c00001-{n}", device, device, n % 40 + 0.5, None, "Cel", None,
            device, n, now_ms, "synced", None, now_ms,
        )  # fmt: skip


@contextmanager
def server(*command: str) -> Iterator[int]:
    """Run a server, yield the port it prints, and stop it."""
    process = subprocess.Popen(
        [sys.executable, "-m", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        yield int(line.split("http://127.0.0.1:")[1].split("/")[0])
    finally:
        process.terminate()
        process.communicate(timeout=20)


def measure(folder: str, rounds: int) -> dict[str, Any]:
    bench = Ingest(folder)
    taken: dict[str, list[Round]] = {}
    bare: list[float] = []
    raw_ms: list[float] = []
    answering = ("tools.bench.without_storing", f"{folder}/answering.db")
    gateway = ("gateway", "serve", "--open", "--port", "0", "--db", f"{folder}/fieldpost.db")
    with server(*answering) as plain, server(*gateway) as storing:
        for number in range(rounds + 1):  # the first warms up and is not counted
            one = {}
            for readings in (1, 50):
                for name, port in (("a", plain), ("b", storing)):
                    one[f"{name}_{readings}"] = bench.load(
                        port, readings, CONNECTIONS, REQUESTS[readings]
                    )
            for name, port in (("a", plain), ("b", storing)):
                one[f"{name}_idle"] = bench.load(port, 1, 1, IDLE_REQUESTS)
            alone, raw = bench.bare(REQUESTS[50]), bench.raw_commit_ms()
            if number:
                bare.append(alone)
                raw_ms.append(raw)
                for name, measured in one.items():
                    taken.setdefault(name, []).append(measured)
            print(f"round {number} of {rounds}", file=sys.stderr, flush=True)
    return report(taken, bare, raw_ms)


def report(taken: dict[str, list[Round]], bare: list[float], raw_ms: list[float]) -> dict[str, Any]:
    def ratio(over: list[float], under: list[float]) -> float:
        return median(x / y for x, y in zip(over, under, strict=True))

    def each(name: str, field: str) -> list[float]:
        return [getattr(one, field) for one in taken[name]]

    found = {
        "ratio_1": ratio(each("b_1", "requests_per_s"), each("a_1", "requests_per_s")),
        "ratio_50": ratio(each("b_50", "readings_per_s"), bare),
        "p99_ratio_1": ratio(each("b_1", "p99_ms"), each("a_1", "p99_ms")),
        "p99_ratio_50": ratio(each("b_50", "p99_ms"), each("a_50", "p99_ms")),
        "a_50_over_bare": ratio(each("a_50", "readings_per_s"), bare),
        "idle_p50_ms": median(each("b_idle", "p50_ms")),
        "idle_p50_limit_ms": median(each("a_idle", "p50_ms")) + 3 * median(raw_ms),
        "raw_commit_ms": median(raw_ms),
        "p50": median(each("b_1", "p50_ms")),
        "p99": median(each("b_1", "p99_ms")),
        "requests_per_s_1": median(each("b_1", "requests_per_s")),
        "requests_per_s_1_without_storing": median(each("a_1", "requests_per_s")),
        "readings_per_s_50": median(each("b_50", "readings_per_s")),
        "readings_per_s_sqlite_alone": median(bare),
    }
    return {name: round(value, 3) for name, value in found.items()}


def holds(found: dict[str, Any]) -> bool:
    return (
        all(found[name] >= least for name, least in TARGETS.items())
        and found["p99_ratio_1"] <= MOST_P99_RATIO
        and found["idle_p50_ms"] <= found["idle_p50_limit_ms"]
    )


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.bench ingest", description=__doc__)
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


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
