"""The firmware's uplink over HTTPS, on the interpreter that the boards run."""

import asyncio
import json
import ssl
from pathlib import Path
from typing import Any

import pytest

from tests.device.conftest import BINARY, DEVICE
from tests.device.place import KEY, Place, open_place, stores
from tools.certificate import Made, make

pytestmark = pytest.mark.skipif(not BINARY.exists(), reason="NOT RUN ON MICROPYTHON")

HERE = Path(__file__).resolve().parent


def served(made: Made, folder: Path) -> ssl.SSLContext:
    (folder / "c.pem").write_bytes(made.certificate)
    (folder / "k.pem").write_bytes(made.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "c.pem", folder / "k.pem")
    return context


async def drive(folder: Path, place: Place, tls_cert: str | None, **more: Any) -> dict[str, Any]:
    """Let the board make an attempt or two; return what it did."""
    orders = {"url": place.url, "key": KEY, "deadline_s": 5, "readings": 64, "attempts": 1}
    (folder / "orders").write_text(json.dumps(orders | {"tls_cert": tls_cert} | more))
    process = await asyncio.create_subprocess_exec(
        BINARY, HERE / "drive_uplink.py", DEVICE, folder, folder / "orders",
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, _ = await process.communicate()
    assert process.returncode == 0
    done: dict[str, Any] = json.loads(out)
    return done


async def test_a_board_delivers_to_the_gateway_whose_certificate_it_has(tmp_path: Path) -> None:
    made = make(["127.0.0.1"])
    async with open_place(Place(stores), served(made, tmp_path)) as place:
        did = await drive(tmp_path, place, made.for_boards)
    assert (did["waits"], did["left"], did["sockets_left"]) == ([0], 0, 0)
    assert len(place.requests[0].batch["readings"]) == 64


@pytest.mark.parametrize("names", [["127.0.0.1"], ["gateway.lan"]], ids=["another", "other name"])
async def test_whoever_has_another_certificate_is_sent_nothing_at_all(
    tmp_path: Path, names: list[str]
) -> None:
    theirs, ours = make(["127.0.0.1"]), make(names)
    shown = theirs if names == ["127.0.0.1"] else ours
    async with open_place(Place(stores), served(shown, tmp_path)) as place:
        did = await drive(tmp_path, place, ours.for_boards, attempts=2)
    assert did["waits"] == [2000, 4000]
    assert (did["left"], did["told"], did["sockets_left"]) == (64, [], 0)
    assert place.requests == []
    assert all("certificate" in line for line in did["log"])


async def test_without_a_certificate_of_its_own_it_talks_to_whoever_answers(tmp_path: Path) -> None:
    async with open_place(Place(stores), served(make(["x"]), tmp_path)) as place:
        did = await drive(tmp_path, place, None)
    assert (did["waits"], did["left"]) == ([0], 0)


async def test_a_gateway_without_tls_is_no_answer_and_does_not_hang_the_board(
    tmp_path: Path,
) -> None:
    async with open_place(Place(stores)) as place:
        place.url = place.url.replace("http:", "https:")
        did = await drive(tmp_path, place, None, deadline_s=1)
    assert (did["waits"], did["left"], did["sockets_left"]) == ([2000], 64, 0)
