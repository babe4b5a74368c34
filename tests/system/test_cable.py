"""A real board and a real gateway with a cable between them, and sometimes Wi-Fi."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.system.board_process import needs_micropython
from tools.cable_scene import CableScene
from tools.children import Children

GIVE_UP_S = 60.0

pytestmark = needs_micropython


async def until(what: Callable[[], object]) -> None:
    async with asyncio.timeout(GIVE_UP_S):
        while not what():
            await asyncio.sleep(0.1)


@pytest.mark.long
async def test_a_board_changes_from_cable_to_wifi_and_back_and_nothing_is_doubled(
    tmp_path: Path,
) -> None:
    async with Children() as children:
        scene = CableScene(tmp_path, children, period_ms=200, has_wifi=True)

        async def delivers() -> None:
            """Wait until readings are acknowledged that were taken from now on."""
            begun_with = scene.trace().taken
            await until(lambda: scene.trace().acknowledged - begun_with)

        async with scene.running() as cable:
            await delivers()
            cable.unplug()
            scene.set_wifi(up=True)
            await delivers()
            cable.plug()
            await scene.opened(2)
            scene.set_wifi(up=False)
            await delivers()
            assert await scene.drained(GIVE_UP_S)
    assert scene.book().faults() == []
    with closing(sqlite3.connect(scene.database)) as connection:
        [quarantined] = connection.execute("SELECT count(*) FROM quarantine").fetchone()
    assert quarantined == 0
