"""The numbers of the gateway itself: counted as things happen, read by Prometheus and the page.

In a registry of its own, so that several gateways can be in one process. No label has more values
than there are kinds of jobs, of alarms and of outcomes.
"""

import asyncio
import time
from collections import Counter as Tally
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from gateway import __version__
from gateway.events import Event, ReadingsStored
from gateway.states import State, Verb
from gateway.store.gauges import Gauges
from gateway.store.moves import Move

OTHER = "other"  # stands for every kind that this gateway does not know
_LAG_EVERY_S = 0.25
_WINDOW = 40  # samples: what is said of "now" is of the last 10 s
_LATEST = 2048  # deliveries that the p99 is of
_MOST_HEARD = 1024  # deliveries that are noted and not yet counted

_FAST_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
_LONG_S = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)

ENQUEUE = "enqueue"
_COUNTED: dict[str, str] = {
    ENQUEUE: "added",
    Verb.CLAIM: "claimed",
    Verb.FINISH: "finished",
    Verb.FAIL: "failed",
    Verb.SNOOZE: "interrupted",
    Verb.RELEASE: "interrupted",
    Verb.RESCUE: "rescued",
    Verb.RETRY: "retried",
}
_TOLD = {
    "added": "Jobs that were asked for.",
    "claimed": "Tries that a worker began.",
    "finished": "Jobs that were done.",
    "failed": "Tries that ended badly.",
    "interrupted": "Tries that were given back, uncounted.",
    "rescued": "Tries whose worker died.",
    "retried": "Failed jobs that a person wants tried again.",
    "discarded": "Jobs that nobody wants any more.",
    "given_up": "Jobs that failed for good, and wait for a person.",
}


class _Sample(NamedTuple):
    """What was counted up to an instant, and how late the loop was in taking it."""

    at: float
    lag_s: float
    commits: int
    requests: int


class Metrics:
    """Counts. Subscribe `hear` to the bus and `moved` to the tail, and run `measure`.

    Args:
        kinds: of jobs that get a label of their own.
    """

    def __init__(
        self, kinds: Iterable[str] = (), monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._kinds = frozenset(kinds)
        self._monotonic = monotonic
        self._begun = monotonic()
        self._commits = self._requests = 0
        self._samples: deque[_Sample] = deque(maxlen=_WINDOW)
        self._heard: list[ReadingsStored] = []
        self._took_s: deque[float] = deque(maxlen=_LATEST)
        self.registry = CollectorRegistry()
        self._of_readings()
        self._of_jobs()
        self._of_the_process()

    def _of_readings(self) -> None:
        def counter(name: str, told: str) -> Counter:
            return Counter(name, told, registry=self.registry)

        self._stored = counter("readings_stored", "Readings that were new, and are stored.")
        self._duplicate = counter("readings_duplicate", "Readings that were stored before.")
        self._rejected = counter("readings_rejected", "Readings that went into quarantine.")
        self._conflicting = counter(
            "readings_conflicting", "Rejected readings whose id was used before for another."
        )
        self._batches = counter("batches", "Deliveries that were answered with verdicts.")
        self._ingest = Histogram(
            "ingest_seconds", "From a delivery's body to its commit.",
            buckets=_FAST_S, registry=self.registry,
        )  # fmt: skip
        self._commit = Histogram(
            "commit_seconds", "A transaction of this process's writer.",
            buckets=_FAST_S, registry=self.registry,
        )  # fmt: skip
        self._group = Histogram(
            "commit_requests", "Pieces of work that shared a commit.",
            buckets=_SIZES, registry=self.registry,
        )  # fmt: skip

    def _of_jobs(self) -> None:
        self._moves = {
            verb: Counter(f"jobs_{verb}", told, ["kind"], registry=self.registry)
            for verb, told in _TOLD.items()
        }
        for verb in ("finished", "failed", "given_up"):  # a rate needs a series to begin at 0
            for kind in self._kinds:
                self._moves[verb].labels(kind)
        self._work = Histogram(
            "job_seconds", "From claim to end of a try.", ["kind", "outcome"],
            buckets=_LONG_S, registry=self.registry,
        )  # fmt: skip

    def _of_the_process(self) -> None:
        def gauge(name: str, told: str, *labels: str) -> Gauge:
            return Gauge(name, told, labels, registry=self.registry)

        self._depth = gauge("queue_depth", "Jobs by state; of at most 100,000 each.", "state")
        self._oldest = gauge("queue_oldest_due_seconds", "Since when the oldest due job waits.")
        self._alarms = gauge("alarms_open", "Alarms that are open.", "kind")
        self._known = gauge("devices_known", "Devices that are registered or have reported.")
        self._silent = gauge("devices_silent", "Devices that should have reported, and did not.")
        self._missing = gauge("readings_missing", "Readings that gaps say are missing.")
        self._lag = gauge("loop_lag_seconds", "The latest the event loop was, in the last 10 s.")
        self._database = gauge("database_bytes", "Size of the database file.")
        self._wal = gauge("wal_bytes", "Size of its write-ahead log.")
        self._viewers = gauge(
            "event_streams_open", "Pages that are told of changes as they happen."
        )
        self._dropped = Counter(
            "event_streams_dropped", "Such pages that were too slow.", registry=self.registry
        )
        self._uptime = gauge("uptime_seconds", "Since the gateway started.")
        gauge("fieldpost_info", "The version that runs.", "version").labels(__version__).set(1)

    # -- what happens

    def hear(self, event: Event) -> None:
        """Note a delivery; to be subscribed to the bus. On the path of every delivery."""
        if isinstance(event, ReadingsStored):
            self._heard.append(event)
            if len(self._heard) >= _MOST_HEARD:
                self._count()

    def _count(self) -> None:
        """Count the deliveries that were noted, together, which costs a third of one by one."""
        heard, self._heard = self._heard, []
        self._batches.inc(len(heard))
        self._stored.inc(sum(event.stored for event in heard))
        self._duplicate.inc(sum(event.duplicates for event in heard))
        self._rejected.inc(sum(event.rejected for event in heard))
        self._conflicting.inc(sum(event.conflicting for event in heard))
        for event in heard:
            self._ingest.observe(event.took_s)
            self._took_s.append(event.took_s)

    def committed(self, seconds: float, requests: int) -> None:
        """Count a commit and what shared it. The writer may call this, in its thread."""
        self._commits += 1
        self._requests += requests
        self._commit.observe(seconds)
        self._group.observe(requests)

    def viewer_dropped(self) -> None:
        self._dropped.inc()

    def moved(self, moves: Sequence[Move]) -> None:
        """Count moves of jobs, whoever made them; to be subscribed to the tail."""
        tally: Tally[tuple[str, str]] = Tally()
        for move in moves:
            kind = move.kind if move.kind in self._kinds else OTHER
            verb = _COUNTED.get(move.verb)
            if verb is not None:
                tally[verb, kind or OTHER] += 1
            if move.verb != Verb.RETRY and move.state is State.FAILED:
                tally["given_up", kind or OTHER] += 1
            if move.state is State.DISCARDED:
                tally["discarded", kind or OTHER] += 1
            if move.verb in (Verb.FINISH, Verb.FAIL) and move.work_ms is not None:
                self._work.labels(kind, verb).observe(move.work_ms / 1000)
        for (verb, kind), count in tally.items():
            self._moves[verb].labels(kind).inc(count)

    async def measure(self) -> None:
        """Measure how late the loop is, four times a second, until cancelled."""
        while True:
            due = self._monotonic() + _LAG_EVERY_S
            await asyncio.sleep(_LAG_EVERY_S)
            now = self._monotonic()
            self._count()
            self._samples.append(_Sample(now, max(now - due, 0.0), self._commits, self._requests))

    # -- how things stand

    def snapshot(self) -> dict[str, float | None]:
        """Return ingest_p99_ms, commits_per_s, batch_size, loop_lag_ms, uptime_s; None: unknown.

        Those that are of "now" are of the last 10 s, the p99 of the last 2048 deliveries.
        """
        self._count()
        lag_s = self._lag_s()
        return {
            "ingest_p99_ms": _p99_ms(self._took_s),
            **self._commits_now(),
            "loop_lag_ms": None if lag_s is None else round(1000 * lag_s, 1),
            "uptime_s": round(self._monotonic() - self._begun, 1),
        }

    def exposition(self, gauges: Gauges, viewers: int = 0) -> bytes:
        """Return all numbers in Prometheus' text format, with how things stand just now."""
        self._count()
        for state, count in gauges.jobs.items():
            self._depth.labels(state).set(count)
        self._alarms.clear()
        for kind, count in gauges.alarms.items():
            self._alarms.labels(kind).set(count)
        self._oldest.set(gauges.oldest_due_s)
        self._known.set(gauges.devices)
        self._silent.set(gauges.silent)
        self._missing.set(gauges.missing)
        self._database.set(gauges.database_bytes)
        self._wal.set(gauges.wal_bytes)
        self._lag.set(self._lag_s() or 0.0)
        self._viewers.set(viewers)
        self._uptime.set(self._monotonic() - self._begun)
        return generate_latest(self.registry)

    def _lag_s(self) -> float | None:
        return max((sample.lag_s for sample in self._samples), default=None)

    def _commits_now(self) -> dict[str, float | None]:
        if len(self._samples) < 2 or not self._commits:
            return {"commits_per_s": None, "batch_size": None}
        first, last = self._samples[0], self._samples[-1]
        commits, requests = last.commits - first.commits, last.requests - first.requests
        return {
            "commits_per_s": round(commits / (last.at - first.at), 1),
            "batch_size": round(requests / commits, 1) if commits else None,
        }


def _p99_ms(took_s: Iterable[float]) -> float | None:
    ordered = sorted(took_s)
    return round(1000 * ordered[len(ordered) * 99 // 100], 2) if ordered else None
