"""The limits in force, each read from where it is set."""

import re
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from gateway.config import Config
from gateway.store.database import connect
from gateway.web import prefer
from tools.lab.finding import Table
from tools.lab.kinds import registry
from tools.lab.site import Site

_FIRMWARE = Path(__file__).parents[2] / "device" / "uplink.py"
_EXCHANGE = re.compile(r"^_EXCHANGE_MS = ([\d_]+)", re.MULTILINE)


class Limit(NamedTuple):
    """`seconds` None: the project sets none."""

    who: str
    seconds: float | None
    where: str


def of_response(site: Site) -> list[Limit]:
    """Return who waits for an answer, and for how long, from the outside to the inside."""
    _, web = site.gettext, "gateway/web"
    return [
        Limit(_("client: a board, for a whole exchange"), board_s(), "device/uplink.py"),
        Limit(_("proxy: none of ours; one in front has its own"), None, "docs/operations.md"),
        Limit(_("server: for the body to arrive"), Config().body_timeout_s, "body_timeout_s"),
        Limit(_("server: at most, for who prefers to wait"), prefer.MOST_S, f"{web}/prefer.py"),
        Limit(_("database: for another writer"), _busy_s(site), "gateway/store/database.py"),
    ]


def of_work(site: Site, kind: str) -> Limit:
    """Return how long one try of a kind may take."""
    where = "gateway/handlers" if kind not in ("lasting", "hopeless") else "gateway/kinds.py"
    limit_s = registry({"folder": str(site.folder)})[kind].timeout_s
    return Limit(site.gettext("work: one try of %(kind)s", kind=kind), limit_s, where)


def table(site: Site, limits: list[Limit]) -> Table:
    _ = site.gettext
    rows = [
        (who, "-" if seconds is None else f"{site.number(seconds, 2)} s", where)
        for who, seconds, where in limits
    ]
    return Table((_("who waits"), _("at most"), _("set in")), rows)


def board_s() -> float:
    """Return how long a board gives an exchange, in s."""
    found = _EXCHANGE.search(_FIRMWARE.read_text(encoding="utf-8"))
    assert found, "the firmware's limit has another name"
    return int(found[1]) / 1000


def _busy_s(site: Site) -> float:
    with closing(connect(str(site.folder / "limits.db"))) as connection:
        return int(connection.execute("PRAGMA busy_timeout").fetchone()[0]) / 1000
