"""How long a job that fails waits before each new try, and when it gives up."""

import asyncio
from collections.abc import Callable
from itertools import accumulate
from typing import Any

from gateway.backoff import wait_ms
from gateway.store.jobs import Limits
from tools.lab.finding import Bars, Finding, Table
from tools.lab.kinds import registry
from tools.lab.site import Gateway, Site

TITLE = "The curve"

_SHOWN = 8  # waits in the table
_MANY = 1000  # drawn to see where a wait with jitter lies
_BY_TRIES, _BY_TIME = "hopeless_by_tries", "hopeless_by_time"


async def run(site: Site) -> Finding:
    gateway = await site.gateway()
    ended = await asyncio.gather(*(_to_its_end(gateway, kind) for kind in (_BY_TRIES, _BY_TIME)))
    return _tell(site, dict(zip((_BY_TRIES, _BY_TIME), ended, strict=True)))


async def _to_its_end(gateway: Gateway, kind: str) -> dict[str, Any]:
    job = await gateway.ask(kind, {})
    [ended] = await gateway.ended([job["id"]])
    return ended


def _waits_s(random: Callable[[], float], count: int) -> list[float]:
    """Return the waits after 1, 2, … failures, from the shipped function."""
    return [wait_ms(failures, random) / 1000 for failures in range(1, count + 1)]


def _no_jitter() -> float:
    """Take the place of chance: what `wait_ms` is given for a wait without jitter."""
    return 0.0


def _tell(site: Site, ended: dict[str, dict[str, Any]]) -> Finding:
    _ = site.gettext
    plain, jittered = _waits_s(_no_jitter, _SHOWN), _waits_s(site.random.random, _SHOWN)
    finding = Finding(_(TITLE))
    finding.say(_(
        "A job that failed is not tried again at once: what was broken is probably still broken. It"
        " waits, and after each failure twice as long, up to a most. And to each wait comes a"
        " length by chance, the jitter, so that those that failed together do not come back"
        " together."
    ))  # fmt: skip
    finding.show(_table(site, plain, jittered))
    finding.show(Bars(
        _("Wait before each new try"), [str(n + 1) for n in range(_SHOWN)],
        {_("without jitter"): plain, _("with jitter"): [round(s, 1) for s in jittered]}, "s",
    ))  # fmt: skip
    usual = Limits()
    least_s, most_s = _held_s(usual.max_attempts)
    finding.say(_(
        "A job gives up after %(tries)s tries, or when %(minutes)s minutes are over, whichever"
        " comes first. %(tries)s tries have %(waits)s waits between them: a job that can not"
        " succeed is held for %(least)s to %(most)s s, and then a person has to look.",
        tries=usual.max_attempts, minutes=site.number(usual.deadline_ms / 60_000, 1),
        waits=usual.max_attempts - 1, least=site.number(least_s), most=site.number(most_s),
    ))  # fmt: skip
    finding.say(_("Two jobs that always fail, with limits that fit into a lesson, to their end:"))
    finding.show(_ends(site, ended))
    _claim(site, finding, plain, ended)
    finding.figures = {
        "waits_without_jitter_s": plain, "waits_with_jitter_s": jittered,
        "held_least_s": least_s, "held_most_s": most_s,
        "ended": {kind: {"attempts": job["attempts"], "held_s": _lived_s(job)}
                  for kind, job in ended.items()},
    }  # fmt: skip
    return finding


def _table(site: Site, plain: list[float], jittered: list[float]) -> Table:
    _ = site.gettext
    columns = (
        _("failures"), _("wait without jitter"), _("instant"), _("wait with jitter"), _("instant"),
    )  # fmt: skip
    values = zip(plain, accumulate(plain), jittered, accumulate(jittered), strict=True)
    rows = [
        (str(number), *(f"{site.number(value, 1)} s" for value in row))
        for number, row in enumerate(values, 1)
    ]
    return Table(columns, rows)


def _ends(site: Site, ended: dict[str, dict[str, Any]]) -> Table:
    _ = site.gettext
    kinds = registry({"folder": str(site.folder)})
    rows = [
        (
            _("at most %(count)s tries", count=kinds[kind].limits.max_attempts)
            if kind == _BY_TRIES
            else _("at most %(s)s s", s=site.number(kinds[kind].limits.deadline_ms / 1000, 1)),
            _(job["state"]), str(job["attempts"]), f"{site.number(_lived_s(job), 1)} s",
        )
        for kind, job in ended.items()
    ]  # fmt: skip
    return Table((_("its limit"), _("state"), _("tries"), _("lived for")), rows)


def _claim(
    site: Site, finding: Finding, plain: list[float], ended: dict[str, dict[str, Any]]
) -> None:
    _ = site.gettext
    limits = {kind: registry({"folder": str(site.folder)})[kind].limits for kind in ended}
    draws = [_waits_s(site.random.random, _SHOWN) for _draw in range(_MANY)]
    lies_between = all(
        base <= wait < 2 * base for waits in draws for base, wait in zip(plain, waits, strict=True)
    )
    by_tries, by_time = ended[_BY_TRIES], ended[_BY_TIME]
    finding.claim(_("Without jitter no wait is shorter than the one before"),
                  plain == sorted(plain) and plain[0] < plain[-1])  # fmt: skip
    finding.claim(_("With jitter each of %(count)s waits lies between once and twice the plain one",
                    count=site.number(_MANY * _SHOWN)), lies_between)  # fmt: skip
    tries = limits[_BY_TRIES].max_attempts
    finding.claim(_("The first job failed after exactly its %(count)s tries", count=tries),
                  (by_tries["state"], by_tries["attempts"]) == ("failed", tries))  # fmt: skip
    finding.claim(_("It lived at least as long as its waits"),
                  _lived_s(by_tries) >= _held_s(tries)[0])  # fmt: skip
    late = by_time["attempts"] < limits[_BY_TIME].max_attempts
    finding.claim(_("The second job failed because its time was over, with tries left"),
                  by_time["state"] == "failed" and late
                  and _lived_s(by_time) * 1000 >= limits[_BY_TIME].deadline_ms)  # fmt: skip


def _held_s(tries: int) -> tuple[float, float]:
    """Return for how long a job is held that fails `tries` times, at least and at most."""
    least_s = sum(_waits_s(_no_jitter, tries - 1))
    return least_s, sum(_waits_s(lambda: 1.0, tries - 1))


def _lived_s(job: dict[str, Any]) -> float:
    return float(job["finished_ms"] - job["created_ms"]) / 1000
