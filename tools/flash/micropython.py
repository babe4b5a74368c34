"""Writes MicroPython to a chip that has none, or too old a one."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tools.flash import loader
from tools.flash.loader import CHIPS, Loader
from tools.flash.steps import Steps
from tools.flash.trouble import Trouble

DOWNLOAD_TIMEOUT_S = 300

Download = Callable[[str, Path], Path]


def write(
    chip_loader: Loader, given: Path | None, folder: Path, steps: Steps, download: Download,
    *, erase: bool,
) -> None:  # fmt: skip
    """Write the file that was given, or one that is downloaded into the folder. Raises Trouble.

    Args:
        erase: the whole flash, with whatever stands in its file system.
    """
    with steps.step("ask the chip what it is") as step:
        step.found = chip = chip_loader.chip()
    with steps.step("MicroPython's file") as step:
        file = given or download(chip, folder)
        loader.require_fit(file, chip)
        step.found = str(file)
    if erase:
        with steps.step("erase the chip"):
            chip_loader.erase()
    with steps.step("write MicroPython"):
        chip_loader.write(CHIPS[chip].offset, file)


def downloaded(chip: str, folder: Path) -> Path:
    """Return the newest stable MicroPython for the chip, fetched by mpflash. Raises Trouble."""
    if chip not in CHIPS:
        raise Trouble("wrong_chip", file="MicroPython", meant=", ".join(CHIPS), found=chip)
    folder.mkdir(parents=True, exist_ok=True)
    board = CHIPS[chip].board
    program = str(Path(sys.executable).with_name("mpflash"))
    command = [program, "download", "--board", board, "--version", "stable"]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=DOWNLOAD_TIMEOUT_S,
            env={**os.environ, "MPFLASH_FIRMWARE": str(folder.resolve())},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Trouble("no_tool", tool="mpflash", said=str(error)) from error
    found = sorted(folder.rglob(f"{board}*.bin"), key=lambda file: file.stat().st_mtime)
    if done.returncode or not found:
        said = (done.stdout.strip().splitlines() or ["nothing"])[-1]
        raise Trouble("no_tool", tool="mpflash", said=said)
    return found[-1]
