"""A promise that is kept in memory only, and one that is kept in a file."""

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

from tools.lab.finding import Finding, Table
from tools.lab.site import Gateway, Site

TITLE = "The promise that dies"

MEMORY = ":memory:"
_FEW, _MANY, _KILLS = 3, 10, 2
_PATIENCE_S = 180.0  # a job that was under way at each kill waits for its lease, twice


async def run(site: Site) -> Finding:
    in_memory, in_file, many = await asyncio.gather(
        _promised_and_killed(site, MEMORY), _promised_and_killed(site, None), _killed_at_work(site)
    )
    return _tell(site, in_memory, in_file, many)


async def _promised_and_killed(site: Site, db: str | None) -> list[str | None]:
    """Ask for jobs while nobody works, kill the gateway; return the jobs' states in its next life.

    None stands for 404: there is no such job.
    """
    gateway = await site.gateway("--workers", 0, db=db)
    ids = await _ask(gateway, _FEW, 0.1)
    await gateway.kill()
    await gateway.start("--workers", 4)
    known = [id for id in ids if await gateway.job(id)]
    await gateway.ended(known)
    states = [await _state(gateway, id) for id in ids]
    await gateway.stop()
    return states


async def _killed_at_work(site: Site) -> list[dict[str, Any]]:
    """Ask for many jobs, kill the gateway in the midst of them, twice; return how they ended."""
    gateway = await site.gateway("--workers", 1)
    born_ms = 0.0
    ids = await _ask(gateway, _MANY, 1.0)
    for _ in range(_KILLS):
        under_way = partial(_is_at_work, gateway, ids, born_ms)
        await site.until(under_way, "a job is under way")
        await gateway.kill()
        born_ms = time.time() * 1000
        await gateway.start("--workers", 4)
    jobs = await gateway.ended(ids, _PATIENCE_S)
    await gateway.stop()
    return jobs


async def _ask(gateway: Gateway, count: int, seconds: float) -> list[int]:
    args = {"seconds": seconds}
    jobs = await asyncio.gather(*(gateway.ask("lasting", args) for _ in range(count)))
    return [job["id"] for job in jobs]


async def _is_at_work(gateway: Gateway, ids: Sequence[int], born_ms: float) -> bool:
    """Return whether a job is under way that was begun in this life of the gateway."""
    jobs = [job for id in ids if (job := await gateway.job(id))]
    return any(job["state"] == "running" and job["started_ms"] >= born_ms for job in jobs)


async def _state(gateway: Gateway, id: int) -> str | None:
    job = await gateway.job(id)
    return None if job is None else str(job["state"])


def _tell(
    site: Site,
    in_memory: list[str | None],
    in_file: list[str | None],
    many: list[dict[str, Any]],
) -> Finding:
    _ = site.gettext
    warned = "the database is in memory" in site.log.read_text(encoding="utf-8")
    done = sum(job["state"] == "done" for job in many)
    crashes = sum(job["crashes"] for job in many)
    finding = Finding(_(TITLE))
    finding.say(_(
        "A number of a job is a promise: this will be done. Here some jobs are asked for, and the"
        " gateway is killed before it could do them, as by a power cut: it gets no chance to say"
        " good-bye. Then it is started again, and asked what became of the numbers."
    ))  # fmt: skip
    finding.show(Table(
        (_("the queue is kept"), *(_("job %(number)s", number=n + 1) for n in range(_FEW))),
        [
            (_("in memory"), *(_state_in_words(site, state) for state in in_memory)),
            (_("in a file"), *(_state_in_words(site, state) for state in in_file)),
        ],
    ))  # fmt: skip
    finding.say(_(
        "What was in memory only is gone, and nobody can even say what was lost. The gateway says"
        " so when it is started that way. Now %(many)s jobs in a file, and the gateway is killed"
        " %(kills)s times in the midst of them:", many=_MANY, kills=_KILLS,
    ))  # fmt: skip
    finding.show(Table(
        (_("job"), _("state"), _("tries that ended"), _("tries that a kill cut off")),
        [(str(n + 1), _state_in_words(site, job["state"]), str(job["attempts"]),
          str(job["crashes"])) for n, job in enumerate(many)],
    ))  # fmt: skip
    finding.claim(_("In memory: no number is known after the kill, and the work is gone"),
                  not any(in_memory))  # fmt: skip
    finding.claim(_("The gateway had warned of that when it started"), warned)
    finding.claim(_("In a file: all %(count)s are done after the kill", count=_FEW),
                  in_file == ["done"] * _FEW)  # fmt: skip
    finding.claim(_("%(many)s jobs, %(kills)s kills, %(done)s done",
                    many=_MANY, kills=_KILLS, done=done), done == _MANY)  # fmt: skip
    finding.claim(_("Each kill hit a job that was under way, and the jobs say so"),
                  crashes >= _KILLS)  # fmt: skip
    finding.figures = {
        "known_after_kill_in_memory": sum(state is not None for state in in_memory),
        "done_after_kill_in_file": in_file.count("done"),
        "asked": _MANY, "kills": _KILLS, "done": done, "crashes": crashes,
    }  # fmt: skip
    return finding


def _state_in_words(site: Site, state: str | None) -> str:
    return site.gettext("404, unknown") if state is None else site.gettext(state)
