"""Every kind of alarm says what it means, and the docs say of it what is in force."""

import re
import tomllib
from pathlib import Path

import msgspec
import pytest

from gateway.alarm_texts import TEXTS, Ends, Kind, may_be_closed, text_of
from gateway.tables import Alarms

OPERATIONS = (Path(__file__).parents[2] / "docs/operations.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_says_what_it_means_and_what_to_do_and_is_told_of(kind: Kind) -> None:
    text = TEXTS[kind]
    assert text.title
    assert text.means
    assert text.do
    [row] = re.findall(rf"^\| `{kind}` .*$", OPERATIONS, re.MULTILINE)
    by_a_person = "likewise" in row or "by a person" in row
    assert by_a_person == may_be_closed(kind)


def test_a_kind_of_a_newer_version_shows_its_name_and_can_be_closed() -> None:
    assert text_of("moon_full").title == "moon_full"
    assert text_of("moon_full").ends is Ends.BY_A_PERSON


def test_the_thresholds_in_the_docs_are_the_defaults() -> None:
    [shown] = re.findall(r"```toml\n(\[alarms\].*?)```", OPERATIONS, re.DOTALL)
    told = tomllib.loads(shown)["alarms"]
    del told["interval_s"]  # an example
    assert set(told) == set(Alarms.__struct_fields__) - {"interval_s"}
    assert msgspec.convert(told, Alarms) == Alarms()
