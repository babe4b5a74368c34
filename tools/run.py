"""`make run`: a gateway and one virtual board, until Ctrl-C or until one of them ends by itself.

Everything is kept in the data folder, so the next run goes on where this one stopped.
"""

import argparse
import asyncio
import json
import re
import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from gateway import listener, registry, stopping
from gateway.config import Config
from gateway.errors import Misconfigured
from tools.children import Child, Children
from tools.lan import addresses

BOARD = "virtual-board"
TRACE_LOOK_S = 0.2
LOG_TAIL_LINES = 10

_LISTENING = re.compile(r"listening on (\w+)://(\S+):(\d+)/")
_EVERYWHERE = {"0.0.0.0", "[::]"}


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    flags = {"host": args.host, "port": args.port, "db": str(args.data / "fieldpost.db")}
    try:
        return asyncio.run(run(Config.load(flags, environ={}), args.data))
    except Misconfigured as error:
        print(f"run: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.run", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1", help="0.0.0.0 for boards in the network")
    parser.add_argument("--port", default="8080", help="0 takes any free one")
    parser.add_argument("--data", default=Path("data"), type=Path, help="folder for everything")
    return parser


async def run(config: Config, data: Path) -> int:
    """Run both until a signal; return 0, or 1 when one of them ended by itself.

    Raises:
        Misconfigured: it can not start like this.
    """
    stop = stopping.on_signals()
    listener.bind(config.host, config.port).close()  # a port in use is told before all else
    key = await registry.add(config, BOARD)
    async with Children() as children:
        scene = asyncio.create_task(_play(children, config, data, key))
        stopped = asyncio.create_task(stop.wait())
        await asyncio.wait({scene, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not stopped.done():
            stopped.cancel()
            _tell(f"{scene.result()}; stopping")
            return 1
        scene.cancel()
        _tell("stopping")
    return 0


async def _play(children: Children, config: Config, data: Path, key: str) -> str:
    """Start both and tell what happens until one ends; return how it did."""
    gateway = await _start_gateway(children, config)
    address = await _address(gateway)
    if address is None:
        return _how_it_ended(await children.first_to_end())
    with (data / "board.log").open("wb") as log, (data / "board.trace").open("wb+") as trace:
        await _start_board(children, data, address, key, log)
        _welcome(address, config)
        tellers = [asyncio.create_task(_echo(gateway)), asyncio.create_task(_report(trace))]
        try:
            ended = await children.first_to_end()
        finally:
            for teller in tellers:
                teller.cancel()
    return _how_it_ended(ended) + (_tail(data / "board.log") if ended is not gateway else "")


async def _start_gateway(children: Children, config: Config) -> Child:
    return await children.start(
        "the gateway",
        *("-m", "gateway", "serve", "--db", config.db),
        *("--host", config.host, "--port", config.port),
        stdout=asyncio.subprocess.PIPE,
    )


async def _start_board(
    children: Children, data: Path, address: str, key: str, log: BinaryIO
) -> Child:
    return await children.start(
        "the virtual board",
        *("-m", "tools.virtual_board", "--device", BOARD, "--gateway", address, "--key", key),
        *("--flash", data / "board.img", "--trace", data / "board.trace"),
        stdout=log,
        stderr=log,
    )


async def _address(gateway: Child) -> str | None:
    """Echo what the gateway prints until it says where it listens; None if it ends before."""
    assert gateway.process.stdout is not None
    async for line in gateway.process.stdout:
        print(line.decode().rstrip(), flush=True)
        if found := _LISTENING.search(line.decode()):
            scheme, host, port = found.groups()
            return f"{scheme}://{'127.0.0.1' if host in _EVERYWHERE else host}:{port}"
    return None


async def _echo(gateway: Child) -> None:
    assert gateway.process.stdout is not None
    async for line in gateway.process.stdout:
        print(line.decode().rstrip(), flush=True)


async def _report(trace: BinaryIO) -> None:
    """Tell what the board does, as its trace grows."""
    pending = b""
    while True:
        *lines, pending = (pending + trace.read()).split(b"\n")
        for line in lines:
            if told := _in_words(json.loads(line)):
                _tell(told)
        await asyncio.sleep(TRACE_LOOK_S)


def _in_words(event: dict[str, Any]) -> str | None:
    """Return what a person wants to know of it, None for what they do not."""
    match event:
        case {"acked": [only]}:
            return f"1 acknowledged: {only}"
        case {"acked": [first, *_, last] as ids}:
            return f"{len(ids)} acknowledged: {first} to {last}"
        case {"wait_ms": wait_ms, "failures": failures} if failures:
            return f"not acknowledged; the board tries again in {wait_ms / 1000:.1f} s"
        case {"reset": cause} if cause != "power":
            return f"the board restarted ({cause}); its log is board.log, in the data folder"
    return None


def _welcome(address: str, config: Config) -> None:
    _tell(f"a virtual board sends readings; watch them at {address}/status (Ctrl-C stops)")
    port = address.rpartition(":")[2]
    again = f"login --db {config.db} --port {port}"
    _tell(f"the link above logs a browser in, once; another: .venv/bin/python -m gateway {again}")
    if config.host in {"0.0.0.0", "::"}:
        for lan in addresses():
            _tell(f"real boards reach this gateway at http://{lan}:{port}")
        _tell(f"each needs a key: .venv/bin/python -m gateway devices add NAME --db {config.db}")


def _how_it_ended(child: Child) -> str:
    return f"{child.name} ended by itself (exit code {child.process.returncode})"


def _tail(log: Path) -> str:
    with log.open(encoding="utf-8", errors="replace") as lines:
        last = deque(lines, maxlen=LOG_TAIL_LINES)
    return f"; the board's last lines, from {log}:\n{''.join(last)}" if last else ""


def _tell(text: str) -> None:
    print(f"run: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
