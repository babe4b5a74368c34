"""Two workers want the same job at the same instant."""

import asyncio
import sqlite3
import time
from collections import Counter
from contextlib import ExitStack, closing
from threading import Barrier, Thread

from gateway.store.clock import here
from gateway.store.database import connect
from gateway.store.jobs import Asked, Claimed, Queue
from tools.lab.finding import Bars, Finding, Table
from tools.lab.site import Site

TITLE = "Two workers, one job"

_TIMES = 1000
_KIND = "lasting"
_GIVE_UP_S = 60.0


class Worker(Thread):
    """Takes part in each race, over a connection of its own, and notes what it got."""

    def __init__(self, name: str, db: str, start: Barrier, races: int) -> None:
        super().__init__(name=name, daemon=True)
        self.got: list[Claimed | None] = []
        self.began_at: list[float] = []
        self._db = db
        self._start = start
        self._races = races

    def run(self) -> None:
        with closing(connect(self._db)) as connection:
            for _ in range(self._races):
                self._start.wait(_GIVE_UP_S)  # the job is there, and the other stands beside us
                self.began_at.append(time.perf_counter())
                self.got.append(_claim(connection, self.name))
                self._start.wait(_GIVE_UP_S)


async def run(site: Site) -> Finding:
    races = max(100, round(_TIMES * site.scale))
    first, second = await asyncio.to_thread(_race, str(site.folder / "race.db"), races)
    return _tell(site, first, second)


def _race(db: str, races: int) -> tuple[Worker, Worker]:
    """Put one job at a time before two workers."""
    start = Barrier(3)
    with ExitStack() as stack:
        connection = stack.enter_context(closing(connect(db)))
        workers = (Worker("A", db, start, races), Worker("B", db, start, races))
        stack.callback(start.abort)  # if we fail, nobody waits for us
        for worker in workers:
            worker.start()
        for _ in range(races):
            _ask(connection)
            start.wait(_GIVE_UP_S)
            start.wait(_GIVE_UP_S)
        for worker in workers:
            worker.join(_GIVE_UP_S)
    return workers


def _ask(connection: sqlite3.Connection) -> None:
    connection.execute("BEGIN IMMEDIATE")
    Queue().enqueue(connection, Asked(_KIND, "{}"), here().wall_ms)
    connection.execute("COMMIT")


def _claim(connection: sqlite3.Connection, name: str) -> Claimed | None:
    """Claim as a worker of the gateway does: in one transaction of the one file."""
    connection.execute("BEGIN IMMEDIATE")
    claimed = Queue().claim(connection, here(), name, frozenset({_KIND}))
    connection.execute("COMMIT")
    return claimed


def _tell(site: Site, first: Worker, second: Worker) -> Finding:
    _ = site.gettext
    races = len(first.got)
    pairs = list(zip(first.got, second.got, strict=True))
    outcomes = Counter((a is not None) + (b is not None) for a, b in pairs)
    apart_ms = sorted(
        abs(a - b) * 1000 for a, b in zip(first.began_at, second.began_at, strict=True)
    )
    wins = [sum(one is not None for one in worker.got) for worker in (first, second)]
    taken = [one.id for pair in pairs for one in pair if one]
    finding = Finding(_(TITLE))
    finding.say(_(
        "Two workers reach for the same job at the same instant. If both got it, the work would be"
        " done twice. Here they do it %(races)s times, each time with one new job; in the middle"
        " race they began %(apart)s ms apart.",
        races=site.number(races), apart=site.number(apart_ms[races // 2], 3),
    ))  # fmt: skip
    finding.show(Table(
        (_("how it ended"), _("times")),
        [
            (_("both got the job"), str(outcomes[2])),
            (_("one got it, the other got nothing"), str(outcomes[1])),
            (_("nobody got it"), str(outcomes[0])),
        ],
    ))  # fmt: skip
    finding.show(Bars(_("Who got it"), [_("worker A"), _("worker B")],
                      {_("times"): [float(won) for won in wins]}, _("times")))  # fmt: skip
    finding.say(_(
        "Taking a job is one sentence to the database: \"make it mine, if it is nobody's\". The"
        " database says such sentences one after another, so the second one finds nothing."
    ))  # fmt: skip
    finding.claim(_("Never did both get it"), outcomes[2] == 0)
    finding.claim(_("Each time one got it and the other got nothing"), outcomes[1] == races)
    finding.claim(_("No job was taken twice in all the races"), len(set(taken)) == races)
    finding.figures = {
        "races": races, "both": outcomes[2], "one": outcomes[1], "nobody": outcomes[0],
        "won_by_a": wins[0], "won_by_b": wins[1], "apart_ms_median": apart_ms[races // 2],
    }  # fmt: skip
    return finding
