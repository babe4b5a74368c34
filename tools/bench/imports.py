"""`python -m tools.bench imports`: a CSV of a gibibyte is taken in, and nobody notices.

The file is sent to a real gateway; while it arrives, and for the first minutes of its import, the
memory of the gateway and of the job's process is looked at, and `POST /v1/readings` is measured: in
rounds during the import, and in as many before and after it. The import is not waited for: it is
cancelled then.
"""

import argparse
import http.client
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from tools.bench.ingest import Ingest

MIB = 1024**2
CONNECTIONS, REQUESTS, READINGS = 8, 100, 1
ROUNDS = 8
LOOK_S = 0.2
MOST_GATEWAY_MIB = 64.0  # that the gateway grows by, whatever the size of the file
MOST_INGEST_RATIO = 2.0


class Memory:
    """What a gateway and its children hold, looked at again and again. In MiB."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.gateway: list[float] = []
        self.child: list[float] = []
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self.gateway or not self._stop.wait(LOOK_S):
            self.gateway.append(_rss_mib(self._pid))
            held = [_rss_mib(pid) for pid in _children(self._pid)]
            if held:
                self.child.append(max(held))


def _rss_mib(pid: int) -> float:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1024
    except (OSError, IndexError):
        return 0.0  # it has ended


def _children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


@contextmanager
def gateway(folder: str) -> Iterator[tuple[int, int]]:
    """Run a gateway; yield its process and port."""
    command = [sys.executable, "-m", "gateway", "serve", "--open", "--port", "0"]
    command += ["--db", f"{folder}/fieldpost.db", "--requests-per-minute", "0"]
    command += ["--readings-per-minute", "0", "--drain-timeout-s", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        line = next(line for line in process.stdout if "http://127.0.0.1:" in line)
        yield process.pid, int(line.split("http://127.0.0.1:")[1].split("/")[0])
    finally:
        process.terminate()
        process.communicate(timeout=30)


def write_sheet(path: Path, size_bytes: int) -> int:
    """Write a sheet of about that size; return its lines."""
    lines = 0
    with path.open("wb") as file:
        file.write(b"device,sensor,value,unit,at\n")
        while file.tell() < size_bytes:
            file.writelines(
                b"bench-import-%02d,dht22.temperature,%d.%d,Cel,%d\n"
                % (n % 20, n % 40, n % 10, 1_700_000_000_000 + n * 100)
                for n in range(lines, lines + 50_000)
            )
            lines += 50_000
    return lines


def send(port: int, path: Path) -> float:
    """Send the file; return how many seconds the answer took."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    began = time.perf_counter()
    with path.open("rb") as file:
        headers = {"Content-Type": "text/csv", "Content-Length": str(path.stat().st_size)}
        client.request("POST", "/v1/imports", file, headers)
        answer = client.getresponse()
        told = answer.read()
    client.close()
    assert answer.status == 202, told
    return time.perf_counter() - began


def brought_in(port: int) -> int:
    """Return which line the import has come to."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    client.request("GET", "/v1/jobs?limit=1")
    [job] = json.loads(client.getresponse().read())["jobs"]
    client.close()
    assert job["state"] == "running", job
    stage = job["stage"] or "line 0:"
    return int(stage.split()[1].rstrip(":"))


def stop_import(port: int) -> None:
    """Cancel it, and wait until its worker has seen that."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    client.request("POST", "/v1/jobs/1/cancel")
    job = json.loads(client.getresponse().read())
    while job["state"] == "running":
        client.request("GET", "/v1/jobs/1?wait=10")
        job = json.loads(client.getresponse().read())
    client.close()


def quiet(port: int, seconds: float) -> float:
    """Let it work alone; return lines/s."""
    time.sleep(seconds / 4)  # it begins
    first = brought_in(port)
    time.sleep(seconds * 3 / 4)
    return (brought_in(port) - first) / (seconds * 3 / 4)


def measure(folder: str, size_mib: int, seconds: float) -> dict[str, Any]:
    sheet, bench = Path(folder) / "sheet.csv", Ingest(folder)
    lines = write_sheet(sheet, size_mib * MIB)
    with gateway(folder) as (pid, port):
        bench.load(port, READINGS, CONNECTIONS, REQUESTS)  # warms up
        idle = [bench.load(port, READINGS, CONNECTIONS, REQUESTS) for _ in range(ROUNDS // 2)]
        before_mib = _rss_mib(pid)
        arriving = Memory(pid)
        upload_s = send(port, sheet)
        arriving.stop()
        sheet.unlink()
        importing = Memory(pid)
        alone_per_s = quiet(port, seconds / 4)
        began, busy, first = time.monotonic(), [], brought_in(port)
        while time.monotonic() - began < seconds:
            time.sleep(seconds / ROUNDS / 2)
            busy.append(bench.load(port, READINGS, CONNECTIONS, REQUESTS))
        took_s, reached = time.monotonic() - began, brought_in(port)
        importing.stop()
        stop_import(port)
        idle += [bench.load(port, READINGS, CONNECTIONS, REQUESTS) for _ in range(ROUNDS // 2)]
    half = len(importing.child) // 2
    found = {
        "file_mib": size_mib,
        "lines": lines,
        "upload_s": upload_s,
        "gateway_mib_before": before_mib,
        "gateway_mib_most_while_it_arrives": max(arriving.gateway),
        "gateway_mib_most_during_import": max(importing.gateway),
        "child_mib_most_in_first_half": max(importing.child[:half]),
        "child_mib_most_in_second_half": max(importing.child[half:]),
        "import_s": took_s + seconds / 4,
        "import_lines": reached,
        "import_lines_per_s_alone": alone_per_s,
        "import_lines_per_s_beside_boards": (reached - first) / took_s,
        "ingest_p99_ms_idle": median(one.p99_ms for one in idle),
        "ingest_p99_ms_busy": median(one.p99_ms for one in busy),
        "ingest_per_s_idle": median(one.requests_per_s for one in idle),
        "ingest_per_s_busy": median(one.requests_per_s for one in busy),
    }
    found["ingest_p99_ratio"] = found["ingest_p99_ms_busy"] / found["ingest_p99_ms_idle"]
    return {name: round(value, 2) for name, value in found.items()}


def holds(found: dict[str, Any]) -> bool:
    grown = found["gateway_mib_most_while_it_arrives"] - found["gateway_mib_before"]
    return bool(grown < MOST_GATEWAY_MIB and found["ingest_p99_ratio"] <= MOST_INGEST_RATIO)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.bench imports", description=__doc__)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--seconds", type=float, default=120.0, help="of the import")
    parser.add_argument("--folder", type=Path, default=Path(), help="on a disk, never on tmpfs")
    parser.add_argument("--json", action="store_true", help="one object on the last line")
    args = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=args.folder) as folder:
        found = measure(folder, args.mib, args.seconds)
    for name, value in found.items():
        print(f"{name:36} {value}")
    good = holds(found)
    print("the targets hold" if good else "the targets do NOT hold")
    if args.json:
        print(json.dumps(found))
    return 0 if good else 1
