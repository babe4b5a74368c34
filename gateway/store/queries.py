"""Named blocks of SQL, from `sql/*.sql`. No value ever becomes part of a statement's text."""

import re
from functools import cache
from importlib.resources import files
from types import SimpleNamespace

_ROW = re.compile(r"VALUES (\([?, ]+\))")
_BLOCK = re.compile(r"^-- name: (\w+)\n(.*?)(?=^-- name: |\Z)", re.MULTILINE | re.DOTALL)


@cache
def load(name: str) -> SimpleNamespace:
    """Return the blocks of `sql/<name>.sql` as attributes, each the text of one statement.

    Raises:
        AttributeError: on reading the result, when the file has no block of that name.
        FileNotFoundError: when there is no such file.
    """
    text = files(__package__).joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")
    return SimpleNamespace(**{block: sql.strip() for block, sql in _BLOCK.findall(text)})


@cache
def for_rows(sql: str, count: int) -> str:
    """Return an INSERT of one row, written for `count` rows: its `VALUES (?, …)` that many times.

    One statement lets go of the interpreter's lock once; `executemany` does so for each row, and
    waits each time until the event loop lets it back in (docs/decisions.md has the figures).
    """
    return _ROW.sub(lambda row: "VALUES " + ", ".join([row[1]] * count), sql)
