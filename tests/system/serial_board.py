"""A virtual board on a pseudo-terminal, and what is done to it through that."""

import subprocess
import sys
from pathlib import Path

from tests.system.board_process import BoardProcess

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 60


class SerialBoard(BoardProcess):
    """A board whose flash is empty and which knows no gateway; `port` is where it is."""

    always = ("--bare",)

    def __init__(self, folder: Path, *flags: object) -> None:
        self.port = str(folder / "board.tty")
        self.trace = folder / "board.trace"
        given = ("--pty", self.port, "--trace", self.trace, *flags)
        super().__init__(folder / "board.img", *given)
        self.wait_for("virtual_board: on")

    def mpremote(self, *command: str) -> str:
        """Run the stock mpremote; return what it printed."""
        program = [sys.executable, "-m", "mpremote", "connect", self.port, *command]
        done = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def flash(self, *flags: object) -> subprocess.CompletedProcess[str]:
        """Run `python -m tools.flash` on it to its end."""
        command = [sys.executable, "-m", "tools.flash", "--port", self.port, *map(str, flags)]
        return subprocess.run(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE_S,
        )


class FlashedBoard(SerialBoard):
    """One that has the firmware, and knows no gateway."""

    always = ()
