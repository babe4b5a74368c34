"""The log: one record is one line, as text or as JSON, on stderr; nobody can forge a line."""

import json
import logging
import sys
import time
from typing import TextIO

# What every record has; anything else on it was said with `extra=` and belongs into the line.
_ALWAYS = set(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}


def configure(level: str, form: str, stream: TextIO | None = None) -> logging.Handler:
    """Send every log record from `level` up to `stream` (stderr), one line each.

    Args:
        form: `text` or `json`.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    return handler


class TextLines(logging.Formatter):
    """`2026-11-30T12:00:00.123Z INFO gateway.app: message key=value`"""

    def format(self, record: logging.LogRecord) -> str:
        extras = "".join(f" {key}={_shown(value)}" for key, value in _extras(record).items())
        trouble = f" | {self.formatException(record.exc_info)}" if record.exc_info else ""
        line = f"{record.levelname} {record.name}: {record.getMessage()}{extras}{trouble}"
        return f"{_instant(record)} {one_line(line)}"


class JsonLines(logging.Formatter):
    """One object a line: `at`, `level`, `logger`, `message`, what `extra=` said, `exception`."""

    def format(self, record: logging.LogRecord) -> str:
        fields = _extras(record) | {
            "at": _instant(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, default=str)  # ASCII, so neither U+2028 nor a surrogate gets out


def one_line(text: str) -> str:
    """Return the text with every character escaped that could end a line or steer a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _extras(record: logging.LogRecord) -> dict[str, object]:
    return {key: value for key, value in record.__dict__.items() if key not in _ALWAYS}


def _shown(value: object) -> str:
    """Return a value so that it can not be taken for another key and its value."""
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if " " in text or '"' in text else text


def _instant(record: logging.LogRecord) -> str:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
    return f"{stamp}.{int(record.msecs):03d}Z"


def of_job(job_id: int, request_id: str | None) -> "logging.LoggerAdapter[logging.Logger]":
    """Return a logger whose lines carry the job and the request that asked for it."""
    extra = {"job_id": job_id, "request_id": request_id}
    return logging.LoggerAdapter(logging.getLogger("gateway.job"), extra)
