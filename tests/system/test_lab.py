"""Each experiment, small, with the real processes; and what is made of what was found."""

import json
from itertools import chain
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.system.lanes import found_in
from tools.lab.__main__ import main
from tools.lab.finding import Finding

pytestmark = pytest.mark.long

# Most of their time they wait for leases and for waits to be over: so several run side by side.
# Those that measure how long something takes stand in one lane, one after another.
LANES = ((2,), (4, 3), (5, 1), (10, 9))
UNHELD = {1: "tests.system.unheld"}


@pytest.fixture(scope="module")
def found() -> dict[int, Finding]:
    return found_in(LANES)


@pytest.mark.parametrize("number", sorted(chain(*LANES)))
def test_all_that_an_experiment_claims_holds(found: dict[int, Finding], number: int) -> None:
    finding = found[number]
    assert len(finding.claims) > 2
    assert not [claim.text for claim in finding.claims if not claim.holds]
    assert any(not isinstance(part, str) for part in finding.parts)
    assert json.loads(json.dumps(finding.figures))


def told(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return summary


def test_a_claim_that_does_not_hold_is_told_and_ends_in_1(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--json"], UNHELD) == 1
    summary = told(capsys)
    [experiment] = summary["experiments"]
    assert (summary["holds"], experiment["holds"], experiment["figures"]) == (
        False,
        False,
        {"count": 7},
    )
    assert [claim["holds"] for claim in experiment["claims"]] == [True, False]


def test_an_experiment_that_breaks_down_is_told_and_the_others_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--json"], {1: "tests.system.breaking", 2: "tests.system.unheld"}) == 1
    broken, other = told(capsys)["experiments"]
    assert "TimeoutError: not within 1 s: the end" in broken["claims"][0]["text"]
    assert (broken["holds"], other["figures"]) == (False, {"count": 7})


def test_an_experiment_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["13"], UNHELD)
    assert refused.value.code == 2
    assert "13" in capsys.readouterr().err


@pytest.mark.parametrize("language", ["en", "pt"])
def test_the_page_stands_alone_and_is_told_in_the_language(tmp_path, language: str) -> None:
    file = tmp_path / "lab.html"
    main(["--html", str(file), "--lang", language], UNHELD)
    page = file.read_text(encoding="utf-8")
    said = {"en": "does not hold", "pt": "não se confirma"}
    assert said[language] in page
    assert f'<html lang="{language}">' in page
    assert "<script" not in page
    assert "src=" not in page
    assert "<link" not in page
    chart = ElementTree.fromstring(page[page.index("<svg") : page.index("</svg>") + 6])
    assert {"first", "second", "Bars (s)"} <= {text.strip() for text in chart.itertext()}
