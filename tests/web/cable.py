"""A cable with the test at its board's end: a pseudo-terminal that a gateway opens as a port."""

import asyncio
import json
import os
import re
import tty
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.web.house import Answer

GIVE_UP_S = 15
KNOCK = "knock"
FRAME = re.compile(rb"\x1eFP1 (\d+) ([0-9a-f]{8}) ([^\x1e\n]*)\n")


def framed(told: Any) -> bytes:
    payload = told if isinstance(told, bytes) else json.dumps(told).encode()
    return b"\x1eFP1 " + f"{len(payload)} {zlib.crc32(payload):08x} ".encode() + payload + b"\n"


class Cable:
    """One serial port. `path` names it for the gateway, whichever it is just now."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._master = self._slave = -1
        self._came = b""
        self.plug()

    def plug(self) -> None:
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        os.set_blocking(self._master, False)
        draft = self.path.with_name("draft")
        draft.symlink_to(os.ttyname(self._slave))
        draft.replace(self.path)

    def unplug(self) -> None:
        self.path.unlink(missing_ok=True)
        for end in (self._slave, self._master):
            with suppress(OSError):
                os.close(end)
        self._came = b""

    async def write(self, data: bytes) -> None:
        while data:
            with suppress(BlockingIOError):
                data = data[os.write(self._master, data[:2048]) :]
            await asyncio.sleep(0)

    async def answer(self) -> Answer:
        """Return the next answer that is none to a knock, as one over HTTP would look."""
        while (answer := await self._any_answer()).headers.get("id") == KNOCK:
            pass
        return answer

    async def opened(self) -> None:
        """Knock until the port is open: what is sent before is lost, as on any serial line."""
        async with asyncio.timeout(GIVE_UP_S):
            while True:
                await self.write(framed({"body": "", "id": KNOCK}))
                try:
                    async with asyncio.timeout(0.2):
                        assert (await self._any_answer()).headers["id"] == KNOCK
                        return
                except TimeoutError:
                    pass

    async def _any_answer(self) -> Answer:
        async with asyncio.timeout(GIVE_UP_S):
            while not (found := FRAME.search(self._came)):
                await self._wait()
                self._came += os.read(self._master, 65536)
        self._came = self._came[found.end() :]
        assert len(found[3]) == int(found[1])
        assert zlib.crc32(found[3]) == int(found[2], 16)
        told = json.loads(found[3])
        headers = {
            "Fieldpost-Signature": told.pop("signature"),
            "Retry-After": told.pop("retry_after"),
            "id": told.pop("id", None),
        }
        headers = {name: value for name, value in headers.items() if value is not None}
        body = told.pop("body").encode()
        status = told.pop("status")
        assert not told, "an answer says no more"
        return Answer(status, headers, body)

    async def ask(self, told: Any) -> Answer:
        await self.write(framed(told))
        return await self.answer()

    async def _wait(self) -> None:
        readable = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(self._master, readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(self._master)
