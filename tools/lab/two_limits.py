"""A limit for the answer and a limit for the work, and what wrong ones do."""

import asyncio
import time
from collections.abc import Mapping
from math import sqrt
from statistics import median
from typing import NamedTuple

from gateway.web import prefer
from tools.lab import limits
from tools.lab.finding import Bars, Finding, Table
from tools.lab.site import Gateway, Site

TITLE = "Two limits"

KIND = "lasting"
_ASKED = 10
_WORK_S = 2.0
_IN_FRONT = {"Prefer": f"wait={prefer.MOST_S}"}


class Times(NamedTuple):
    """What was measured, in s, of each job."""

    answers: list[float]
    works: list[float]


class Tried(NamedTuple):
    """How often a response limit fired, of _ASKED questions, on each way."""

    limit_s: float
    behind: int
    in_front: int


async def run(site: Site) -> Finding:
    seconds = max(0.5, _WORK_S * site.scale)
    gateway = await site.gateway("--workers", 4 * _ASKED)  # nobody waits for a worker
    times = await _measure(gateway, seconds)
    answer_s, work_s = median(times.answers), median(times.works)
    too_short = min(times.answers) / 8
    between = sqrt(answer_s * work_s)
    too_long = 4 * work_s + 1
    tried = [await _try(gateway, seconds, limit_s) for limit_s in (too_short, between, too_long)]
    return _tell(site, times, tried)


async def _measure(gateway: Gateway, seconds: float) -> Times:
    answers, ids = [], []
    for _number in range(_ASKED):
        began = time.monotonic()
        ids.append((await gateway.ask(KIND, {"seconds": seconds}))["id"])
        answers.append(time.monotonic() - began)
    jobs = await gateway.ended(ids)
    return Times(answers, [(job["finished_ms"] - job["started_ms"]) / 1000 for job in jobs])


async def _try(gateway: Gateway, seconds: float, limit_s: float) -> Tried:
    behind = [await _fires(gateway, seconds, limit_s, {}) for _number in range(_ASKED)]
    in_front = await asyncio.gather(
        *(_fires(gateway, seconds, limit_s, _IN_FRONT) for _number in range(_ASKED))
    )
    return Tried(limit_s, sum(behind), sum(in_front))


async def _fires(
    gateway: Gateway, seconds: float, limit_s: float, headers: Mapping[str, str]
) -> bool:
    try:
        async with asyncio.timeout(limit_s):
            await gateway.ask(KIND, {"seconds": seconds}, **headers)
    except TimeoutError:
        return True
    return False


def _tell(site: Site, times: Times, tried: list[Tried]) -> Finding:
    _ = site.gettext
    answer_s, work_s = median(times.answers), median(times.works)
    finding = Finding(_(TITLE))
    finding.say(_(
        "The answer and the work are two things, so they need two limits. How long may the answer"
        " take before something is wrong? How long may the work? First both are measured, with"
        " %(count)s jobs of kind %(kind)s, beside the limits that are in force:",
        count=_ASKED, kind=KIND,
    ))  # fmt: skip
    finding.show(_measured(site, times))
    finding.say(_(
        "Now a client is given a limit for the answer: one below what answers take, one between"
        " answer and work, one above what the work takes. It asks %(count)s times with each, once"
        " while the work is done behind the answer and once while it is done in front of it.",
        count=_ASKED,
    ))  # fmt: skip
    finding.show(_fired(site, tried))
    names = [_("too short"), _("between"), _("too long")]
    finding.show(Bars(
        _("How often the limit fired"), names,
        {_("work behind the answer"): [float(one.behind) for one in tried],
         _("work in front of it"): [float(one.in_front) for one in tried]}, _("times"),
    ))  # fmt: skip
    finding.say(_(
        "A limit that always fires says nothing, and so does one that never can. The one between"
        " tells the two ways apart: it is silent while all is well, and fires as soon as somebody"
        " makes an answer wait for work."
    ))  # fmt: skip
    too_short, between, too_long = tried
    finding.claim(_("Answers take less than a quarter of the time of the work"),
                  answer_s < work_s / 4)  # fmt: skip
    finding.claim(_("A limit below the time of an answer fires each time, though nothing is wrong"),
                  too_short.behind == _ASKED)  # fmt: skip
    finding.claim(_("A limit above the time of the work never fires, though each answer waited for"
                    " the work"), too_long.in_front == too_long.behind == 0)  # fmt: skip
    finding.claim(_("The limit between fires each time the work is in front, and seldom when it is"
                    " behind"),
                  between.in_front == _ASKED and between.behind <= _ASKED // 2)  # fmt: skip
    finding.figures = {
        "answer_ms": answer_s * 1000, "work_ms": work_s * 1000,
        "fired": [one._asdict() for one in tried],
    }  # fmt: skip
    return finding


def _measured(site: Site, times: Times) -> Table:
    _ = site.gettext
    work = limits.of_work(site, KIND)
    rows = [
        (_("answer"), _in_ms(site, median(times.answers)), _in_ms(site, max(times.answers)),
         f"{site.number(limits.board_s(), 1)} s", "device/uplink.py"),
        (_("work"), _in_ms(site, median(times.works)), _in_ms(site, max(times.works)),
         f"{site.number(work.seconds or 0, 1)} s", work.where),
    ]  # fmt: skip
    columns = (_("what"), _("in the middle"), _("longest"), _("limit in force"), _("set in"))
    return Table(columns, rows)


def _fired(site: Site, tried: list[Tried]) -> Table:
    _ = site.gettext
    columns = (_("limit for the answer"), "", _("work behind the answer"), _("work in front of it"))
    names = [_("too short"), _("between"), _("too long")]

    def of_all(count: int) -> str:
        return _("fired %(count)s of %(all)s times", count=count, all=_ASKED)

    return Table(
        columns,
        [(name, _in_ms(site, one.limit_s), of_all(one.behind), of_all(one.in_front))
         for name, one in zip(names, tried, strict=True)],
    )  # fmt: skip


def _in_ms(site: Site, seconds: float) -> str:
    return f"{site.number(seconds * 1000, 1)} ms"
