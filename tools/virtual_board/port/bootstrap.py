# From the interpreter's start to the firmware's main.py: opens the computer's files, puts the
# board's modules and its flash in place, and fills in the flags.
# mypy: ignore-errors

import gc
import os
import sys

import utime
import vfs


def _modules():
    # asyncio sorts its tasks in C, by this port's own ticks, which never wrap: given ticks that
    # do, it would wake the wrong task. So it keeps them, and only refuses what a board refuses.
    sys.modules["time"] = utime
    import asyncio

    del sys.modules["time"]
    import time

    def ticks_add(ticks, delta):
        time.in_range(delta)
        return utime.ticks_add(ticks, delta)

    asyncio.core.ticks_add = ticks_add
    for name in ("machine", "network", "esp32", "socket", "ntptime"):
        __import__(name)  # later the flash is in the place of the folder they come from


def _mount(orders):
    from flash import BLOCK_BYTES, Flash

    image = open(orders["image_fd"], "r+b")  # noqa: SIM115 kept for life
    size = image.seek(0, 2)
    vfs.umount("/")
    vfs.mount(vfs.VfsLfs2(Flash(image, size // BLOCK_BYTES)), "/")
    os.chdir("/")
    sys.path[:] = ["", ".frozen", "/lib"]


def _settle(over):
    try:
        import settings
    except ImportError:
        return  # a firmware that has no settings
    settings.over.update(over)


def _prepare():
    import host

    console = None

    try:
        if host.has_console:
            import console

            console.install()
        _modules()
        _mount(host.orders)
        import machine

        machine.trace("reset", host.orders["cause"])
        _settle(host.orders["over"])
        for name in ("host", "flash", "console"):
            sys.modules.pop(name, None)  # a board has no such modules; the firmware may
        host.say("started", True)
    except MemoryError:
        host.say("fatal", "out of memory before the firmware began; give it more --heap")
        host.end("hard")
    except Exception as err:
        host.say("fatal", repr(err))
        host.end("hard")
    return host, console


def _run(path):
    with open(path) as file:
        code = compile(file.read(), path, "exec")
    gc.collect()
    exec(code, {"__name__": "__main__"})


def _life():
    host, console = _prepare()
    if console:
        _with_console(host, console)
    else:
        _alone(host)


def _with_console(host, console):
    names = {"__name__": "__main__"}
    repl = console.Repl(names)
    mode = host.orders["repl"]
    for path in ("/boot.py", "/main.py"):
        if (path == "/boot.py" or mode != "raw") and not _ran(repl, path):
            host.end("soft")
    repl.live(mode)
    host.end("soft")


def _ran(repl, path):
    """Run a file, if it is there; return whether the life goes on after it."""
    try:
        with open(path) as file:
            source = file.read()
    except OSError:
        return True
    error = repl.run(source, path[1:])
    if error is not None and not isinstance(error, SystemExit):
        sys.modules["sys"].print_exception(error)
    return not isinstance(error, SystemExit)


def _alone(host):
    try:
        _run("/main.py")
        print("main.py has ended; nobody sits at this board's REPL, so it starts again")
    except SystemExit:
        pass
    except BaseException as err:
        sys.print_exception(err)
    host.end("soft")


_life()
