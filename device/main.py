# The table of contents: builds the parts and runs them. A board starts here.

import asyncio
import gc
import os
import random
import sys
import time

import board
import crash
import safe
from board import tell

_COLLECT_BYTES = 8192  # often and early: a heap that is never full does not fragment


def start():
    report = crash.Report("/crash.txt")
    starts = safe.Starts(board.rtc_memory, board.reset_cause() == "power")
    try:
        gc.threshold(_COLLECT_BYTES)
        random.seed(board.entropy())
        asyncio.run(Firmware(report, starts).run())
    except KeyboardInterrupt:
        starts.calm()
        board.rest()
        tell("log", "stopped; the REPL is yours")
    except Exception as err:
        text = crash.describe(err)
        report.write(text)
        tell("log", text)
        time.sleep(1)  # long enough for Ctrl-C, whatever goes wrong at every start
        board.reset()


class Firmware:
    def __init__(self, report, starts):
        from clock import RTC, Clock
        from led import Led
        from lost import Lost
        from watch import Watch
        from wifi import Wifi, station

        self.report = report
        self.starts = starts
        self.tell = tell
        self.config = self._config()
        if self.config["cable"]:
            from cable import Hush

            self.hush = Hush(tell, board.traced)
            self.tell = self.hush.tell
        led, network = self.config["led"], self.config["wifi"]
        self.device = self.config["device"] or board.device_id()
        self.clock = Clock(time.ticks_ms, time.ticks_diff, board.set_rtc)
        self.clock.learn(board.rtc_ms(), RTC)
        self.watch = Watch(self.clock.up_ms, asyncio.sleep_ms)
        self.led = Led(board.led(led["pin"], led["inverted"]), asyncio.sleep_ms)
        self.wifi = Wifi(
            station(),
            network["ssid"],
            network["password"],
            random.random,
            self.watch,
            self.led,
            self.tell,
        )
        self.lost = Lost()
        self.news = asyncio.Event()
        self.ids = self._ids()
        self.outbox = self._outbox()

    async def run(self):
        loops = [self.led.run(), self._uplink().run()]
        if self._needs_wifi():
            loops.append(self.wifi.run())
        if self.ids and not self.starts.safe:
            loops.append(self._sampler().run())
        if self.config["ntp"]:
            loops.append(self._ntp().run())
        loops.append(self.watch.run(board.watchdog, self.config["watchdog_ms"], self._hung))
        loops.append(self.starts.run(self.watch, board.reset))
        self._show()
        await asyncio.gather(*loops)

    # What it stands on.

    def _config(self):
        import settings

        config, problems = settings.load()
        sys.modules.pop("settings", None)  # it is not needed again, and its place is
        for problem in problems:
            self._complain(problem)
        return config

    def _ids(self):
        from boots import Ids, next_boot

        try:
            return Ids(self.device, next_boot("/boot", os.urandom))
        except OSError as err:
            # Without a durable boot name no id may be made: the board only talks.
            self._complain("boot file: %r" % err)
            return None

    def _outbox(self):
        from outbox import Outbox

        try:
            return Outbox(
                "/outbox.d",  # not /outbox: MicroPython would take the folder for the module
                max_bytes=self.config["outbox_bytes"],
                max_count=self.config["outbox_count"],
                on_drop=self._dropped,
            )
        except Exception as err:
            if not self.starts.safe:
                raise
            self._complain("outbox: %r" % err)
            return safe.NoOutbox()

    # The loops.

    def _uplink(self):
        from envelope import Envelope
        from health import Health
        from uplink import Uplink

        health = Health(
            board.reset_cause(),
            self.config["period_ms"],
            self.outbox,
            self.clock.up_ms,
            gc.mem_free,
            board.fs_free_bytes,
            self.wifi.rssi,
        )
        boot = self.ids.boot if self.ids else None
        return Uplink(
            self.outbox,
            self._line(),
            Envelope(self.device, boot, self.clock, self.lost, self.report, health.report),
            self.clock,
            random.random,
            self.watch,
            self.led,
            self.news,
            self.tell,
        )

    def _needs_wifi(self):
        # A board that is on a cable only joins no network unless it is told which.
        on_air = self.config["gateway"] or self.config["ntp"] or not self.config["cable"]
        return on_air or self.config["wifi"]["ssid"]

    def _line(self):
        from line import Line

        if not self.config["cable"]:
            return Line(self._post(), self.wifi, self.led)
        from cable import Cable, Console
        from ways import Way, Ways

        console = Console(sys.stdin, sys.stdout)
        ways = [Way(lambda: True, Cable(self._seal(), os.urandom, console, self.hush).exchange)]
        post = self.config["gateway"] and self._post()
        if post:
            ways.append(Way(self.wifi.up, post.exchange))
        both = Ways(ways)
        return Line(both, both, self.led)

    def _post(self):
        from post import Post

        if self.config["gateway"] is None:
            self._complain("config: no gateway; readings wait in the outbox")
            return None
        try:
            connect = self._connect()
        except (OSError, ValueError) as err:
            self._complain("config: tls_cert can not be used; readings wait: %r" % err)
            return None
        return Post(self.config["gateway"], self._seal(), os.urandom, connect)

    def _connect(self):
        if not self.config["gateway"].startswith("https:"):
            return None
        from pinned import Pinned

        return Pinned(self.config["gateway"], self.config["tls_cert"]).connect

    def _seal(self):
        from binascii import unhexlify

        from seal import Seal

        key = self.config["key"]
        return Seal(self.device, unhexlify(key) if key else None)

    def _sampler(self):
        import sensors
        from sampler import Sampler

        built = sensors.build(self.config["sensors"], self._complain)
        sys.modules.pop("sensors", None)
        return Sampler(
            built,
            self.outbox,
            self.ids,
            self.clock,
            self.lost,
            self.watch,
            self.news,
            self.tell,
            self.config["period_ms"],
        )

    def _ntp(self):
        from ntp import Ntp

        return Ntp(self.config["ntp"], board.ntp_ms, self.clock, self.wifi, self.watch, self.tell)

    # What it says.

    def _show(self):
        gc.collect()
        self.led.set("safe", self.starts.safe)
        self.led.set("config", self.report.notes and not self.starts.safe)
        if self.starts.safe:
            self._complain("safe mode: %d boots in a row ended too soon" % self.starts.ended_soon)
        boot = self.ids.boot if self.ids else "none"
        self.tell("log", "%s boot %s, %d readings waiting" % (self.device, boot, len(self.outbox)))

    def _complain(self, problem):
        self.tell("log", problem)
        self.report.note(problem)

    def _hung(self, who):
        text = "watchdog: %s did not come back" % who
        self.tell("log", text)
        self.report.write(text)

    def _dropped(self, key, record):
        import wire

        try:
            reading_id = wire.reading_id(record)
        except wire.Unreadable:
            return
        self.tell("dropped", reading_id)
        self.lost.add(reading_id)


start()
