"""`jobs`: the queue at the command line, whether a gateway runs on the database or not."""

import json
import sqlite3
from contextlib import closing

import pytest

from gateway import cli

WEBHOOK = '{"url": "http://127.0.0.1:1/", "payload": {}}'


@pytest.fixture
def jobs(tmp_path, capsys):
    """Run `jobs …` on a database in tmp_path; return exit code, stdout, stderr."""

    def run(*arguments):
        code = cli.main(["jobs", *arguments, "--db", str(tmp_path / "f.db")])
        return code, *capsys.readouterr()

    return run


def fail(tmp_path, job_id):
    with closing(sqlite3.connect(tmp_path / "f.db")) as connection, connection:
        connection.execute(
            "UPDATE job SET state = 'failed', error = 'as\nasked', attempts = 5,"
            " finished_at_ms = 1 WHERE id = ?",
            (job_id,),
        )


def test_a_job_is_asked_for_and_listed(jobs):
    code, out, _ = jobs("enqueue", "send_webhook", WEBHOOK, "--priority", "3", "--json")
    job = json.loads(out)
    assert (code, job["id"], job["state"], job["priority"]) == (0, 1, "pending", 3)
    jobs("enqueue", "send_webhook", WEBHOOK, "--run-at-ms", "4102444800000")
    assert jobs("list")[1].splitlines() == [
        "2\tsend_webhook\tpending\t0 %\t0\t",
        "1\tsend_webhook\tpending\t0 %\t0\t",
    ]
    [newest] = json.loads(jobs("list", "--limit", "1", "--json")[1])
    assert (newest["id"], newest["next_attempt_ms"]) == (2, 4102444800000)
    assert jobs("list", "--state", "failed")[:2] == (0, "")


def test_the_same_key_asks_for_nothing_new(jobs):
    for _ in range(2):
        assert jobs("enqueue", "send_webhook", WEBHOOK, "--idempotency-key", "k")[0] == 0
    assert len(jobs("list")[1].splitlines()) == 1
    other = ("enqueue", "send_webhook", WEBHOOK, "--idempotency-key", "k", "--priority", "1")
    code, _, err = jobs(*other)
    assert (code, "used before" in err) == (2, True)


def test_a_person_decides_and_the_life_of_the_job_tells_it(jobs, tmp_path):
    jobs("enqueue", "send_webhook", WEBHOOK)
    fail(tmp_path, 1)
    assert jobs("list", "--state", "failed")[1] == "1\tsend_webhook\tfailed\t0 %\t5\tas\\nasked\n"
    assert jobs("retry", "1")[1] == "1\tsend_webhook\tpending\t0 %\t0\tas\\nasked\n"
    fail(tmp_path, 1)
    assert json.loads(jobs("discard", "1", "--json")[1])["state"] == "discarded"
    life = json.loads(jobs("show", "1", "--json")[1])
    assert [move["verb"] for move in life["moves"]] == ["enqueue", "retry", "discard"]
    _, out, _ = jobs("show", "1")
    assert "state: discarded\n" in out
    assert "  retry -> pending\n" in out


def test_a_pending_job_is_cancelled(jobs):
    jobs("enqueue", "send_webhook", WEBHOOK)
    assert json.loads(jobs("cancel", "1", "--json")[1])["state"] == "discarded"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("retry", "1"), "job 1 is pending: retry is no move from there"),
        (("discard", "1"), "job 1 is pending: discard is no move from there"),
        (("cancel", "7"), "there is no job 7"),
        (("show", "7"), "there is no job 7"),
        (("enqueue", "send_webhok", "{}"), "did you mean send_webhook?"),
        (("enqueue", "send_webhook", "{}"), "`url`"),
        (("enqueue", "send_webhook", "{"), "ARGS is not a JSON object"),
        (("enqueue", "send_webhook", "[]"), "ARGS is not a JSON object"),
        (("enqueue", "send_webhook", WEBHOOK, "--priority", "99999999"), "$.priority"),
    ],
)
def test_what_can_not_be_done_is_told_in_a_line(jobs, arguments, told):
    jobs("enqueue", "send_webhook", WEBHOOK)
    code, out, err = jobs(*arguments)
    assert (code, out) == (2, "")
    assert told in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments", [("show", "x"), ("show", "0"), ("show", "9" * 30), ("list", "--limit", "0")]
)
def test_what_is_no_number_of_a_job_is_refused(jobs, capsys, arguments):
    with pytest.raises(SystemExit) as ended:
        jobs(*arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("fieldpost: argument ")


def test_looking_makes_no_database(jobs, tmp_path):
    for arguments in (("list",), ("show", "1"), ("retry", "1")):
        assert jobs(*arguments)[0] == 2
    assert not (tmp_path / "f.db").exists()


def test_a_job_in_memory_is_not_asked_for(capsys):
    assert cli.main(["jobs", "enqueue", "send_webhook", WEBHOOK, "--db", ":memory:"]) == 2
    assert "--db" in capsys.readouterr().err
