"""A poison value costs only itself: the real uplink, the real gateway, over real sockets.

Each kind of poison waits in the board's outbox among good readings. Whatever the gateway says of
the batch, the outbox drains to zero and every good reading is stored.
"""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from tests.web.house import House

HERE = Path(__file__).resolve().parents[1] / "device"
DEVICE = HERE.parents[1] / "device"
MICROPYTHON = Path(sys.executable).parent / "micropython"
MOST_ATTEMPTS = 100


def record(n: int, value: str = "1.5", sensor: str = "s", id_: str | None = None) -> str:
    return f'["{id_ or f"d-7f3a17c21-{n}"}","{sensor}",{value},"Cel",1764529200000]'


POISON = {
    "NaN": record(4, "NaN"),
    "1e999": record(4, "1e999"),
    "a number as text": record(4, '"21.5"'),
    "500 nested brackets": record(4, "[" * 400 + "]" * 400),
    "not JSON": record(4, "?"),
    "a list as a value": record(4, "[1]"),
    "a lone surrogate in the sensor": record(4, sensor="\\ud800"),
    "U+0000 in the id": record(4, id_="d\\u0000"),
    "an empty id": '["","s",1.5]',
    "an id of 129 characters": record(4, id_="x" * 129),
    "another device's id": record(4, id_="other-7f3a17c21-4"),
    "not a record": "\x00\xff torn",
    "500 digits": record(4, "9" * 500),
}


async def drain(interpreter: Path | str, folder: Path, url: str, key: str, records: list[str]):
    orders = {
        "url": url, "key": key, "deadline_s": 30, "readings": 0,
        "attempts": MOST_ATTEMPTS, "records": [text.encode("latin1").hex() for text in records],
    }  # fmt: skip
    (folder / "orders.json").write_text(json.dumps(orders))
    process = await asyncio.create_subprocess_exec(
        interpreter, HERE / "drive_uplink.py", DEVICE, folder, folder / "orders.json",
        stdout=asyncio.subprocess.PIPE, cwd=HERE,
    )  # fmt: skip
    out, _ = await process.communicate()
    assert process.returncode == 0
    return json.loads(out)


@pytest.mark.parametrize("interpreter", ["cpython", "micropython"])
@pytest.mark.parametrize("poison", POISON.values(), ids=POISON.keys())
async def test_the_outbox_drains_and_the_good_readings_are_stored(
    tmp_path: Path, house: House, interpreter: str, poison: str
) -> None:
    if interpreter == "micropython" and not MICROPYTHON.exists():
        pytest.skip("NOT RUN ON MICROPYTHON: there is none for this platform")
    runs = MICROPYTHON if interpreter == "micropython" else sys.executable
    await house.register("d")
    records = [record(n) for n in (1, 2, 3)] + [poison] + [record(n) for n in (5, 6, 7, 8)]
    key = house.keys.device_key("d", 1).hex()
    happened = await drain(runs, tmp_path, f"http://127.0.0.1:{house.port}", key, records)
    assert happened["left"] == 0
    rows = await house.db.all("SELECT n FROM readings WHERE n <> 4 ORDER BY n")
    assert [row["n"] for row in rows] == [1, 2, 3, 5, 6, 7, 8]
