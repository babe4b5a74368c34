"""A worker is killed in the midst of a job, and nobody saw it."""

import time
from typing import Any

from gateway.reaper import LOOK_S
from gateway.store.jobs import LEASE_MS
from tools.lab.finding import Finding, Table
from tools.lab.site import Gateway, Site

TITLE = "The worker that died"

_MARGIN_S = 20.0  # a busy machine is late


async def run(site: Site) -> Finding:
    gateway = await site.gateway("--workers", 1)
    job = await gateway.ask("lasting", {"seconds": 2.0})
    await site.until(lambda: _is(gateway, job["id"], "running"), "a worker has the job")
    await gateway.kill()
    killed_at = time.monotonic()
    await gateway.start()
    ghost = await gateway.job(job["id"])
    await site.until(lambda: _was_rescued(gateway, job["id"]), "the job was rescued")
    rescued_s = time.monotonic() - killed_at
    waiting = await gateway.job(job["id"])
    [done] = await gateway.ended([job["id"]])
    ended_s = time.monotonic() - killed_at
    return _tell(site, [ghost or {}, waiting or {}, done], rescued_s, ended_s)


async def _is(gateway: Gateway, id: int, state: str) -> bool:
    job = await gateway.job(id)
    return job is not None and job["state"] == state


async def _was_rescued(gateway: Gateway, id: int) -> bool:
    job = await gateway.job(id)
    return job is not None and job["crashes"] > 0


def _tell(site: Site, seen: list[dict[str, Any]], rescued_s: float, ended_s: float) -> Finding:
    _ = site.gettext
    ghost, waiting, done = seen
    lease_s, look_s = LEASE_MS / 1000, LOOK_S
    finding = Finding(_(TITLE))
    finding.say(_(
        "A worker has a job, and is killed. It can tell nobody, and the job still says \"running\","
        " although nobody is at it. So a worker has a job only on a lease: it must renew it, and"
        " whoever is dead does not. When the lease of %(lease)s s is over, somebody who looks every"
        " %(look)s s takes the job back.", lease=site.number(lease_s), look=site.number(look_s, 1),
    ))  # fmt: skip
    at = [_("just after the kill"), _("when it was taken back"), _("at the end")]
    after = [0.0, rescued_s, ended_s]
    finding.show(Table(
        (_("when"), _("after the kill"), _("state"), "attempts", "crashes"),
        [(when, f"{site.number(s, 1)} s", _(job["state"]), str(job["attempts"]),
          str(job["crashes"])) for when, s, job in zip(at, after, seen, strict=True)],
    ))  # fmt: skip
    finding.say(_(
        "\"attempts\" counts tries that ended, well or badly; \"crashes\" counts those that never"
        " did. A job that kills its worker each time is not tried for ever: that is what the second"
        " number is for."
    ))  # fmt: skip
    finding.claim(_("After the kill the job said \"running\", and nobody was at it"),
                  ghost["state"] == "running")  # fmt: skip
    finding.claim(_("It was taken back after its lease and not long after: %(s)s s",
                    s=site.number(rescued_s, 1)),
                  lease_s / 2 < rescued_s < lease_s + look_s + _MARGIN_S)  # fmt: skip
    finding.claim(_("It was done in the end, and its numbers say what happened: one try that"
                    " ended, one that never did"),
                  (done["state"], done["attempts"], done["crashes"]) == ("done", 1, 1))  # fmt: skip
    finding.claim(_("When it was taken back, no try had ended yet"),
                  (waiting["attempts"], waiting["crashes"]) == (0, 1))  # fmt: skip
    finding.figures = {"lease_s": lease_s, "rescued_s": rescued_s, "ended_s": ended_s,
                       "attempts": done["attempts"], "crashes": done["crashes"]}  # fmt: skip
    return finding
