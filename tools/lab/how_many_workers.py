"""The same ten jobs with 1, 2, 4 and 10 workers."""

import asyncio
import time
from statistics import median
from typing import NamedTuple

from tools.lab.finding import Bars, Finding, Table
from tools.lab.site import Site

TITLE = "How many workers"

_JOBS = 10
_WORKERS = (1, 2, 4, 10)
_WORK_S = 2.0


class Turn(NamedTuple):
    """One measurement. `answers_ms`: how long each question took; `last_s`: until all were done."""

    workers: int
    answers_ms: list[float]
    last_s: float
    work_s: float


async def run(site: Site) -> Finding:
    seconds = max(0.4, _WORK_S * site.scale)
    turns = [await _measure(site, workers, seconds) for workers in _WORKERS]
    return _tell(site, turns)


async def _measure(site: Site, workers: int, seconds: float) -> Turn:
    gateway = await site.gateway("--workers", workers)
    answers_ms = []
    ids = []
    for _number in range(_JOBS):
        began = time.monotonic()
        ids.append((await gateway.ask("lasting", {"seconds": seconds}))["id"])
        answers_ms.append((time.monotonic() - began) * 1000)
    jobs = await gateway.ended(ids)
    stopping = asyncio.create_task(gateway.stop())
    last_s = (max(j["finished_ms"] for j in jobs) - min(j["created_ms"] for j in jobs)) / 1000
    work_s = median(job["finished_ms"] - job["started_ms"] for job in jobs) / 1000
    await stopping
    return Turn(workers, answers_ms, last_s, work_s)


def _tell(site: Site, turns: list[Turn]) -> Finding:
    _ = site.gettext
    finding = Finding(_(TITLE))
    finding.say(_(
        "%(jobs)s jobs are asked for, one after another, and each takes %(work)s s because it waits"
        " for something, as a job does that talks to a sensor or a server. How many workers are"
        " there to do them?", jobs=_JOBS, work=site.number(turns[0].work_s, 1),
    ))  # fmt: skip
    finding.show(Table(
        (_("workers"), _("answer, in the middle"), _("slowest answer"),
         _("until the last was done"), _("compared with one job")),
        [
            (str(turn.workers), f"{site.number(median(turn.answers_ms), 1)} ms",
             f"{site.number(max(turn.answers_ms), 1)} ms", f"{site.number(turn.last_s, 1)} s",
             _("%(count)s times", count=site.number(turn.last_s / turn.work_s, 1)))
            for turn in turns
        ],
    ))  # fmt: skip
    labels = [str(turn.workers) for turn in turns]
    finding.show(Bars(_("Until the last of ten was done, by workers"), labels,
                      {_("time"): [round(turn.last_s, 1) for turn in turns]}, "s"))  # fmt: skip
    finding.show(Bars(
        _("How long an answer took, by workers"), labels,
        {_("answer"): [round(median(turn.answers_ms), 1) for turn in turns]}, "ms",
    ))  # fmt: skip
    finding.say(_(
        "Who asks gets an answer just as fast with one worker as with many: only the wish is"
        " written down. The last job is done sooner the more workers there are, until each job has"
        " a worker of its own; more than that would change nothing. Work that keeps the processor"
        " busy stops gaining earlier, at the number of processors."
    ))  # fmt: skip
    enough = _enough(turns)
    if enough is not None:
        finding.say(_(
            "In this run the %(jobs)s jobs took about as long as one (less than twice) with"
            " %(workers)s workers, and with fewer they did not.", jobs=_JOBS, workers=enough,
        ))  # fmt: skip
    lasts = [turn.last_s for turn in turns]
    slowest_s = max(max(turn.answers_ms) for turn in turns) / 1000
    middle_s = max(median(turn.answers_ms) for turn in turns) / 1000
    finding.claim(_("No median answer took a quarter of a job's time, however few the workers"),
                  middle_s < turns[0].work_s / 4)  # fmt: skip
    finding.claim(_("With more workers the last job is done sooner, each time"),
                  lasts == sorted(lasts, reverse=True))  # fmt: skip
    finding.claim(_("One worker needs at least as long as all jobs one after another"),
                  turns[0].last_s >= _JOBS * turns[0].work_s * 0.9)  # fmt: skip
    finding.claim(_("With as many workers as jobs, all of them take about as long as one (less than"
                    " three times)"), turns[-1].last_s < 3 * turns[-1].work_s)  # fmt: skip
    finding.figures = {
        "last_s": {str(turn.workers): turn.last_s for turn in turns},
        "answer_ms": {str(turn.workers): median(turn.answers_ms) for turn in turns},
        "slowest_answer_s": slowest_s,
        "as_long_as_one_with": enough,
    }  # fmt: skip
    return finding


def _enough(turns: list[Turn]) -> int | None:
    """Return the least number of workers tried with which all jobs take less than two."""
    return next((turn.workers for turn in turns if turn.last_s < 2 * turn.work_s), None)
