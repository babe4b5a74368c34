"""The wall clock steps while two processes have jobs: none is done twice, none waits longer."""

import os
import time
from pathlib import Path

import pytest

from tests.system.job_site import Site

LIBRARIES = [
    *Path("/usr/lib").glob("*/faketime/libfaketime.so.1"),
    *Path("/usr/lib/faketime").glob("libfaketime.so.1"),
]
LEASE_MS = 2000
LONGEST_WAIT_S = 4.0  # after a first failure; never below 2 s
SLACK_S = 2.5  # the poll, and a machine that is busy with other tests
HOUR_S = 3600

pytestmark = pytest.mark.skipif(
    not LIBRARIES, reason="NO CLOCK THAT STEPS: libfaketime is not installed (apt: libfaketime)"
)


class Clock:
    """The wall clock of the processes that are given `environ`; their monotonic one stays real."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "clock"
        self.ahead_s = 0.0
        self.environ = {
            "LD_PRELOAD": str(LIBRARIES[0]),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "FAKETIME_NO_CACHE": "1",
        }

    def set(self, ahead_s: float) -> None:
        self.ahead_s = ahead_s
        new = self._file.with_suffix(".new")
        new.write_text(f"{ahead_s:+.0f}\n")
        os.replace(new, self._file)


@pytest.mark.parametrize(
    ("before_s", "after_s"),
    [(0, -2 * HOUR_S), (0, 2 * HOUR_S), ("1970", 0)],
    ids=["two hours back", "two hours on", "from 1970 to now"],
)
def test_a_step_of_the_wall_clock_runs_nothing_twice_and_keeps_nothing_waiting(
    tmp_path, program, before_s, after_s
):
    site, clock = Site(tmp_path, program), Clock(tmp_path)
    clock.set(HOUR_S - time.time() if before_s == "1970" else before_s)
    for more in ((), ("--serve",)):
        site.workers(4, "--lease-ms", LEASE_MS, *more, environ=clock.environ)
    # Under way, waiting for the next try, and not yet begun, when the clock steps.
    long = site.ask(4, "slow", 2 * LEASE_MS / 1000, clock.ahead_s)
    flaky = site.ask(3, "flaky", 0, clock.ahead_s)
    site.until(lambda: len(site.marks("began")) == 7 and len(site.marks("failed")) == 3)
    late = site.ask(12, "slow", 0.5, clock.ahead_s)
    site.until(lambda: len(site.marks("began")) > 7)
    clock.set(after_s)
    site.until(lambda: site.states()["done"] == 19)
    assert sorted(job for job, _ in site.marks("acted")) == sorted(long + flaky + late)
    began = [job for job, _ in site.marks("began")]
    assert all(began.count(job) == (2 if job in flaky else 1) for job in long + flaky + late)
    assert site.rows("SELECT sum(crashes) FROM job") == [(0,)]
    failed, again = site.instants("failed"), site.instants("acted")
    waited = [again[job] - failed[job] for job in flaky]
    assert all(1.9 < wait_s < LONGEST_WAIT_S + SLACK_S for wait_s in waited), waited
