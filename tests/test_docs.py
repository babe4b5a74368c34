"""The docs are held true: what the code has, they name; what they name, the code has."""

import argparse
import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import sensors as firmware_sensors
import settings as firmware_settings

from gateway import cli, model
from gateway.config import FILE_VARIABLE, TOKEN_VARIABLE, flag, settings, variable
from gateway.store import migrate

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
EVERYTHING = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):.*## ", page("Makefile"), re.MULTILINE))


def rows(text: str) -> list[list[str]]:
    """Return the cells of every row of every table, without back-quotes."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip().replace("`", "") for cell in line.split("|")[1:-1]] for line in lines]


def shown(default: object) -> str:
    if default is None or default == ():
        return ""
    return f"{default}".lower() if isinstance(default, bool) else f"{default}".removesuffix(".0")


@pytest.mark.parametrize("setting", settings(), ids=lambda setting: setting.name)
def test_every_setting_of_the_gateway_has_its_row_with_its_default(setting):
    [row] = [row for row in rows(page("docs/operations.md")) if row[0] == setting.name]
    names = [setting.name, variable(setting.name), flag(setting.name)]
    assert row[:4] == [*names, shown(setting.default)]


def test_the_docs_name_no_setting_that_is_not_there():
    named = set(re.findall(r"FIELDPOST_[A-Z_]+", EVERYTHING))
    assert named == {variable(setting.name) for setting in settings()} | {
        FILE_VARIABLE,
        TOKEN_VARIABLE,
    }


def commands(parser: argparse.ArgumentParser, verb: str = "") -> Iterator[tuple[str, set[str]]]:
    """Yield each command with its flags."""
    groups = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    options = {option for a in parser._actions for option in a.option_strings}
    yield verb, {option for option in options if option.startswith("--")}
    for group in groups:
        for name, below in group.choices.items():
            yield from commands(below, f"{verb} {name}".strip())


@pytest.mark.parametrize(("verb", "flags"), list(commands(cli.parser())))
def test_every_verb_and_flag_is_told_of(verb, flags):
    named = {re.sub("( [A-Z]+)+$", "", row[0]) for row in rows(page("docs/operations.md"))}
    assert not verb or verb in {"devices", "alarms", "jobs"} or verb in named
    assert not [option for option in flags if f"{option}" not in EVERYTHING]


def test_every_make_target_is_told_of():
    assert not {target for target in make_targets() if f"make {target}" not in EVERYTHING}


def test_every_make_command_in_the_docs_exists():
    told = set(re.findall(r"^make ([a-z-]+)|`make ([a-z-]+)[ `]", EVERYTHING, re.MULTILINE))
    assert {one or other for one, other in told} <= make_targets()


def test_make_says_itself_what_there_is():
    own = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    said = subprocess.run(["make"], cwd=ROOT, env=own, capture_output=True, text=True).stdout
    assert {line.split()[0] for line in said.splitlines()[1:]} == make_targets()


def test_every_setting_of_a_board_has_its_row():
    named = [row[0] for row in rows(page("docs/board.md"))]
    assert not set(firmware_settings.defaults()) - set(named)


def test_every_sensor_has_its_row():
    named = {kind for row in rows(page("docs/board.md")) for kind in row[0].split(", ")}
    assert not set(firmware_sensors._KINDS) - named


def test_every_flag_of_the_virtual_board_has_its_row():
    command = [sys.executable, "-m", "tools.virtual_board", "--help"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    named = {
        row[0].split()[0] for row in rows(page("docs/board.md")) if re.match("--[a-z]", row[0])
    }
    assert set(re.findall(r"^  (--[a-z-]+)", said, re.MULTILINE)) == named


def test_every_resource_is_on_the_page_of_the_wire():
    source = page("gateway/web/application.py")
    resources = re.findall(r'\("(GET|POST)", "(/\w[^"]*)"', source)
    told = page("docs/protocol.md")
    assert len(resources) > 5
    assert not [f"{m} {p}" for m, p in resources if f"`{m} {p}`" not in told and "/page/" not in p]


@pytest.mark.parametrize("part", [model.Envelope, model.Health, model.Lost, model.Reading])
def test_every_field_of_a_delivery_is_on_the_page_of_the_wire(part):
    told = page("docs/protocol.md")
    assert not [name for name in part.__struct_encode_fields__ if f'"{name}"' not in told
                and f"`{name}`" not in told]  # fmt: skip


def test_the_limits_on_the_page_of_the_wire_are_those_in_force():
    told = page("docs/protocol.md")
    assert f"at most {model.MAX_READINGS} readings" in told
    assert f"0 to {model.MAX_AT_MS}" in told
    assert f"more than {model.MAX_BOOT} characters" in told
    [bytes_] = [setting.default for setting in settings() if setting.name == "max_body_bytes"]
    assert f"{bytes_ // 1024} KiB (`max_body_bytes`)" in told


@pytest.mark.parametrize("view", ["readings", "quarantine"])
def test_what_others_may_read_has_the_columns_that_are_told(view):
    [told] = [row[1] for row in rows(page("docs/operations.md")) if row[0] == view]
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate.migrate(connection)
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({view})")]
    assert set(told.split(", ")) <= set(columns)


def test_every_tool_is_told_of_and_every_tool_told_of_is_there():
    named = set(re.findall(r"python -m tools\.(\w+)", EVERYTHING))
    mains = {file.stem for file in (ROOT / "tools").glob("*.py") if "__main__" in file.read_text()}
    packages = {file.parent.name for file in (ROOT / "tools").glob("*/__main__.py")}
    assert named == mains - {"run"} | packages


def test_every_link_leads_somewhere():
    for file in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", file.read_text(encoding="utf-8")):
            assert (file.parent / target).exists(), f"{file.name}: {target}"
