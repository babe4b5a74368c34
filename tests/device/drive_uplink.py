# Runs the firmware's uplink over real sockets, on whichever interpreter runs this file:
#   drive_uplink.py DEVICE_DIR FOLDER '{"url", "key", "readings", "attempts", "deadline_s"}'
# Nothing sleeps between the attempts. What happened is printed as one JSON object.

import asyncio
import json
import os
import sys
from binascii import unhexlify


class Dark:
    def set(self, condition, holds):
        pass


class Quiet:
    text = None

    def forget(self, sent):
        pass


class Line:
    def __init__(self, post):
        self.exchange = post.exchange


class Happened:
    def __init__(self):
        self.waits = []
        self.log = []
        self.told = []
        self.tell = self.note

    def chat(self, event, value):
        self.note(event, value)
        if event == "log":
            print(value)  # a board's log comes over the same line as its frames

    def note(self, event, value):
        if event == "log":
            self.log.append(value)
        else:
            self.told.append([event, value])


async def _cpython_connect(address):
    import drive_on_cpython

    return await drive_on_cpython.connect(address)


def _sockets():
    # Every socket of this process, for a system that shows them.
    try:
        fds = os.listdir("/proc/self/fd")
    except OSError:
        return 0
    return len(fds)


def _uplink(folder, orders, happened):
    from clock import Clock
    from envelope import Envelope
    from lost import Lost
    from outbox import Outbox
    from post import Post
    from seal import Seal
    from uplink import Uplink
    from watch import Watch
    from wire import record

    clock = Clock(lambda: 0, lambda a, b: a - b)
    key = unhexlify(orders["key"]) if orders["key"] else None
    on_cpython = sys.implementation.name == "cpython"
    if orders["url"] == "cable:":
        from cable import Cable, Console, Hush

        hush = Hush(happened.chat, True)
        post = Cable(Seal("d", key), os.urandom, Console(sys.stdin, sys.stdout), hush)
        happened.tell = hush.tell
    else:
        connect = _cpython_connect if on_cpython else None
        if orders["url"].startswith("https:"):
            from pinned import Pinned

            connect = Pinned(orders["url"], orders["tls_cert"]).connect
        post = Post(orders["url"], Seal("d", key), os.urandom, connect)
    post.deadline_s = orders["deadline_s"]
    outbox = Outbox(folder + "/outbox", max_bytes=1 << 20, max_count=1000, free_blocks=0)
    for n in range(1, orders["readings"] + 1):
        outbox.put(record(f"d-7f3a17c212-{n}", "s", n, "Cel", 1764529200000))
    for text in orders.get("records", ()):  # as they stand, poison and all
        outbox.put(unhexlify(text))
    envelope = Envelope("d", "7f3a17c212", clock, Lost(), Quiet(), dict)
    watch = Watch(clock.up_ms, None)
    uplink = Uplink(
        outbox, Line(post), envelope, clock, lambda: 0.0, watch, Dark(), None, happened.tell
    )
    if orders["readings"] or "records" in orders:
        uplink._beat_due_ms = 1 << 60  # readings only
    else:
        uplink.heartbeat_ms = 0  # heartbeats only
    return uplink, outbox


async def _drive(uplink, outbox, attempts, happened):
    for _ in range(attempts):
        if happened.told and not len(outbox):
            break
        happened.waits.append(await uplink.run_once())


def main(device_dir, folder, orders):
    sys.path.insert(0, device_dir)
    if orders.startswith("/"):  # MicroPython takes no argument longer than 255 bytes
        with open(orders) as file:
            orders = file.read()
    orders = json.loads(orders)
    happened = Happened()
    uplink, outbox = _uplink(folder, orders, happened)
    before = _sockets()
    asyncio.run(_drive(uplink, outbox, orders["attempts"], happened))
    print(
        json.dumps(
            {
                "waits": happened.waits,
                "told": happened.told,
                "log": happened.log,
                "left": len(outbox),
                "sockets_left": _sockets() - before,
            }
        )
    )


main(*sys.argv[1:])
