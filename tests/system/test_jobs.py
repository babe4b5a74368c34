"""Processes that do jobs on one file: killed, stopped, and racing each other."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.system.job_site import Site

STOP_S = 10
LEASE_MS = 1500


@pytest.fixture
def site(tmp_path, program) -> Site:
    return Site(tmp_path, program)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_jobs_survive_two_kills_and_each_effect_happens_once(site):
    ids = site.ask(10, "slow", 0.5)
    for _ in range(2):
        before = len(site.marks("began"))
        doomed = site.workers(4, "--lease-ms", LEASE_MS)
        site.until(lambda before=before: len(site.marks("began")) >= before + 4)
        doomed.kill()
    assert site.states()["running"], "the kills met nobody at work"
    site.workers(4, "--lease-ms", LEASE_MS)
    site.until(lambda: site.states()["done"] == 10)
    assert sorted(job for job, _ in site.marks("acted")) == ids
    assert len(site.marks("began")) > 10


def test_eight_processes_that_start_on_no_file_at_all_make_one_and_claim_each_of_2000_jobs_once(
    site,
):
    site.several_workers(8, 2)
    ids = site.ask(2000, "nothing", 0.005)
    site.until(lambda: site.states()["done"] == 2000)
    assert sorted(job for job, _ in site.marks("acted")) == ids
    # What was taken ahead may be given back, but then it was not begun.
    moves = dict(site.rows("SELECT verb, count(*) FROM job_event GROUP BY verb"))
    assert moves["claim"] - moves.get("release", 0) == moves["finish"] == 2000
    assert site.rows("SELECT DISTINCT attempts, crashes FROM job") == [(1, 0)]
    assert len({pid for _, pid in site.marks("acted")}) > 4, "a few processes had them all"


def test_a_stop_lets_short_jobs_end_and_gives_long_ones_back_uncounted(site):
    [short] = site.ask(1, "slow", 0.7)
    [long] = site.ask(1, "slow", 60)
    site.ask(1, "heavy", 60)
    process = site.workers(3)
    site.until(lambda: len(site.marks("began")) == 3)
    begun = time.monotonic()
    code, _out, err = process.end(signal.SIGTERM)
    assert (code, "Traceback" in err) == (0, False)
    assert time.monotonic() - begun < STOP_S
    rows = site.rows("SELECT id, state, attempts, crashes FROM job ORDER BY id")
    assert rows == [
        (short, "done", 1, 0), (long, "pending", 0, 0), (long + 1, "pending", 0, 0),
    ]  # fmt: skip
    assert not site.db.with_name("fieldpost.db-wal").exists()


def test_a_second_signal_ends_a_worker_at_once(site):
    site.ask(1, "slow", 60)
    process = site.workers(1)
    site.until(lambda: len(site.marks("began")) == 1)
    process.process.send_signal(signal.SIGTERM)
    process.wait_for("stopping")
    begun = time.monotonic()
    assert process.end(signal.SIGTERM)[0] == 0
    assert time.monotonic() - begun < 1


@pytest.mark.skipif(not Path("/proc").exists(), reason="the kernel ends orphans on Linux only")
def test_the_process_of_a_heavy_job_dies_with_its_worker(site):
    site.ask(1, "heavy", 60)
    process = site.workers(1)
    site.until(lambda: len(site.marks("began")) == 1)
    [(_, child)] = site.marks("began")
    assert child != process.process.pid
    assert is_alive(child)
    nice = [os.getpriority(os.PRIO_PROCESS, pid) for pid in (process.process.pid, child)]
    assert nice[0] < nice[1], "the front goes first"
    os.kill(process.process.pid, signal.SIGKILL)
    site.until(lambda: not is_alive(child))


def test_work_refuses_what_it_can_not_do(gateway_command, tmp_path):
    code, out, err = gateway_command("work", "--db", ":memory:").end()
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "in memory" in err
    code, _, err = gateway_command("work", "--db", str(tmp_path / "f"), "--workers", "0").end()
    assert code == 2
    assert "--workers is 0" in err
