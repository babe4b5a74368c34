"""Imports of real files by real child processes: all that is new, once, whatever happens."""

import asyncio
import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from gateway.store.database import Database
from tests.services.errands import Errands, child_pids, errands

HEAD = "device,sensor,value,at\n"
AT_MS = 1_764_529_200_000


def put(folder: Path, text: str | bytes, name: str = "a.csv") -> str:
    """Lay a file where imports are found."""
    (folder / "imports").mkdir(exist_ok=True)
    sent = text if isinstance(text, bytes) else text.encode()
    (folder / "imports" / name).write_bytes(sent)
    return name


def lines(count: int, first: int = 0, devices: int = 3) -> str:
    return "".join(
        f"d{n % devices},t,{n % 100},{AT_MS + 1000 * n}\n" for n in range(first, first + count)
    )


async def bring_in(on: Errands, folder: Path, text: str | bytes) -> dict[str, Any]:
    return await on.ended(await on.ask("import_readings", file=put(folder, text)))


def report(folder: Path, job: dict[str, Any]) -> list[str]:
    return (folder / "imports" / f"{job['id']}.txt").read_text().splitlines()


async def stored(on: Errands) -> int:
    return int(await on.scalar("SELECT count(*) FROM reading"))


async def test_a_file_is_brought_in_and_taken_away(tmp_path: Path) -> None:
    async with errands(tmp_path) as on:
        job = await bring_in(on, tmp_path, HEAD + lines(2000))
        assert (job["state"], job["result"]) == ("done", f"/v1/imports/{job['id']}")
        assert await stored(on) == 2000
        assert report(tmp_path, job) == ["2000 new, 0 known before, 0 bad lines"]
        row = await on.db.one("SELECT * FROM readings WHERE at_ms = :at", {"at": AT_MS + 1000})
        assert row is not None
        assert (row["device"], row["sensor"], row["value"], row["clock"]) == (
            "d1",
            "t",
            1,
            "synced",
        )
        assert row["reading_id"].startswith("import-")
        assert len(row["reading_id"]) == len("import-") + 32
    assert sorted(path.name for path in (tmp_path / "imports").iterdir()) == [f"{job['id']}.txt"]


async def test_the_same_file_or_a_longer_one_adds_only_what_is_new(tmp_path: Path) -> None:
    again = "d1,t,5,7\nd1,t,5,7\nd1,t,5,7\n"  # three equal lines are three readings
    async with errands(tmp_path) as on:
        for text, new, known in (
            (HEAD + again + lines(700), 703, 0),
            (HEAD + again + lines(700), 0, 703),
            (HEAD + again + lines(900) + again, 203, 703),
        ):
            job = await bring_in(on, tmp_path, text)
            assert report(tmp_path, job) == [f"{new} new, {known} known before, 0 bad lines"]
        assert await stored(on) == 906


async def test_the_id_of_a_line_can_be_worked_out_by_anybody(tmp_path: Path) -> None:
    head = "device,sensor,value,text,at\n"
    async with errands(tmp_path) as on:
        await bring_in(on, tmp_path, f"{head}d1,t,21,,7\nd1,t,true,,7\nd1,t,21.0,,7\nd1,t,,olá,7\n")
        found = {row[0] for row in await on.db.all("SELECT reading_id FROM reading")}
    said = (
        '["d1","t",7,21.0,1]',
        '["d1","t",7,1.0,1]',
        '["d1","t",7,21.0,2]',
        '["d1","t",7,"olá",1]',
    )
    assert found == {"import-" + hashlib.sha256(one.encode()).hexdigest()[:32] for one in said}


async def test_a_spreadsheets_file_says_the_same_as_a_scripts(tmp_path: Path) -> None:
    plain = f"{HEAD}d1,t,21.5,{AT_MS}\nd2,t,-3,{AT_MS}\n"
    sheet = (
        "\ufeffDevice;Sensor;Value;At\r\n"
        'd1;"t";21,50;2025-11-30T20:00:00+01:00\r\n'
        ";;;\r\n"
        "d2;t;-3,0;2025-11-30T19:00:00Z\r\n"
    )
    async with errands(tmp_path) as on:
        await bring_in(on, tmp_path, plain)
        job = await bring_in(on, tmp_path, sheet)
    assert report(tmp_path, job) == ["0 new, 2 known before, 0 bad lines"]


async def test_every_bad_line_is_reported_with_its_number_and_costs_only_itself(
    tmp_path: Path,
) -> None:
    text = (
        "device,sensor,value,at,id\n"
        "d1,t,1,10,ok-1\n"  # 2
        "d1,t,nan,10,\n"  # 3
        'd1,"t,1,10,\n'  # 4: a quote that is never closed
        f"d1,{'s' * 65},1,10,\n"  # 5: what the door does not take
        "d1,t,1,10,d2-7f3a17c21-5\n"  # 6: the id of another device
        "\n"
        f"d1,t,{'9' * 70_000},10,\n"  # 8: longer than any line
        "d1,t,2,10,ok-1\n"  # 9: an id that was used before
        "d1,t,3,10,ok-2\n"
    )
    async with errands(tmp_path) as on:
        job = await bring_in(on, tmp_path, text.encode() + b"d1,\xff,1,10,\n")
        assert job["state"] == "done"
        assert await stored(on) == 2
    first, *bad = report(tmp_path, job)
    assert first == "2 new, 0 known before, 7 bad lines"
    assert [line.split(":")[0] for line in bad] == [f"line {n}" for n in (3, 4, 5, 6, 8, 9, 11)]
    assert "id belongs to another device" in bad[3]
    assert "id was used before" in bad[5]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "must name the columns"),
        ("device,sensor,value\n", "it lacks at"),
        (HEAD + "d1,t,x,1\nd1,t,y,1\n", "none of its 2 lines is a reading: line 2: value 'x'"),
    ],
)
async def test_a_file_without_any_reading_fails_for_good(
    tmp_path: Path, text: str, told: str
) -> None:
    async with errands(tmp_path) as on:
        job = await bring_in(on, tmp_path, text)
    assert (job["state"], job["attempts"]) == ("failed", 1)
    assert told in job["error"]


async def test_a_file_with_nothing_but_names_is_done(tmp_path: Path) -> None:
    async with errands(tmp_path) as on:
        job = await bring_in(on, tmp_path, HEAD)
    assert job["state"] == "done"


@pytest.mark.parametrize("name", ["../fieldpost.db", "/etc/passwd", "a/b.csv", "a.txt", ".csv"])
async def test_no_file_outside_the_folder_can_be_named(tmp_path: Path, name: str) -> None:
    async with errands(tmp_path) as on:
        job = await on.ended(await on.ask("import_readings", file=name))
    assert "args of import_readings" in job["error"]


async def test_an_import_is_no_heartbeat(tmp_path: Path) -> None:
    async with errands(tmp_path) as on:
        await bring_in(on, tmp_path, HEAD + lines(10, devices=1))
        row = await on.db.one("SELECT name, last_seen_at_ms, boot, seq, stored FROM device")
    assert row is not None
    assert tuple(row) == ("d0", None, None, None, 10)


async def test_charts_are_made_anew_for_the_time_that_was_brought_in(tmp_path: Path) -> None:
    async with errands(tmp_path) as on:
        for _ in range(2):  # the second brings nothing new
            await bring_in(on, tmp_path, HEAD + lines(600))
        asked = await on.db.all("SELECT args FROM job WHERE kind = 'recalculate_chart'")
    assert [row[0] for row in asked] == [f'{{"from":{AT_MS},"to":{AT_MS + 599_000}}}']


async def test_a_killed_import_goes_on_where_it_was(tmp_path: Path) -> None:
    """Equal lines on both sides of the cut are told apart as if there had been none."""
    equal, count = "d1,t,5,7\n" * 40, 30_000
    text = HEAD + equal + lines(count) + equal
    async with errands(tmp_path) as on:
        job_id = await on.ask("import_readings", file=put(tmp_path, text))
        for crashes in (1, 2):
            await _kill_in_the_middle(on, job_id)
            await on.until(job_id, lambda job, n=crashes: job["crashes"] == n)
        job = await on.ended(job_id)
        assert (job["state"], job["crashes"]) == ("done", 2)
        assert await stored(on) == count + 80
        assert await on.scalar("SELECT count(DISTINCT reading_id) FROM reading") == count + 80
        # Nothing that a chunk stored was sent again: the cursor moved in the same transaction.
        assert report(tmp_path, job) == [f"{count + 80} new, 0 known before, 0 bad lines"]


async def _kill_in_the_middle(on: Errands, job_id: int) -> None:
    sql = f"SELECT coalesce(max(line), 0) FROM import WHERE job_id = {job_id} AND finished = 0"
    before = await on.scalar(sql)
    async with asyncio.timeout(60):
        while await on.scalar(sql) <= before + 1500 or not child_pids():
            await asyncio.sleep(0.005)
    [pid] = child_pids()
    os.kill(pid, signal.SIGKILL)


async def test_of_a_file_that_is_none_so_many_lines_are_listed_and_all_are_counted(
    tmp_path: Path,
) -> None:
    most = 100_000
    async with errands(tmp_path) as on:
        job = await bring_in(on, tmp_path, HEAD + "x\n" * (most + 7))
    assert job["state"] == "failed"
    first, *listed, last = report(tmp_path, job)
    assert first == f"0 new, 0 known before, {most + 7} bad lines"
    assert (len(listed), last) == (most, "and 7 more, of which none is listed")


async def test_it_waits_uncounted_while_the_disk_is_nearly_full(tmp_path: Path) -> None:
    async with errands(tmp_path, min_free_bytes=2**60) as on:
        job_id = await on.ask("import_readings", file=put(tmp_path, HEAD + lines(3)))
        job = await on.until(job_id, lambda job: job["state"] == "pending" and job["started_at_ms"])
        assert (job["attempts"], job["crashes"]) == (0, 0)
        assert job["error"] == "waits: the disk is nearly full"
        assert await stored(on) == 0


_PEAK = """
import asyncio, resource, sys
from gateway.handlers import import_readings
from gateway.kinds import Context
from gateway.log import of_job
from gateway.store.database import Database

async def main(folder, name):
    db = await Database.open(folder + "/fieldpost.db")
    kind = import_readings.kind({"folder": folder, "min_free_bytes": 0})
    context = Context(1, None, db, of_job(1, None))
    await kind.handler(context, import_readings.Args(name))
    await db.close()
    status = open("/proc/self/status").read()  # ru_maxrss would begin with the parent's
    print(status.split("VmHWM:")[1].split()[0])

asyncio.run(main(*sys.argv[1:]))
"""


def _peak_mib(folder: Path, pieces: Iterable[bytes]) -> float:
    """Bring in a file in a process of its own; return the most memory that it had."""
    (folder / "imports").mkdir(parents=True)
    with (folder / "imports" / "a.csv").open("wb") as file:
        file.writelines(pieces)
    done = subprocess.run(
        [sys.executable, "-c", _PEAK, str(folder), "a.csv"], capture_output=True, check=True
    )
    return int(done.stdout) / 1024


def _wide(count: int) -> Iterable[bytes]:
    """Yield lines of 5 KB that the database keeps little of: it has a cache of its own."""
    yield b"device,sensor,value,at\n"
    for n in range(count):
        yield b"d%d,t,%d%s,%d\n" % (n % 5, n, b" " * 5000, AT_MS + n)


def test_memory_stays_flat_for_a_file_of_50_mb(tmp_path: Path) -> None:
    least = _peak_mib(tmp_path / "small", _wide(1_000))
    most = _peak_mib(tmp_path / "large", _wide(10_000))
    assert most - least < 16, (least, most)


async def test_a_database_of_before_knows_imports(tmp_path: Path) -> None:
    db = await Database.open(str(tmp_path / "fieldpost.db"))
    assert await db.all("SELECT * FROM import") == []
    await db.close()
