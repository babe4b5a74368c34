"""`python -m tools.flash_campaign`: empty boards, flashed again and again, and cut off in between.

Each board is a virtual one with an empty flash. A first `flash` is killed (SIGKILL) right after
one of its steps, or at a moment drawn at random; then the same command runs to its end. Exit 0
only if each second run stored a reading and stayed under the limit, and a third copied nothing.
"""

import argparse
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

LIMIT_S = 30.0
PATIENCE_S = 60.0
LONGEST_S = 4.0  # a whole first run takes about as long
STEPS = (
    "interrupt the board", "read what is on it", "Wi-Fi", "find the gateway", "register the board",
    "compile", "compare", "copy", "rename", "reset", "first reading",
)  # fmt: skip


class Failed(Exception):
    """What does not hold; the message says it."""


class Bench:
    """A gateway, and commands that run beside it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._gateway = _start(
            "gateway", "serve", "--port", "0", "--db", str(folder / "fieldpost.db")
        )
        self.address = _wait_for(self._gateway, r"listening on (http://\S+?)/ ")

    def close(self) -> None:
        _end(self._gateway)

    def board(self, number: int) -> tuple[subprocess.Popen[str], str]:
        """Start a board with an empty flash; return it and its port."""
        flash, port = self._folder / f"{number}.img", self._folder / f"{number}.tty"
        board = _start("tools.virtual_board", "--bare", "--flash", str(flash), "--pty", str(port))
        _wait_for(board, r"virtual_board: on (\S+)")
        return board, str(port)

    def flash(self, port: str) -> subprocess.Popen[str]:
        where = ("--port", port, "--gateway", self.address, "--data", str(self._folder))
        return _start("tools.flash", *where)


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    chance = random.Random(args.seed)
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="fieldpost-flash-") as folder:
        bench = Bench(Path(folder))
        try:
            for number in range(args.runs):
                # After each step once, and then at any moment.
                cut = STEPS[number] if number < len(STEPS) else chance.uniform(0.2, LONGEST_S)
                results.append(_run(bench, number, cut))
                print(f"flash_campaign: {number + 1} of {args.runs}: {_told(results[-1])}")
        finally:
            bench.close()
    return _verdict(args, results)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.flash_campaign", description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="one object on the last line")
    return parser


def _run(bench: Bench, number: int, cut: str | float) -> dict[str, Any]:
    board, port = bench.board(number)
    result: dict[str, Any] = {"killed_after": cut, "trouble": None, "seconds": None}
    try:
        _cut_off(bench.flash(port), cut)
        began = time.monotonic()
        _finish(bench.flash(port), r"first reading of \S+ stored after")
        result["seconds"] = round(time.monotonic() - began, 1)
        _finish(bench.flash(port), r"nothing had to be copied")
    except Failed as failed:
        result["trouble"] = str(failed)
    finally:
        _end(board)
    return result


def _cut_off(process: subprocess.Popen[str], cut: str | float) -> None:
    """Kill it after a step, or after some seconds."""
    try:
        if isinstance(cut, str):
            _wait_for(process, rf"flash: ok  {re.escape(cut)}")
        else:
            time.sleep(cut)
    finally:
        _end(process)


def _told(result: dict[str, Any]) -> str:
    outcome = result["trouble"] or f"stored, in {result['seconds']} s"
    cut = result["killed_after"]
    when = f"`{cut}`" if isinstance(cut, str) else f"{cut:.2f} s"
    return f"killed after {when}, then {outcome}"


def _verdict(args: argparse.Namespace, results: list[dict[str, Any]]) -> int:
    failed = [one for one in results if one["trouble"] or one["seconds"] > LIMIT_S]
    slowest = max((one["seconds"] or 0.0 for one in results), default=0.0)
    holds = bool(results) and not failed
    print(
        f"flash_campaign: {len(results) - len(failed)} of {len(results)} flashed after a SIGKILL,"
        f" the slowest in {slowest} s (limit {LIMIT_S:g} s)"
    )
    if args.json:
        print(json.dumps({"holds": holds, "seed": args.seed, "runs": results}))
    return 0 if holds else 1


def _start(module: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _wait_for(process: subprocess.Popen[str], pattern: str) -> str:
    """Return what the pattern finds in a line that the process says. Raises Failed."""
    assert process.stdout is not None
    give_up_at, said = time.monotonic() + PATIENCE_S, ""
    for line in process.stdout:
        said += line
        if found := re.search(pattern, line):
            return found[found.lastindex or 0]
        if time.monotonic() > give_up_at:
            break
    raise Failed(f"it never said {pattern!r}, but:\n{said}")


def _finish(process: subprocess.Popen[str], pattern: str) -> None:
    try:
        _wait_for(process, pattern)
        assert process.stdout is not None
        rest = process.stdout.read()
        if process.wait(PATIENCE_S):
            raise Failed(f"it ended with {process.returncode}:\n{rest}")
    finally:
        _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


if __name__ == "__main__":
    sys.exit(main())
