"""Brings a database to today's schema: `sql/migrations/NNNN_name.sql`, in order, forward only."""

import sqlite3
from collections.abc import Iterator
from importlib.resources import files

from gateway.errors import Misconfigured

APPLICATION_ID = 0x46504F53  # "FPOS", in the file's header: this database is ours


def migrations() -> list[tuple[int, str]]:
    """Return (number, SQL) of each migration, lowest number first."""
    folder = files(__package__).joinpath("sql", "migrations")
    found = [(int(f.name[:4]), f.read_text(encoding="utf-8")) for f in folder.iterdir()]
    return sorted(found)


def newest() -> int:
    return migrations()[-1][0]


def migrate(connection: sqlite3.Connection) -> None:
    """Apply what is missing, in one transaction; of several processes that try, one does it.

    Raises:
        Misconfigured: the database was made by a newer version.
    """
    if _version(connection) == newest():
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for number, sql in migrations():
            if number > _version(connection):
                for statement in _statements(sql):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {number:d}")  # takes no parameter
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID:d}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _version(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > newest():
        raise Misconfigured(
            f"the database was made by a newer Fieldpost (schema {version}, this one knows "
            f"{newest()}): start that version, or give another --db"
        )
    return version


def _statements(sql: str) -> Iterator[str]:
    statement = ""
    for line in sql.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
