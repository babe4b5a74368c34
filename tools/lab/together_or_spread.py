"""Boards that failed at the same instant come back: all together, or spread."""

import asyncio
import math
import time
from collections import Counter
from random import Random
from statistics import quantiles
from typing import Any, NamedTuple

from tools.fleet import drained, living
from tools.fleet_board import Board, Firmware
from tools.fleet_gateway import OwnGateway
from tools.lab.finding import Bars, Finding, Table
from tools.lab.site import Site

TITLE = "Together or spread"

_MOST = 1000
_BIN_S = 0.1
_SOON_S = 0.05  # until each begins
_WITHIN_S = 120.0


class Case(NamedTuple):
    boards: int
    jitter: bool


class Came(NamedTuple):
    """When the boards knocked, in s from the instant at which all failed; and their answers."""

    after_s: list[float]
    p99_ms: float

    def most(self) -> int:
        """Return how many came in the same 100 ms, at most."""
        return max(Counter(self.bins()).values())

    def bins(self) -> list[int]:
        return [math.floor(s / _BIN_S) for s in self.after_s]


class Failing(Board):
    """A board whose first delivery fails, at the instant that `failed` is set."""

    def __init__(self, failed: asyncio.Event, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.knocked_at: float | None = None
        self.is_waiting = False
        self._failed = failed

    async def exchange(self, body: Any) -> Any:
        if not self._failed.is_set():
            self.is_waiting = True
            await self._failed.wait()
            raise OSError("the gateway is away")
        self.knocked_at = self.knocked_at or time.monotonic()
        return await super().exchange(body)


async def run(site: Site) -> Finding:
    most = max(100, round(_MOST * site.scale))
    counts = (1, 10, 100, most) if site.scale >= 1 else (1, 10, most)
    gateway = OwnGateway(site.folder, site.children)
    keys = await gateway.register([f"board-{number:04d}" for number in range(max(counts))])
    await gateway.start()
    crowd = Crowd(site, gateway.url, keys)
    came = {}
    for count in counts:  # one case after another, as the times of answers are compared
        for jitter in (False, True):
            came[Case(count, jitter)] = await crowd.come(Case(count, jitter))
    return _tell(site, counts, came)


class Crowd:
    """Boards of one gateway, in one case after another."""

    def __init__(self, site: Site, url: str, keys: dict[str, bytes | None]) -> None:
        self._site = site
        self._url = url
        self._keys = keys
        self._firmware = Firmware()
        self._boots = 0

    async def come(self, case: Case) -> Came:
        """Let them fail at one instant, and come back."""
        failed = asyncio.Event()
        boards = self._boards(case, failed)
        async with living(boards, _SOON_S) as sampling:
            for task in sampling:
                task.cancel()  # each has one reading already, and takes no more
            await self._site.until(lambda: _all_wait(boards), "all boards stand at the door")
            failed_at = time.monotonic()
            failed.set()
            if not await drained(boards, _WITHIN_S):
                raise TimeoutError("not all boards came back")
        exchanges_ms = [ms for board in boards for ms in board.diary.exchanges_ms]
        p99_ms = quantiles(exchanges_ms, n=100)[98] if len(exchanges_ms) > 1 else exchanges_ms[0]
        return Came([board.knocked_at - failed_at for board in boards if board.knocked_at], p99_ms)

    def _boards(self, case: Case, failed: asyncio.Event) -> list[Failing]:
        self._boots += 1
        boards = [
            Failing(
                failed, self._firmware, name, key, self._url, f"f1ee7000{self._boots}",
                Random(self._site.random.getrandbits(64)), jitter=case.jitter,
            )
            for name, key in list(self._keys.items())[: case.boards]
        ]  # fmt: skip
        for board in boards:
            board.take()
        return boards


async def _all_wait(boards: list[Failing]) -> bool:
    return all(board.is_waiting for board in boards)


def _tell(site: Site, counts: tuple[int, ...], came: dict[Case, Came]) -> Finding:
    _ = site.gettext
    finding = Finding(_(TITLE))
    finding.say(_(
        "Boards lose the gateway at the same instant, and each waits before it tries again. If all"
        " wait equally long they come back together, like a crowd at one door. So each adds a"
        " length by chance to its wait, the jitter. The gateway has the same work in the end, but"
        " not all at once."
    ))  # fmt: skip
    finding.show(Table(
        (_("boards"), _("most in the same 100 ms, without jitter"), _("with jitter"),
         _("99 of 100 answers within, without jitter"), _("with jitter")),
        [_row(site, count, came) for count in counts],
    ))  # fmt: skip
    most = counts[-1]
    finding.show(_histogram(site, most, came))
    finding.say(_(
        "The boards live together in one process of this computer, which is also busy when they all"
        " want something: so even without jitter they do not come in quite the same instant."
    ))  # fmt: skip
    plain, spread = came[Case(most, False)], came[Case(most, True)]
    finding.claim(_("%(count)s boards: with jitter fewer than two thirds as many came in the same"
                    " 100 ms", count=site.number(most)),
                  spread.most() * 3 < plain.most() * 2)  # fmt: skip
    finding.claim(_("With jitter they came over a time more than twice as long"),
                  _width_s(spread) > 2 * _width_s(plain))  # fmt: skip
    finding.claim(_("All came back in the end"),
                  all(len(one.after_s) == case.boards for case, one in came.items()))  # fmt: skip
    finding.figures = {
        "cases": [
            {**case._asdict(), "most_in_100_ms": one.most(), "p99_ms": one.p99_ms,
             "width_s": _width_s(one)}
            for case, one in came.items()
        ]
    }  # fmt: skip
    return finding


def _width_s(came: Came) -> float:
    return max(came.after_s) - min(came.after_s)


def _row(site: Site, count: int, came: dict[Case, Came]) -> tuple[str, ...]:
    plain, spread = came[Case(count, False)], came[Case(count, True)]
    most = (site.number(plain.most()), site.number(spread.most()))
    p99 = (f"{site.number(one.p99_ms, 1)} ms" for one in (plain, spread))
    return (site.number(count), *most, *p99)


def _histogram(site: Site, count: int, came: dict[Case, Came]) -> Bars:
    _ = site.gettext
    bins = {jitter: Counter(came[Case(count, jitter)].bins()) for jitter in (False, True)}
    seen = [number for one in bins.values() for number in one]
    numbers = range(min(seen), max(seen) + 1)
    return Bars(
        _("When %(count)s boards came back, in s after they failed", count=site.number(count)),
        [site.number(number * _BIN_S, 1) for number in numbers],
        {_("without jitter"): [float(bins[False][n]) for n in numbers],
         _("with jitter"): [float(bins[True][n]) for n in numbers]},
        _("boards"),
    )  # fmt: skip
