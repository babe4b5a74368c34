"""A steady load: deliveries of ten readings at even instants, whatever the answers take.

`python -m tools.bench.trickle --port P --boot B --per-second 100 --seconds 60`. When it ends, or is
terminated, it prints one JSON object: {"per_second", "p99_ms"}.
"""

import argparse
import asyncio
import json
import signal
import time
from statistics import quantiles

from tools.bench.load import Connection, requests

DEVICES = 10
READINGS = 10


async def run(args: argparse.Namespace) -> dict[str, float]:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    each = int(args.per_second * args.seconds / DEVICES)
    pieces = [list(requests(f"bench-{n:04d}", args.boot, each, READINGS)) for n in range(DEVICES)]
    taken_ms: list[float] = []
    began = time.perf_counter()
    for number in range(each * DEVICES):
        due = began + number / args.per_second
        try:
            await asyncio.wait_for(stop.wait(), max(due - time.perf_counter(), 0.0001))
            break
        except TimeoutError:
            taken_ms += await _deliver(args.port, pieces[number % DEVICES][number // DEVICES])
    seconds = time.perf_counter() - began
    cuts = quantiles(taken_ms, n=100) if len(taken_ms) > 1 else [0.0] * 99
    return {"per_second": len(taken_ms) / seconds, "p99_ms": cuts[98]}


async def _deliver(port: int, request: bytes) -> list[float]:
    loop = asyncio.get_running_loop()
    transport, connection = await loop.create_connection(
        lambda: Connection([request], READINGS), "127.0.0.1", port
    )
    connection.send()
    try:
        return await connection.done
    finally:
        transport.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.bench.trickle")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--boot", required=True)
    parser.add_argument("--per-second", type=float, default=100.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    print(json.dumps(asyncio.run(run(parser.parse_args()))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
