from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.web.house import House, start

Open = Callable[..., Awaitable[House]]


@pytest.fixture
async def open_house(tmp_path: Path) -> AsyncIterator[Open]:
    """Starts gateways, each in a folder of its own, and stops them all at the end."""
    async with AsyncExitStack() as stops:

        async def opened(**settings: Any) -> House:
            folder = tmp_path / settings.pop("folder", "data")
            folder.mkdir(exist_ok=True)
            house, stop = await start(folder, **settings)
            stops.push_async_callback(stop)
            return house

        yield opened


@pytest.fixture
async def house(open_house: Open) -> House:
    """A gateway that asks for signatures."""
    return await open_house()


@pytest.fixture
async def open_mode(open_house: Open) -> House:
    """A gateway with --open."""
    return await open_house(open=True)


@pytest.fixture
async def registered(house: House) -> House:
    """A gateway that knows the device esp32-1."""
    await house.register("esp32-1")
    return house
