"""The arrows of the house: who may know whom. Read from the imports, so that they stay true."""

import ast
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
GATEWAY = ROOT / "gateway"
DEVICE = ROOT / "device"

# From the ground up. A module knows those of its own layer and below, never one above.
LAYERS = {
    "pure": {
        "alarm_texts",
        "backoff",
        "config",
        "dating",
        "decode",
        "errors",
        "events",
        "frames",
        "gaps",
        "links",
        "model",
        "outcomes",
        "sheet",
        "silence",
        "states",
        "tables",
    },
    "store": {"store"},
    "services": {
        "aggregate",
        "alarm_notices",
        "alarms",
        "child",
        "child_process",
        "device_rules",
        "findings",
        "gateway_rules",
        "handlers",
        "ingest",
        "keys",
        "kinds",
        "languages",
        "lease",
        "leftovers",
        "log",
        "mail",
        "master",
        "metrics",
        "move_log",
        "moves",
        "network_fs",
        "notify",
        "pool",
        "reaper",
        "retention",
        "schedule",
        "sensor_cap",
        "tail",
        "upkeep",
    },
    "edges": {"listener", "port_lock", "serial_line", "serial_port", "stopping", "web"},
    "app": {"app", "crew", "opening", "work"},
    "verbs": {
        "__main__",
        "backup",
        "check",
        "cli",
        "device_verbs",
        "job_desk",
        "job_verbs",
        "registry",
    },
}
IMPURE = {"aiohttp", "aiosqlite", "asyncio", "random", "secrets", "socket", "sqlite3", "threading",
          "time"}  # fmt: skip

HARDWARE = {"dht", "ds18x20", "esp32", "machine", "network", "ntptime", "onewire"}
MAY_TOUCH_HARDWARE = {"board.py", "sensors.py", "wifi.py"}
# What MicroPython 1.22 has on an ESP32, as far as the firmware has a use for it.
ON_A_BOARD = {"asyncio", "binascii", "collections", "deflate", "errno", "gc", "hashlib", "io",
              "json", "math", "micropython", "os", "random", "select", "socket", "ssl", "struct",
              "sys", "time"}  # fmt: skip
PURE_ON_A_BOARD = {"binascii", "collections", "hashlib", "json", "os", "struct"}
PURE_MARK = "# PURE: "

FIRMWARE = sorted(DEVICE.glob("*.py"))
MODULES = sorted(GATEWAY.rglob("*.py"))


def imports(file: Path) -> set[str]:
    """Return the full names of what the file imports, anywhere in it."""
    return set(_imports(ast.parse(file.read_text(encoding="utf-8"))))


def _imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            assert not node.level, "imports are written whole, so that they can be looked for"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def roots(file: Path) -> set[str]:
    return {name.split(".")[0] for name in imports(file)}


def parts_known(file: Path) -> set[str]:
    """Return which parts of the gateway the file imports: `config`, `store`, …"""
    names = [name.split(".") for name in imports(file) if name.startswith("gateway.")]
    return {name[1] for name in names} - {"__version__"}


def part(file: Path) -> str:
    return file.relative_to(GATEWAY).with_suffix("").parts[0]


def height(name: str) -> int:
    for number, parts in enumerate(LAYERS.values()):
        if name in parts:
            return number
    raise AssertionError(f"gateway/{name} stands in no layer: give it its place in LAYERS")


def is_pure(file: Path) -> bool:
    return file.read_text(encoding="utf-8").startswith(PURE_MARK)


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(ROOT)))
def test_arrows_point_down_only(file):
    if part(file) != "__init__":
        above = [name for name in parts_known(file) if height(name) > height(part(file))]
        assert not above, f"{file} knows what stands above it"


def test_no_two_parts_know_each_other():
    known = {name: set[str]() for parts in LAYERS.values() for name in parts}
    for file in MODULES:
        known.setdefault(part(file), set()).update(parts_known(file) - {part(file)})
    while leaves := {name for name, others in known.items() if not others & known.keys()}:
        for leaf in leaves:
            del known[leaf]
    assert not known, "these know each other in a circle"


@pytest.mark.parametrize("name", sorted(LAYERS["pure"]))
def test_the_pure_core_does_no_input_and_has_no_clock(name):
    file = GATEWAY / f"{name}.py"
    assert not roots(file) & IMPURE
    tree = ast.parse(file.read_text(encoding="utf-8"))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Await)]


def test_every_layer_names_what_exists():
    for parts in LAYERS.values():
        for name in parts:
            assert (GATEWAY / name).is_dir() or (GATEWAY / f"{name}.py").is_file(), name


def test_gateway_and_firmware_share_no_code():
    firmware = {file.stem for file in FIRMWARE}
    for file in MODULES:
        assert not roots(file) & (firmware | {"device", "tools", "tests"}), file
    for file in FIRMWARE:
        assert not roots(file) & {"gateway", "tools", "tests"}, file


@pytest.mark.parametrize("file", FIRMWARE, ids=lambda file: file.name)
def test_only_three_files_touch_the_hardware(file):
    if file.name not in MAY_TOUCH_HARDWARE:
        assert not roots(file) & HARDWARE


@pytest.mark.parametrize("file", FIRMWARE, ids=lambda file: file.name)
def test_the_firmware_needs_nothing_that_a_board_lacks(file):
    own = {other.stem for other in FIRMWARE}
    assert roots(file) <= own | ON_A_BOARD | HARDWARE


def test_pure_firmware_knows_only_bytes_and_files():
    pure = [file for file in FIRMWARE if is_pure(file)]
    own = {file.stem for file in pure}
    for file in pure:
        assert roots(file) <= own | PURE_ON_A_BOARD, file


def test_what_is_promised_to_be_pure_says_so():
    for name in ("backoff", "clock", "outbox", "wire"):
        assert is_pure(DEVICE / f"{name}.py"), name


@pytest.mark.parametrize("file", FIRMWARE, ids=lambda file: file.name)
def test_no_firmware_file_hides_a_module(file):
    taken = sys.stdlib_module_names | packages_distributions().keys() | ON_A_BOARD | HARDWARE
    assert file.stem not in taken


def test_no_folder_on_the_board_hides_a_module():
    """MicroPython takes a folder for a package, and looks for it before it looks for the file."""
    own = {file.stem for file in FIRMWARE}
    for file in FIRMWARE:
        texts = [
            n.value for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.Constant)
        ]
        folders = {t.split("/")[1] for t in texts if isinstance(t, str) and t.startswith("/")}
        assert not folders & own, file


def test_the_reading_of_imports_sees_them_all(tmp_path):
    file = tmp_path / "x.py"
    file.write_text(
        "import a.b, c as d\nfrom e import f as g\ndef h():\n    import i\n    from j.k import *\n"
    )
    assert imports(file) == {"a.b", "c", "e.f", "i", "j.k.*"}
    assert roots(file) == {"a", "c", "e", "i", "j"}
