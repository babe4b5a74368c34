"""The load: keep-alive connections that each send the next batch when the last was answered.

Run as a process of its own, so that it takes nothing from the server's interpreter:
`python -m tools.bench.load --port P --connections 64 --requests 100 --readings 1 --boot HEX`.
Prints one JSON object: {"seconds", "requests", "readings", "latencies_ms"}.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Iterator

READING = '{"id":"%s-%s-%d","sensor":"dht22.temperature","value":%d.5,"unit":"Cel","at_ms":%d}'


def requests(device: str, boot: str, count: int, readings: int) -> Iterator[bytes]:
    """Yield whole HTTP requests, the readings numbered from 1 without a hole."""
    now_ms = time.time_ns() // 1_000_000
    for seq in range(1, count + 1):
        numbers = range((seq - 1) * readings + 1, seq * readings + 1)
        items = ",".join(READING % (device, boot, n, n % 40, now_ms) for n in numbers)
        body = (
            f'{{"device":"{device}","boot":"{boot}","seq":{seq},"up_ms":{seq * 1000},'
            f'"sent_ms":{now_ms},"readings":[{items}]}}'
        )
        yield (
            "POST /v1/readings HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        ).encode()


class Connection(asyncio.Protocol):
    """Sends its requests one after the other; `done` gets the time of each in ms."""

    def __init__(self, pending: list[bytes], readings: int) -> None:
        self._pending = pending[::-1]
        self._expected = b'"stored":%d,' % readings
        self._received = b""
        self._sent_at = 0.0
        self._latencies_ms: list[float] = []
        self.done: asyncio.Future[list[float]] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def send(self) -> None:
        if not self._pending:
            self.done.set_result(self._latencies_ms)
            return
        self._sent_at = time.perf_counter()
        self._transport.write(self._pending.pop())

    def data_received(self, data: bytes) -> None:
        self._received += data
        _head, found, body = self._received.partition(b"\r\n\r\n")
        if not found or not body.endswith(b"}"):
            return
        self._latencies_ms.append((time.perf_counter() - self._sent_at) * 1000)
        if self._expected not in body:
            self.done.set_exception(RuntimeError(self._received.decode()))
            return
        self._received = b""
        self.send()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(ConnectionError("the server closed the connection"))


async def run(args: argparse.Namespace) -> dict[str, object]:
    loop = asyncio.get_running_loop()
    connections = []
    for number in range(args.connections):
        device = f"bench-{number:04d}"
        pending = list(requests(device, args.boot, args.requests, args.readings))
        _, connection = await loop.create_connection(
            lambda pending=pending: Connection(pending, args.readings),  # type: ignore[misc]
            "127.0.0.1",
            args.port,
        )
        connections.append(connection)
    began = time.perf_counter()
    for connection in connections:
        connection.send()
    latencies = await asyncio.gather(*(connection.done for connection in connections))
    seconds = time.perf_counter() - began
    count = args.connections * args.requests
    return {
        "seconds": seconds,
        "requests": count,
        "readings": count * args.readings,
        "latencies_ms": [one for each in latencies for one in each],
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.bench.load")
    for name, default in (("port", None), ("connections", 64), ("requests", 100), ("readings", 1)):
        parser.add_argument(f"--{name}", type=int, default=default, required=default is None)
    parser.add_argument("--boot", required=True)
    print(json.dumps(asyncio.run(run(parser.parse_args()))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
