# Three clocks: how long the answer takes, how long a look, and how long the work.
#
# Asks the gateway for yesterday's report, looks how it gets on until it is done, and prints the
# three times, in a loop. The light is on during each exchange and blinks fast at the end of a
# round. It stands on the firmware's files and its config.json, so the board needs the firmware
# first; and the device must be let ask: `python -m gateway devices add NAME --may-ask`.
#
#     mpremote run device/examples/three_clocks.py             once, until Ctrl-C
#     mpremote cp device/examples/three_clocks.py :main.py     instead of the firmware's main.py

import asyncio
import binascii
import json
import os
import random
import time

import board
import settings
from led import Led
from post import Post
from seal import Seal, sha256_hex
from watch import Watch
from wifi import Wifi, station

_ROUND_MS = 10_000
_LOOK_MS = 100
_BLINKS = 3
_BLINK_MS = 100
_OVER = ("done", "failed", "discarded")


class Text:
    # A body, as Post sends one.
    def __init__(self, text):
        self._data = text.encode()
        self.sha256_hex = sha256_hex(self._data)

    def __len__(self):
        return len(self._data)

    def pieces(self):
        return (self._data,)


class Asker:
    # Asks for a job and looks at it. lit: an exchange with the light on.
    def __init__(self, config, device, lit):
        key = config["key"]
        self._seal = Seal(device, binascii.unhexlify(key) if key else None)
        self._config = config
        self._lit = lit

    async def ask(self, kind, args):
        """(the job as answered, ms that took). Raises OSError."""
        return await self._exchange("POST", "/v1/jobs", json.dumps({"kind": kind, "args": args}))

    async def look(self, job_id):
        """(the job as it is now, ms that took). Raises OSError."""
        return await self._exchange("GET", "/v1/jobs/%d" % job_id, "")

    async def _exchange(self, method, resource, text):
        post = Post(
            self._config["gateway"], self._seal, os.urandom, self._connect(), method, resource
        )
        began = time.ticks_ms()
        took = []

        async def timed(body):
            answer = await post.exchange(body)
            took.append(time.ticks_diff(time.ticks_ms(), began))
            return answer

        answer = await self._lit(timed, Text(text))
        if not answer.counts or answer.status not in (200, 202):
            raise OSError("no job: status %d" % answer.status)
        return json.loads(answer.body), took[0]

    def _connect(self):
        if not self._config["gateway"].startswith("https:"):
            return None
        from pinned import Pinned

        return Pinned(self._config["gateway"], self._config["tls_cert"]).connect


def yesterday():
    # Of a board that does not know the time it is a day long gone: an empty report, but one.
    return "%04d-%02d-%02d" % tuple(time.gmtime(int(time.time()) - 86_400)[:3])


async def turn(asker):
    """Ask, look until it is over, and print the three times."""
    job, answer_ms = await asker.ask("daily_report", {"date": yesterday()})
    print("job %d: received" % job["id"])
    looks_ms = []
    while job["state"] not in _OVER:
        await asyncio.sleep_ms(_LOOK_MS)
        job, look_ms = await asker.look(job["id"])
        looks_ms.append(look_ms)
    if job["state"] != "done":
        print("job %d: %s, %s" % (job["id"], job["state"], job["error"]))
        return
    work_ms = job["finished_ms"] - job["started_ms"]
    look_ms = sorted(looks_ms)[len(looks_ms) // 2]
    print("answer %d ms, look-up %d ms, work %d ms" % (answer_ms, look_ms, work_ms))
    print("looks %d" % len(looks_ms))


async def blink(put):
    for _ in range(_BLINKS):
        put(1)
        await asyncio.sleep_ms(_BLINK_MS)
        put(0)
        await asyncio.sleep_ms(_BLINK_MS)


async def main():
    config, problems = settings.load()
    for problem in problems:
        print(problem)
    put = board.led(config["led"]["pin"], config["led"]["inverted"])
    led = Led(put, asyncio.sleep_ms)
    watch = Watch(time.ticks_ms, asyncio.sleep_ms)
    network = config["wifi"]
    wifi = Wifi(
        station(), network["ssid"], network["password"], random.random, watch, led, board.tell
    )
    joining = asyncio.create_task(wifi.run())  # kept: a task that nobody holds may be collected
    asker = Asker(config, config["device"] or board.device_id(), led.lit)
    while not joining.done():
        if wifi.up():
            try:
                await turn(asker)
                await blink(put)
                print("blinked %d times" % _BLINKS)
            except OSError as err:
                print("not now: %r" % err)
        await asyncio.sleep_ms(_ROUND_MS if wifi.up() else _LOOK_MS)
    await joining


if __name__ == "__main__":
    asyncio.run(main())
