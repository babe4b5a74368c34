"""A littlefs flash in RAM that counts its operations and can lose power at every one of them.

The real littlefs with MicroPython's own parameters; device files run on it in CPython with an `os`
and an `open` of theirs. Power is cut by replay: nothing knows the future, so what is on the flash
after operation N failed is what the first N - 1 operations of a whole run left, and a torn N-th.
"""

import builtins
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Protocol, TypeVar

from littlefs import LFSConfig, LittleFS, LittleFSError, lfs

BLOCK_BYTES = 4096
UNIT_BYTES = 32  # read and program size of MicroPython's VfsLfs2
T = TypeVar("T")
DEVICE = Path(__file__).resolve().parents[1] / "device"


@dataclass(frozen=True)
class Operation:
    """One program (`data`) or one erase (`data` is None) of the flash."""

    block: int
    offset: int
    data: bytes | None

    def apply(self, image: bytearray) -> None:
        start = self.block * BLOCK_BYTES + self.offset
        data = b"\xff" * BLOCK_BYTES if self.data is None else self.data
        image[start : start + len(data)] = data


class Flash:
    """The block device: littlefs calls read, prog, erase and sync.

    With `power_for` operations of power, those after them fail and do nothing.
    """

    def __init__(
        self, blocks: int = 64, image: bytes | None = None, power_for: int | None = None
    ) -> None:
        self.image = bytearray(image or b"\xff" * (blocks * BLOCK_BYTES))
        self.journal: list[Operation] = []
        self.power_for = power_for

    @property
    def blocks(self) -> int:
        return len(self.image) // BLOCK_BYTES

    def read(self, cfg: LFSConfig, block: int, off: int, size: int) -> bytearray:
        start = block * BLOCK_BYTES + off
        return self.image[start : start + size]

    def prog(self, cfg: LFSConfig, block: int, off: int, data: bytes) -> int:
        return self._do(Operation(block, off, bytes(data)))

    def erase(self, cfg: LFSConfig, block: int) -> int:
        return self._do(Operation(block, 0, None))

    def sync(self, cfg: LFSConfig) -> int:
        return 0

    def _do(self, operation: Operation) -> int:
        if self.power_for is not None and len(self.journal) >= self.power_for:
            return int(LittleFSError.Error.LFS_ERR_IO)
        operation.apply(self.image)
        self.journal.append(operation)
        return 0


class Board:
    """A mounted flash, and device modules that see nothing but it."""

    def __init__(self, flash: Flash, constants: dict[str, dict[str, object]] | None = None) -> None:
        self.flash = flash
        self._constants = constants or {}
        self._modules: dict[str, ModuleType] = {}
        self._fs = LittleFS(
            context=flash,  # type: ignore[arg-type]  # it asks for the four methods only
            mount=False,
            block_size=BLOCK_BYTES,
            block_count=flash.blocks,
            read_size=UNIT_BYTES,
            prog_size=UNIT_BYTES,
            cache_size=4 * UNIT_BYTES,
            lookahead_size=32,
            block_cycles=100,
        )
        self.calls: Counter[str] = Counter()
        self.os = Os(self._fs, self.calls)
        self._files: list[File] = []
        if flash.image.count(0xFF) == len(flash.image):
            self._fs.format()
        self._fs.mount()

    def __enter__(self) -> "Board":
        return self

    def __exit__(self, *error: object) -> None:
        open_files = [file.path for file in self._files if not file.closed]
        if open_files:  # it would crash MicroPython
            raise AssertionError(f"still open: {open_files}")
        self._fs.unmount()

    def open(self, path: str, mode: str = "rb") -> "File":
        if "b" not in mode:
            raise ValueError("a device file opens files as bytes")
        self.calls[f"open {path}"] += 1
        self._files = [file for file in self._files if not file.closed]
        self._files.append(File(self._fs, path, mode))
        return self._files[-1]

    def load(self, name: str) -> Any:
        """Return a fresh device module; its imports are fresh too, its constants as given."""
        if name not in self._modules:
            path = DEVICE / f"{name}.py"
            module = self._modules[name] = ModuleType(name)
            own = {"open": self.open, "__import__": self._import}
            module.__dict__["__builtins__"] = {**vars(builtins), **own}
            exec(compile(path.read_text(), path, "exec"), module.__dict__)
            for constant, value in self._constants.get(name, {}).items():
                if constant not in module.__dict__:
                    raise AttributeError(f"{name} has no {constant}")
                module.__dict__[constant] = value
        return self._modules[name]

    def _import(self, name: str, *rest: Any) -> Any:
        if name == "os":
            return self.os
        if (DEVICE / f"{name}.py").exists():
            return self.load(name)
        return builtins.__import__(name, *rest)


class Os:
    """The part of MicroPython's `os` that device files use."""

    def __init__(self, fs: LittleFS, calls: Counter[str]) -> None:
        self._fs = fs
        self._calls = calls

    def listdir(self, path: str) -> list[str]:
        self._calls["listdir"] += 1
        return _ask(lambda: [entry.name for entry in self._fs.scandir(path)])

    def mkdir(self, path: str) -> None:
        _ask(lambda: lfs.mkdir(self._fs.fs, path))

    def remove(self, path: str) -> None:
        _ask(lambda: lfs.remove(self._fs.fs, path))

    def rename(self, old: str, new: str) -> None:
        _ask(lambda: lfs.rename(self._fs.fs, old, new))

    def statvfs(self, path: str) -> tuple[int, ...]:
        self._calls["statvfs"] += 1
        free = self._fs.block_count - self._fs.used_block_count
        return (BLOCK_BYTES, BLOCK_BYTES, self._fs.block_count, free, free, 0, 0, 0, 0, 255)


class File:
    """Unbuffered, as in MicroPython: each call is littlefs's own; closed whatever close says."""

    def __init__(self, fs: LittleFS, path: str, mode: str) -> None:
        self._fs = fs.fs
        self.path = path
        self._file: lfs.LFSFile | None = _ask(lambda: lfs.file_open(self._fs, path, mode))

    def __enter__(self) -> "File":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def closed(self) -> bool:
        return self._file is None

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            _ask(lambda: lfs.file_close(self._fs, file))

    def read(self, size: int = BLOCK_BYTES) -> bytes:
        return _ask(lambda: lfs.file_read(self._fs, self._open(), size))

    def write(self, data: bytes) -> int:
        return _ask(lambda: lfs.file_write(self._fs, self._open(), bytes(data)))

    def _open(self) -> lfs.LFSFile:
        if self._file is None:
            raise ValueError("closed file")
        return self._file


def _ask(call: Callable[[], T]) -> T:
    try:
        return call()
    except LittleFSError as error:
        raise OSError(-error.code, str(error)) from None


class Scenario(Protocol):
    """What `cut_everywhere` needs to know of a device file."""

    constants: dict[str, dict[str, object]]

    def run(self, board: Board, note: Callable[[Any], None]) -> None:
        """Do everything once, and note what was promised, as soon as it was."""

    def check(self, board: Board, notes: Sequence[Any]) -> None:
        """Open again after a cut; AssertionError unless every promise noted is kept."""

    def go_on(self, board: Board, notes: Sequence[Any]) -> None:
        """Work on after a cut and a check; AssertionError if something is wrong then."""


def cut_everywhere(
    scenario: Scenario, *, blocks: int = 32, seed: int = 0, tears: int = 1, twice_every: int = 8
) -> int:
    """Run a scenario, then check it after a cut at each flash operation; return how many cuts.

    Each operation is torn in `tears` of four ways, in turn. Each `twice_every`-th cut is followed
    by a cut at each operation of the check itself, so that opening is cut too.
    """
    flash, notes = Flash(blocks), list[tuple[int, Any]]()
    with Board(flash, scenario.constants):
        blank = bytes(flash.image)
    flash.journal.clear()
    with Board(flash, scenario.constants) as board:
        scenario.run(board, lambda note: notes.append((len(flash.journal), note)))
    rng = random.Random(seed)
    cuts = 0
    for done, image in _torn_images(blank, flash.journal, rng, tears):
        promised = [note for at, note in notes if at <= done]
        with _telling(f"cut at flash operation {done + 1} of {len(flash.journal)}, seed {seed}"):
            cuts += 1 + _check(scenario, image, promised, rng, twice=cuts % twice_every == 0)
    return cuts


def _check(
    scenario: Scenario, image: bytes, promised: list[Any], rng: random.Random, *, twice: bool
) -> int:
    flash = Flash(image=image)
    with Board(flash, scenario.constants) as board:
        scenario.check(board, promised)
        opening = flash.journal[:]
        scenario.go_on(board, promised)
    cuts = 0
    if twice:
        for done, torn in _torn_images(image, opening, rng, 1):
            with _telling(f"and again at operation {done + 1} of the opening after it"):
                cuts += 1 + _check(scenario, torn, promised, rng, twice=False)
    return cuts


def _torn_images(
    blank: bytes, journal: list[Operation], rng: random.Random, tears: int
) -> Iterator[tuple[int, bytes]]:
    # (operations that were done, what is on the flash), the last one with all of them done.
    image = bytearray(blank)
    for done, operation in enumerate(journal):
        for way in range(tears):
            torn = image[:]
            _tear(operation, (done + way) % 4, rng, torn)
            yield done, bytes(torn)
        operation.apply(image)
    yield len(journal), bytes(image)


def _tear(operation: Operation, way: int, rng: random.Random, image: bytearray) -> None:
    """Do an operation as a power cut leaves it: not at all, or in part, perhaps with garbage."""
    start = operation.block * BLOCK_BYTES + operation.offset
    data = b"\xff" * BLOCK_BYTES if operation.data is None else operation.data
    kept = (0, rng.randrange(len(data)), rng.randrange(len(data)), len(data) - 1)[way]
    image[start : start + kept] = data[:kept]
    if way == 2:
        image[start + kept : start + len(data)] = rng.randbytes(len(data) - kept)


@contextmanager
def _telling(where: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        error.add_note(where)
        raise
