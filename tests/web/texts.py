"""Finds every text of the pages and of the experiments that has to be said in each language."""

import re
from collections.abc import Iterator
from pathlib import Path

from babel.messages.extract import extract_python
from jinja2.ext import babel_extract

import gateway

ROOT = Path(gateway.__file__).parent
LAB = ROOT.parent / "tools/lab"
_PYTHON = {"N_": None, "gettext": None, "_plain": None, "_said": None, "Said": (1, 2)}
_LAB = {"_": None, "gettext": None, "N_": None}
_JINJA = {"_": None, "ngettext": (1, 2)}
_OPTIONS = {"extensions": "", "silent": "false"}

Text = str | tuple[str, str]


def texts() -> set[Text]:
    """Return each message id: a text, or a pair where it has a plural."""
    return {text for text in _found() if text}


def _found() -> Iterator[Text]:
    for file in (ROOT / "alarm_texts.py", *(ROOT / "web").rglob("*.py"), ROOT / "languages.py"):
        with file.open("rb") as source:
            yield from _pairs(extract_python(source, list(_PYTHON), [], {}))
    for file in LAB.glob("*.py"):
        with file.open("rb") as source:
            yield from _pairs(extract_python(source, list(_LAB), [], {}))
        yield from re.findall(r'^TITLE = "(.+)"$', file.read_text(encoding="utf-8"), re.MULTILINE)
    for file in (*(ROOT / "web/page").rglob("*.html"), LAB / "page.html"):
        with file.open("rb") as source:
            yield from _pairs(babel_extract(source, list(_JINJA), [], _OPTIONS))


def _pairs(extracted: Iterator[tuple[object, str, object, object]]) -> Iterator[Text]:
    for _, function, message, _ in extracted:
        parts = message if isinstance(message, tuple) else (message,)
        said = [part for part in parts if isinstance(part, str)]
        if function in ("ngettext", "Said") and len(said) > 1:
            yield said[0] if said[0] == said[1] else (said[0], said[1])
        elif said:
            yield said[0]
