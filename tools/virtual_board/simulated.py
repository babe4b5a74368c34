"""The process of a simulated board: the firmware's own files on CPython, a folder as its flash.

The firmware and the port's modules get an `import` and an `open` of their own, so that neither
knows where it runs; the rest of this process keeps Python's.
"""

import builtins
import io
import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from tools.virtual_board import lifeline, stand_ins
from tools.virtual_board.child import ORDERS

PORT = Path(__file__).with_name("port")
DEFAULT_BYTES = 512 * 1024


class World:
    """All modules that a board's code can see."""

    def __init__(self, firmware: Path, root: stand_ins.Root, **instead: ModuleType) -> None:
        self._places = {PORT: self._builtins(_open_unbuffered, os)}
        self._places[firmware] = self._builtins(root.open, root.os)
        self._modules = stand_ins.modules()
        self._modules["usocket"] = __import__("socket")
        self._modules["vfs"] = _vfs()
        self._modules.update(instead)

    def load(self, name: str) -> ModuleType | None:
        """Return the module, run it first if it is new; None if a board has no such file."""
        if name not in self._modules:
            for folder, its_builtins in self._places.items():
                if (folder / f"{name}.py").is_file():
                    return self.run(folder / f"{name}.py", name, its_builtins)
        return self._modules.get(name)

    def run(self, path: Path, name: str, its_builtins: dict[str, object]) -> ModuleType:
        module = ModuleType(name)
        vars(module).update(__file__=str(path), __builtins__=its_builtins)
        self._modules[name] = module
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), vars(module))
        if name == "post":
            self._give_sockets(module)
        return module

    def run_main(self, firmware: Path) -> None:
        self.run(firmware / "main.py", "__main__", self._places[firmware])

    def _give_sockets(self, post: Any) -> None:
        # Its own way to connect stands on the insides of MicroPython's asyncio.
        async def connect(address: Any) -> tuple[stand_ins.Stream, Callable[[], None]]:
            stream = await stand_ins.Stream.connect(address, self.load("network"))
            return stream, stream.close

        post._connect = connect

    def _builtins(self, opens: Callable[..., object], its_os: ModuleType) -> dict[str, object]:
        def imports(name: str, *context: Any) -> ModuleType:
            if name == "os":
                return its_os
            return self.load(name) or builtins.__import__(name, *context)

        return {**vars(builtins), "__import__": imports, "open": opens}


def _open_unbuffered(path: str, mode: str) -> object:
    return open(path, mode, buffering=0)  # as MicroPython: one write for one line of the trace


def _vfs() -> ModuleType:
    vfs = ModuleType("vfs")
    vars(vfs)["VfsPosix"] = partial(SimpleNamespace, open=io.open)
    return vfs


def main() -> None:
    orders = json.loads(os.environ[ORDERS])
    lifeline.tie_thread(orders["lifeline_fd"])
    assert isinstance(sys.stdout, io.TextIOWrapper)
    sys.stdout.reconfigure(line_buffering=True)
    firmware = Path(orders["firmware"])
    root = stand_ins.Root(Path(orders["folder"]), orders["size_bytes"] or DEFAULT_BYTES)
    live(World(firmware, root), firmware, orders)


def live(world: World, firmware: Path, orders: dict[str, Any]) -> None:
    """Run main.py until the board's life ends. Never returns."""
    host: Any = world.load("host")
    machine: Any = world.load("machine")
    settings: Any = world.load("settings")
    machine.trace("reset", orders["cause"])
    if settings:
        settings.over.update(orders["over"])
    host.say("started", True)
    try:
        world.run_main(firmware)
        print("main.py has ended; nobody sits at this board's REPL, so it starts again")
    except SystemExit:
        pass
    except BaseException as error:
        stand_ins.print_exception(error)
    host.end("soft")


if __name__ == "__main__":
    main()
