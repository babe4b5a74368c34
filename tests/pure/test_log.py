"""The log: one record, one line, whatever a stranger puts into it."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway import log

FORGED = "fine\n2026-11-30T00:00:00.000Z ERROR gateway: the disk is on fire\r\x1b[31m\u2028\ud800"


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """Give the root logger, and put back what it had."""
    logger = logging.getLogger()
    before, level = logger.handlers[:], logger.level
    logger.handlers.clear()
    yield logger
    logger.handlers[:] = before
    logger.setLevel(level)


def written(root: logging.Logger, form: str) -> tuple[io.StringIO, logging.Logger]:
    out = io.StringIO()
    log.configure("info", form, out)
    return out, logging.getLogger("gateway.web")


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_record_is_one_line_even_with_line_ends_in_it(root, form):
    out, logger = written(root, form)
    logger.info("from %s", FORGED, extra={"caller": FORGED})
    assert len(out.getvalue().splitlines()) == 1
    assert out.getvalue().rstrip("\n").isprintable()


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_traceback_stays_in_the_line(root, form):
    out, logger = written(root, form)
    try:
        raise ValueError(FORGED)
    except ValueError:
        logger.exception("it broke")
    assert len(out.getvalue().splitlines()) == 1
    assert "ValueError" in out.getvalue()


def test_text_tells_when_how_grave_who_and_what(root):
    out, logger = written(root, "text")
    logger.warning("POST %s -> %d", "/v1/readings", 503, extra={"request_id": "r-1"})
    instant, rest = out.getvalue().rstrip("\n").split(" ", 1)
    assert instant.endswith("Z")
    assert rest == "WARNING gateway.web: POST /v1/readings -> 503 request_id=r-1"


def test_a_value_in_text_can_not_be_taken_for_another_key(root):
    out, logger = written(root, "text")
    logger.warning("asked", extra={"request_id": 'r-1" caller=operator'})
    assert out.getvalue().endswith(' request_id="r-1\\" caller=operator"\n')


def test_json_has_what_was_said_beside_the_message(root):
    out, logger = written(root, "json")
    logger.warning("hello", extra={"request_id": "r-1", "message_bytes": 3})
    line = json.loads(out.getvalue())
    assert line.pop("at").endswith("Z")
    assert line == {
        "level": "warning",
        "logger": "gateway.web",
        "message": "hello",
        "request_id": "r-1",
        "message_bytes": 3,
    }


def test_less_grave_records_are_left_out(root):
    out, logger = written(root, "text")
    logger.debug("chatter")
    assert out.getvalue() == ""


@given(st.text())
def test_what_is_printable_is_left_as_it_is_and_the_rest_becomes_so(text):
    line = log.one_line(text)
    assert line.isprintable()
    if text.isprintable():
        assert line == text
