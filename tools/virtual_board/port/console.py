# The board's serial line: what it prints, and who answers when nothing runs. The Unix port has
# neither a board's "\r\n" nor a raw REPL, so both are here.
# mypy: ignore-errors

import builtins
import gc
import io
import sys

import host
import micropython
import utime

_CTRL_A = 1  # raw REPL
_CTRL_B = 2  # friendly REPL
_CTRL_C = 3
_CTRL_D = 4  # run it; on nothing: soft reset
_CTRL_E = 5
_ON_ITS_WAY_MS = 2
_WINDOW = 256  # bytes that a sender may be ahead of us in raw paste mode
_BANNER = "MicroPython v%d.%d.%d; Fieldpost's virtual board with ESP32\r\n"

_out = sys.stdout.buffer
_in = sys.stdin.buffer
_print = builtins.print
_print_exception = sys.print_exception


class _Text(io.IOBase):
    # sys.stdout as a board's: text ends its lines with "\r\n", .buffer changes nothing.
    buffer = _out

    def write(self, data):
        text = data if isinstance(data, str) else str(data, "utf-8")
        _out.write(text.replace("\n", "\r\n"))
        return len(data)

    def flush(self):
        pass


class _Sys:
    stdout = _Text()

    def __getattr__(self, name):
        return getattr(sys, name)

    def print_exception(self, error, file=None):
        _print_exception(error, self.stdout if file is None else file)


def _cooked_print(*values, file=None, **how):
    # One write for each call, as lines should not be torn.
    if file is not None:
        return _print(*values, file=file, **how)
    text = io.StringIO()
    _print(*values, file=text, **how)
    _out.write(text.getvalue().replace("\n", "\r\n"))
    return None


class _Micropython:
    def __getattr__(self, name):
        return getattr(micropython, name)

    def kbd_intr(self, character):
        host.interrupts(max(character, 0))


def _shown(value):
    if value is not None:
        _cooked_print(repr(value))


def install():
    """Give everything that is imported or run from now on what a board has of these."""
    builtins.print = _cooked_print
    builtins.__repl_print__ = _shown
    sys.modules["sys"] = _Sys()
    sys.modules["micropython"] = _Micropython()


class Repl:
    def __init__(self, names):
        self._names = names  # what the code that is typed sees: __main__'s

    def live(self, mode):
        """Answer in this mode until a soft reset is asked for."""
        while mode:
            host.say("repl", mode)
            mode = self._raw() if mode == "raw" else self._friendly()
        _out.write("MPY: soft reboot\r\n")

    def run(self, source, name, kind="exec"):
        """Run it; Ctrl-C interrupts it. Return the error that ended it, or None."""
        ended_by = None
        try:
            code = compile(source, name, kind)
            gc.collect()
            host.interrupts(_CTRL_C)
            exec(code, self._names)
        except BaseException as error:
            ended_by = error
        _be_left_alone()
        return ended_by

    # The raw REPL, for programs.

    def _raw(self):
        _out.write("raw REPL; CTRL-B to exit\r\n>")
        typed = bytearray()
        while True:
            key = _in.read(1)[0]
            if key == _CTRL_A:
                if bytes(typed) != b"\x05A":
                    return "raw"
                if not self._answer(self._pasted()):
                    return None
                typed = bytearray()
            elif key == _CTRL_B:
                _out.write("\r\n")
                return "friendly"
            elif key == _CTRL_C:
                typed = bytearray()
            elif key == _CTRL_D:
                _out.write("OK")
                if not typed:
                    _out.write("\r\n")
                    return None
                if not self._answer(typed):
                    return None
                typed = bytearray()
            else:
                typed.append(key)

    def _answer(self, source):
        error = self.run(str(source, "utf-8"), "<stdin>")
        _out.write(b"\x04")
        if error is not None and not isinstance(error, SystemExit):
            _Sys.stdout.write(_told(error))
        _out.write(b"\x04>")
        return not isinstance(error, SystemExit)

    def _pasted(self):
        _out.write(b"R\x01" + bytes((_WINDOW & 0xFF, _WINDOW >> 8)))
        source = bytearray()
        _out.write(b"\x01")
        while True:
            key = _in.read(1)[0]
            if key == _CTRL_D:
                _out.write(b"\x04")
                return source
            if key == _CTRL_C:
                _out.write(b"\x04")
                return b""
            source.append(key)
            if len(source) % _WINDOW == 0:
                _out.write(b"\x01")

    # The friendly REPL, for people.

    def _friendly(self):
        _out.write(_BANNER % tuple(sys.implementation[1][:3]))
        _out.write('Type "help()" for more information.\r\n')
        while True:
            source = self._statement()
            if not isinstance(source, bytes):
                return source
            error = self.run(str(source, "utf-8"), "<stdin>", "single") if source.strip() else None
            if isinstance(error, SystemExit):
                return None
            if error is not None:
                _Sys.stdout.write(_told(error))

    def _statement(self):
        """Return bytes to run, or which REPL it asks for, None for a soft reset."""
        source, prompt = b"", ">>> "
        while True:
            key, line = self._line(prompt)
            if key == _CTRL_A:
                return "raw"
            if key == _CTRL_B:
                return "friendly"
            if key == _CTRL_D and not source:
                return None
            if key == _CTRL_C:
                source, prompt = b"", ">>> "
                continue
            source += line + b"\n"
            if not line.strip() or not (prompt == "... " or line.rstrip().endswith(b":")):
                return source
            prompt = "... "

    def _line(self, prompt):
        """Return the key that ended it and what stands before it."""
        _out.write(prompt)
        line = bytearray()
        while True:
            key = _in.read(1)[0]
            if key in (8, 127):
                if line:
                    line = line[:-1]
                    _out.write("\b \b")
            elif key in (10, 13, _CTRL_C) or (key in (_CTRL_A, _CTRL_B, _CTRL_D) and not line):
                _out.write("\r\n")
                return key, bytes(line)
            elif key >= 32:
                line.append(key)
                _out.write(bytes((key,)))


def _be_left_alone():
    # A Ctrl-C that is on its way already is for what has just ended.
    while True:
        try:
            host.interrupts(0)
            utime.sleep_ms(_ON_ITS_WAY_MS)
            return
        except KeyboardInterrupt:
            continue


def _told(error):
    text = io.StringIO()
    _print_exception(error, text)
    # A board's own REPL has no frame in its tracebacks.
    lines = text.getvalue().split("\n")
    return "\n".join(line for line in lines if "port/console.py" not in line)
