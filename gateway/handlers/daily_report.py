"""`daily_report`: a day of every device and sensor, as a page with charts and as a table."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from gateway import mail
from gateway.handlers.place import Place
from gateway.handlers.report import figures, files, page
from gateway.handlers.report.day import Day
from gateway.handlers.report.figures import Series
from gateway.handlers.report.page import DeviceDay
from gateway.kinds import Context, Kind
from gateway.store import clock, reports
from gateway.store.jobs import Asked, Limits, Queue
from gateway.store.reports import Device, Window

NAME = "daily_report"
FOLDER = "reports"
LINK = "/v1/reports/"
_MAIL = "send_email"
_TIMEOUT_S = 3600.0
_LIMITS = Limits(deadline_ms=6 * 3_600_000, concurrency=2)

Calibration = Mapping[str, Mapping[str, Mapping[str, float]]]


class Args(Struct, forbid_unknown_fields=True):
    """Which day, and who is sent it."""

    date: Annotated[str, Meta(description="a day that exists, as YYYY-MM-DD")]
    time_zone: Annotated[str, Meta(description="an IANA name, such as Europe/Lisbon")] = "UTC"
    mail_to: Annotated[list[mail.Address], Meta(max_length=50)] = []

    def __post_init__(self) -> None:
        self.day()

    def day(self) -> Day:
        return Day.of(self.date, self.time_zone)


def kind(settings: dict[str, Any]) -> Kind:
    place = Place(settings, FOLDER)

    async def report(context: Context, args: Args) -> str | None:
        folder = place.folder()
        if args.mail_to:
            mail.Server.of(settings)  # whoever can't be sent it hears so at once
        place.require_room()
        return await _Report(context, args.day(), folder, settings.get("calibration") or {}).make(
            args.mail_to
        )

    return Kind(NAME, report, Args, _LIMITS, _TIMEOUT_S, heavy=True)


class _Report:
    def __init__(self, context: Context, day: Day, folder: Path, calibration: Calibration) -> None:
        self._context = context
        self._day = day
        self._folder = folder
        self._calibration = calibration
        self._charts = 0
        self._left_out = 0
        self._now_ms = time.time_ns() // 1_000_000

    async def make(self, mail_to: list[str]) -> str:
        """Write both files, ask for the mail; return the link to the page."""
        devices = [device async for device in self._devices()]
        self._context.progress(0.9, "writing the files")
        name = f"daily-report-{self._day.name}"
        await asyncio.to_thread(self._write, name, devices)
        if mail_to:
            self._context.progress(0.97, "asking for the mail")
            await self._ask_for_mail(name, devices, mail_to)
        return f"{LINK}{name}.html"

    async def _devices(self) -> AsyncIterator[DeviceDay]:
        database, day = self._context.database, self._day
        window = await reports.window(database, day.from_ms, day.to_ms)
        total = await reports.count_devices(database)
        seen = 0
        async for device in reports.devices(database, window):
            self._context.progress(0.9 * seen / max(total, seen + 1), f"reading {device.name}")
            seen += 1
            series = await self._series(window, device)
            if device.is_known or any(each.at_ms for each in series):
                lines = await asyncio.to_thread(self._lines, series)
                yield DeviceDay(device.name, device.missing, lines)

    async def _series(self, window: Window, device: Device) -> list[Series]:
        by_sensor: dict[int, Series] = {}
        factors: dict[int, tuple[float, float]] = {}
        for id_, name in device.sensors.items():
            given = self._calibration.get(device.name, {}).get(name)
            by_sensor[id_] = Series(device.name, name, is_calibrated=given is not None)
            factors[id_] = (given or {}).get("scale", 1.0), (given or {}).get("offset", 0.0)
        async for row in reports.readings(self._context.database, window, device):
            value, (scale, offset) = row["value"], factors[row["sensor_id"]]
            if value is not None:
                value = figures.calibrated(value, scale, offset)
            by_sensor[row["sensor_id"]].add(
                row["at_ms"], value, row["text"], row["error"], row["unit"]
            )
        return list(by_sensor.values())

    def _lines(self, series: list[Series]) -> list[page.Line]:
        lines = []
        for each in series:
            has_chart = self._charts < page.MOST_CHARTS
            lines.append(page.line(each, self._day, self._now_ms, has_chart=has_chart))
            self._charts += lines[-1].chart is not None
            self._left_out += bool(each.numbers) and not has_chart
        return lines

    def _write(self, name: str, devices: list[DeviceDay]) -> None:
        # The page last: whoever finds it finds the table that it names.
        files.write_whole(self._folder, f"{name}.csv", page.table(self._day, devices))
        text = page.html(self._day, devices, f"{name}.csv", self._now_ms, self._left_out)
        files.write_whole(self._folder, f"{name}.html", text)

    async def _ask_for_mail(self, name: str, devices: list[DeviceDay], mail_to: list[str]) -> None:
        """Ask for it once, however often this job is tried: the key is the job's."""
        lines = [line for device in devices for line in device.lines]
        told = {
            "to": mail_to,
            "subject": f"Fieldpost: report of {self._day.date} ({self._day.zone})",
            "text": f"{sum(line.figures.count for line in lines)} values of {len(lines)} sensors of"
            f" {len(devices)} devices.\nThe report is at {LINK}{name}.html on the gateway.\n",
            "key": f"daily-report-{self._context.job_id}",
        }
        asked = Asked(
            _MAIL, msgspec.json.encode(told).decode(), request_id=self._context.request_id,
            caller=NAME, idempotency_key=f"job-{self._context.job_id}", fingerprint=b"mail",
        )  # fmt: skip
        now_ms = time.time_ns() // 1_000_000
        await self._context.database.write(
            lambda c: Queue(clock=clock.here).enqueue(c, asked, now_ms)
        )
