"""The same heavy work, done before the answer and after it."""

import asyncio
import time
from datetime import UTC, datetime
from statistics import median
from typing import Any, NamedTuple

from gateway.web import prefer
from tools.lab import limits
from tools.lab.finding import Bars, Finding, Table
from tools.lab.site import Gateway, Site

TITLE = "In front or behind"

KIND = "daily_report"
PATIENCE_S = 0.12  # of a client that gives up
_BATCH = 64
_TRIES = 3  # of the impatient client, where it may succeed


class Exchange(NamedTuple):
    """One question: how its time went, in ms. `job` is as it was when all was over."""

    waited_ms: float
    sent_at_ms: float
    answered_at_ms: float
    job: dict[str, Any]

    @property
    def commit_ms(self) -> float:
        """Return the time until a worker had it, which is after its commit."""
        return max(0.0, float(self.job["started_ms"]) - self.sent_at_ms)

    @property
    def work_ms(self) -> float:
        return float(self.job["finished_ms"] - self.job["started_ms"])

    @property
    def answer_ms(self) -> float:
        """Return the time from the end of the work to the answer, of a client that waited."""
        return max(0.0, self.answered_at_ms - float(self.job["finished_ms"]))


async def run(site: Site) -> Finding:
    gateway = await site.gateway("--workers", 1)
    await _fill(site, gateway)
    times = max(2, round(3 * site.scale))
    front = {"Prefer": f"wait={prefer.MOST_S}"}
    before = [await _exchange(gateway, front) for _ in range(times)]
    after = [await _exchange(gateway, {}) for _ in range(times)]
    left = await _impatient(site, gateway, front)
    done_for_nobody = await _newest_is_done(site, gateway, before[-1].job["id"] + times)
    told = [await _impatient(site, gateway, {}) for _ in range(_TRIES)]
    await gateway.ended([id for id in told if id])
    return _tell(site, before, after, left, done_for_nobody, [id for id in told if id])


async def _fill(site: Site, gateway: Gateway) -> None:
    """Give the report something to say."""
    now_ms = int(time.time() * 1000)
    for batch in range(max(4, round(20 * site.scale))):
        numbers = range(batch * _BATCH, (batch + 1) * _BATCH)
        readings = [
            {"id": f"roof-{n}", "sensor": f"t{n % 4}", "value": site.random.uniform(10, 30),
             "at_ms": now_ms - n}
            for n in numbers
        ]  # fmt: skip
        await gateway.deliver("roof", readings)


def _today() -> dict[str, str]:
    return {"date": datetime.now(UTC).date().isoformat()}


async def _exchange(gateway: Gateway, headers: dict[str, str]) -> Exchange:
    began, sent_at_ms = time.monotonic(), time.time() * 1000
    job = await gateway.ask(KIND, _today(), **headers)
    waited_ms, answered_at_ms = (time.monotonic() - began) * 1000, time.time() * 1000
    [job] = await gateway.ended([job["id"]])
    return Exchange(waited_ms, sent_at_ms, answered_at_ms, job)


async def _impatient(site: Site, gateway: Gateway, headers: dict[str, str]) -> int | None:
    """Ask, and give up after PATIENCE_S; return the id if the answer came before."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            return int((await gateway.ask(KIND, _today(), **headers))["id"])
    except TimeoutError:
        return None


async def _newest_is_done(site: Site, gateway: Gateway, last_known: int) -> bool:
    """Return whether the job that nobody has the id of came to its end."""

    async def newest() -> dict[str, Any]:
        async with site.http.get(f"{gateway.url}/v1/jobs", params={"limit": 1}) as answer:
            job: dict[str, Any] = (await answer.json())["jobs"][0]
            return job

    async def is_over() -> bool:
        return (await newest())["state"] in ("done", "failed")

    await site.until(is_over, "the job that nobody waits for is over")
    job = await newest()
    return bool(job["id"] > last_known and job["state"] == "done")


def _tell(
    site: Site,
    before: list[Exchange],
    after: list[Exchange],
    left: int | None,
    done_for_nobody: bool,
    told: list[int],
) -> Finding:
    _ = site.gettext

    def ms(value: float) -> str:
        return f"{site.number(value)} ms"

    patience = ms(PATIENCE_S * 1000)
    finding = Finding(_(TITLE))
    finding.say(_(
        "Somebody asks for a report, which is heavy work. The gateway can do it in front of the"
        " answer: whoever asked waits all the while. Or behind it: the wish is written down, the"
        " answer says under which number, and a worker does it then."
    ))  # fmt: skip
    waited = [median(one.waited_ms for one in way) for way in (before, after)]
    work = [median(one.work_ms for one in way) for way in (before, after)]
    commit = [median(one.commit_ms for one in way) for way in (before, after)]
    ways = [_("in front (Prefer: wait)"), _("behind (202 Accepted)")]
    finding.show(Table(
        (_("the work is done"), _("the client waited"), _("commit"), _("work"), _("answer")),
        [
            (ways[0], ms(waited[0]), ms(commit[0]), ms(work[0]),
             ms(median(one.answer_ms for one in before))),
            (ways[1], ms(waited[1]), ms(commit[1]), ms(work[1]), _("did not wait for the work")),
        ],
    ))  # fmt: skip
    finding.show(Bars(
        _("How long the client waited, and how long the work took"), ways,
        {_("waited"): [round(value) for value in waited], _("work"): [round(v) for v in work]},
        "ms",
    ))  # fmt: skip
    finding.say(_(
        "Commit is the time until the wish is safe on the disk and a worker has it. A client that"
        " waits only %(patience)s gives up on the first way, and the work is done all the same,"
        " for nobody: it never heard the number. On the second way it has the number by then, and"
        " can ask later.", patience=patience,
    ))  # fmt: skip
    finding.say(_("Everybody on the way has a limit, and the shortest one decides:"))
    ours = _("client: the impatient one of this experiment")
    chain = [
        limits.Limit(ours, PATIENCE_S, "tools/lab"),
        *limits.of_response(site),
        limits.of_work(site, KIND),
    ]
    finding.show(limits.table(site, chain))
    finding.claim(_("In front, the client waited at least as long as the work took"),
                  waited[0] >= work[0])  # fmt: skip
    finding.claim(_("Behind, it waited less than a third of that"), waited[1] < waited[0] / 3)
    finding.claim(_("In front, the impatient client (%(patience)s) left without a number, and its"
                    " work was done for nobody", patience=patience),
                  left is None and done_for_nobody)  # fmt: skip
    finding.claim(_("Behind, the impatient client had its number (%(count)s of %(all)s times)",
                    count=len(told), all=_TRIES), bool(told))  # fmt: skip
    finding.figures = {
        "waited_in_front_ms": waited[0], "waited_behind_ms": waited[1],
        "work_in_front_ms": work[0], "work_behind_ms": work[1],
        "commit_in_front_ms": commit[0], "commit_behind_ms": commit[1],
        "told_in_time": len(told),
    }  # fmt: skip
    return finding
