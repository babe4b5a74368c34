"""Which form of an answer a caller gets."""

import pytest

from gateway.web.accept import preferred

OFFERS = ("application/json", "text/csv")
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        (BROWSER, "application/json"),
        ("text/csv", "text/csv"),
        ("TEXT/CSV ; Q=0.3", "text/csv"),
        ("text/*", "text/csv"),
        ("text/csv, application/json", "application/json"),
        ("text/csv, application/json;q=0.9", "text/csv"),
        ("text/csv;q=0.1, */*", "application/json"),
        ("application/json;q=0, */*;q=0.1", "text/csv"),
        ("text/csv;q=nan", "application/json"),
        ("text/csv;q=1e9, application/json;q=0.1", "application/json"),
        ("text/csv;q=²", "application/json"),
        ("text/csv;q=.", "application/json"),
        ("image/png", "application/json"),
        (";,;q=,", "application/json"),
    ],
)
def test_the_best_liked_form_is_given(accept: str, form: str) -> None:
    assert preferred(accept, OFFERS) == form
