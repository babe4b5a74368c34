"""What the gateway's processes tell of their jobs: in the log, on the stream, in the metrics."""

import json
import re
import signal
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

STOP_S = 10
GIVE_UP_S = 30
STREAMS = 50


def ask(gateway: Any, kind: str, request_id: str, **args: Any) -> int:
    """Ask for a job; return its id."""
    headers = {"Content-Type": "application/json", "X-Request-ID": request_id}
    body = json.dumps({"kind": kind, "args": args}).encode()
    request = urllib.request.Request(gateway.address + "/v1/jobs", body, headers)
    with urllib.request.urlopen(request) as answer:
        return int(json.load(answer)["id"])


def metrics(gateway: Any) -> str:
    with urllib.request.urlopen(gateway.address + "/metrics") as answer:
        return str(answer.read().decode())


@contextmanager
def stream(gateway: Any) -> Iterator[Any]:
    """Open a stream; give the lines that come."""
    host, port = gateway.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), GIVE_UP_S) as client:
        client.sendall(b"GET /v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        with client.makefile("r", newline="\r\n") as lines:
            yield lines


def until(lines: Any, pattern: str) -> str:
    for line in lines:
        if re.search(pattern, line):
            return str(line)
    raise AssertionError(f"the stream ended without {pattern!r}")


def test_who_asked_is_in_the_log_lines_of_who_did_it_in_another_process(
    serve: Callable[..., Any], gateway_command: Callable[..., Any], tmp_path: Path
) -> None:
    gateway = serve("--open", "--workers", "0", "--log-format", "json")
    worker = gateway_command(
        "work", "--workers", "1", "--db", str(tmp_path / "fieldpost.db"), "--log-format", "json"
    )
    worker.wait_for("workers do the jobs")
    with stream(gateway) as lines:
        until(lines, "changed")
        begun = {"from": 0, "to": 3_600_000}
        job_id = ask(gateway, "recalculate_chart", "asked-by-me", **begun)
        until(lines, f'"job:{job_id}"')
        worker.wait_for(f"job {job_id} finished")
        until(lines, f'"job:{job_id}"')  # what the other process did is told too

    said = [json.loads(line) for line in gateway.err + worker.err if line.startswith("{")]
    moves = {line["message"]: line for line in said if line.get("job_id") == job_id}
    for verb in ("added", "claimed", "finished"):
        assert moves[f"job {job_id} {verb}"]["request_id"] == "asked-by-me"

    counted = 'jobs_finished_total{kind="recalculate_chart"} 1.0'
    give_up_at = time.monotonic() + GIVE_UP_S
    while counted not in metrics(gateway):
        assert time.monotonic() < give_up_at
        time.sleep(0.05)


def test_open_streams_do_not_hold_up_the_stop_and_are_told(serve: Callable[..., Any]) -> None:
    gateway = serve("--open")
    with ExitStack() as streams:
        opened = [streams.enter_context(stream(gateway)) for _ in range(STREAMS)]
        for lines in opened:
            until(lines, "changed")
        begun = time.monotonic()
        code, _, err = gateway.end(signal.SIGTERM)
        assert time.monotonic() - begun < STOP_S / 2
        assert (code, "Traceback" in err) == (0, False)
        for lines in opened:
            until(lines, "event: goodbye")
            until(lines, "the gateway is stopping")
