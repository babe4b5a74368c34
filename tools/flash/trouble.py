"""The known troubles, by name: what is wrong, and the one thing to do."""

from typing import NamedTuple


class Known(NamedTuple):
    what: str
    do: str


TROUBLES = {
    # At the computer's end of the cable.
    "no_port": Known(
        "no board was found{beside}",
        "plug it in with a cable that carries data, not only power, and try again; a port that has"
        " another name is told with PORT=",
    ),
    "which_port": Known("there are {count} ports: {ports}", "say which one with PORT="),
    "no_permission": Known(
        "you may not open {port}, which belongs to the group {group}",
        "run `sudo usermod -a -G {group} $USER`, log out and in again",
    ),
    "busy_port": Known("{port} is in use by {holder}", "close that program and try again"),
    "locked_port": Known(
        "another `make flash` or `make monitor` works on {port}", "wait until it is done, or end it"
    ),
    "brltty": Known(
        "{program} takes the ports of boards as soon as they are plugged in",
        "run `{remedy}`, then plug the board in again",
    ),
    "windows_com": Known(
        "Windows has no port {port}",
        "look in the Device Manager under Ports: if there is a question mark, install the driver of"
        " the board's USB chip (CP210x or CH340); else give the COM number that it shows as PORT=",
    ),
    # At the board's end.
    "no_answer": Known(
        "nothing answers on {port}",
        "press the board's button EN (or RST) and try again; if nothing changes, try another cable",
    ),
    "boot_mode": Known(
        "the board waits for a download: it was started with BOOT held down",
        "let go of BOOT, press EN (or RST) and try again",
    ),
    "raw_repl_stuck": Known(
        "the board talks, but its REPL does not answer; it said last: {said!r}",
        "unplug the board, plug it in again and try again",
    ),
    "watchdog": Known(
        "the board's watchdog resets it while it is worked on",
        "unplug the board, plug it in and try again at once",
    ),
    "no_micropython": Known(
        "there is no MicroPython on the board",
        "let `make flash` write it: answer yes, or say FIRMWARE=file.bin",
    ),
    "old_micropython": Known(
        "MicroPython {version} is too old; 1.22 or newer is needed",
        "let `make flash` write a new one: answer yes, or say FIRMWARE=file.bin",
    ),
    "fat": Known(
        "the board's file system is FAT, which a power cut can destroy",
        "run again with ERASE=1: it is made anew, as littlefs, and all that is on it is lost",
    ),
    "flash_full": Known(
        "the board's flash is full: {needed} bytes are needed, {free} are free",
        "delete files of your own from it (`mpremote fs ls`), or run again with ERASE=1",
    ),
    "bad_flash": Known(
        "{file} came back from the board otherwise than it was written",
        "try again; if it is the same file again, the board's flash is worn out",
    ),
    "wrong_chip": Known(
        "{file} is for {meant}, the board is {found}",
        "take the file for {found} from micropython.org/download",
    ),
    "no_tool": Known(
        "{tool} failed: {said}", "take a .bin for the board from micropython.org/download and say"
        " FIRMWARE=file.bin",
    ),
    "not_written": Known(
        "MicroPython could not be written: {said}",
        "hold BOOT down, press EN (or RST), let go of both and try again",
    ),
    # At the gateway.
    "gateway_down": Known(
        "no gateway answers at {url} ({why})",
        "start it with `make run HOST=0.0.0.0`, or say where it is with GATEWAY=http://…",
    ),
    "gateway_on_loopback": Known(
        "the gateway answers on this machine only, not at {url}",
        "start it with HOST=0.0.0.0, so that boards reach it",
    ),
    "loopback": Known(
        "{url} is this machine's own address for itself: a board finds nothing there",
        "leave GATEWAY= out, or give an address in your network",
    ),
    "no_lan": Known(
        "this machine has no address in a network", "say where the gateway is with GATEWAY=http://…"
    ),
    "token": Known(
        "the gateway did not take the operator's token: {said}",
        "put what stands in its data/operator.token into FIELDPOST_TOKEN",
    ),
    "no_token": Known(
        "a key for the board needs the operator's token",
        "run this beside the gateway's data folder (DATA=…), or set FIELDPOST_TOKEN",
    ),
    "no_wifi": Known(
        "there is nobody to ask for the Wi-Fi", "run `make flash` in a terminal once: it keeps it"
    ),
    "unanswered": Known("{question}", "say YES=1 if that is what you want"),
    # On the air.
    "wrong_password": Known(
        "the Wi-Fi {ssid} does not take the password", "run `make provision WIFI=ask` and type it"
        " again"
    ),
    "no_network": Known(
        "the board does not see the Wi-Fi {ssid}",
        "bring it nearer, and check that the network has a 2.4 GHz band: an ESP32 knows no other",
    ),
    "no_gateway": Known(
        "the board has an address ({address}) but does not reach {url}: {said}",
        "let the port through this machine's firewall, and turn off client isolation (a guest"
        " network has it)",
    ),
    "key_refused": Known(
        "the gateway refuses the board's key", "run `make provision`: it fetches the right one"
    ),
    "no_cable": Known(
        "no reading of {device} came over the cable within {seconds} s",
        "start the gateway with --serial {port} (or --serial auto)",
    ),
    "not_stored": Known(
        "no reading of {device} was stored within {seconds} s; the board said last: {said!r}",
        "run `make monitor` and see what it says",
    ),
}  # fmt: skip


class Trouble(Exception):
    """A known trouble; the message says what is wrong and what to do."""

    def __init__(self, name: str, **details: object) -> None:
        known = TROUBLES[name]
        self.name = name
        self.what = known.what.format(**details)
        self.do = known.do.format(**details)
        super().__init__(f"{self.what}\n  -> {self.do}")
