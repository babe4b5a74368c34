"""The copy of a database that others write to."""

import sqlite3
from contextlib import closing
from pathlib import Path

from gateway.store import backup
from gateway.store.database import connect


def test_a_commit_between_two_steps_neither_waits_nor_begins_the_copy_anew(tmp_path: Path) -> None:
    source, target = tmp_path / "fieldpost.db", tmp_path / "copy.db"
    target.touch()
    steps = 0
    with closing(connect(str(source))) as writer:
        writer.execute("CREATE TABLE filling (body BLOB)")
        writer.execute(
            "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n LIMIT 7000)"
            " INSERT INTO filling SELECT zeroblob(3900) FROM n"
        )
        writer.execute("PRAGMA busy_timeout = 0")

        def write() -> None:
            nonlocal steps
            steps += 1
            assert steps < 20, "it begins anew with each commit"
            writer.execute("INSERT INTO filling VALUES ('x')")

        backup.copy(source, target, write)
    assert steps == -(-7000 // backup.STEP_PAGES)
    assert backup.faults(target) == []
    with closing(sqlite3.connect(target)) as copied:
        assert copied.execute("SELECT count(*) FROM filling").fetchone() == (7000,)
