"""A file is there whole or not at all, after a power cut too."""

import os
from pathlib import Path


def write_whole(folder: Path, name: str, content: bytes) -> None:
    """Put a file into the folder, in place of one of that name. Made when missing.

    What is left of an earlier, interrupted writing of the same name is overwritten.
    """
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f".{name}.unfinished"
    with unfinished.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(folder / name)
    _sync(folder)


def _sync(folder: Path) -> None:
    # The new name is on the disk only when the folder is (POSIX; Windows has no such call).
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
