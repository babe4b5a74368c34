"""A board through an outage, a full flash and a kill: is anything lost without a word?"""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from tools.lab.finding import Finding, Table
from tools.lab.site import Site
from tools.ledger import Ledger
from tools.scene import Scene

TITLE = "Books that balance"

_SIZE = "256K"  # little is left beside the firmware
_PERIOD_MS = 10
_DROPPED = 200  # of so many places it has run out, when we are done with it
_BATCHES = 6  # that have arrived when we begin to count
_WITHIN_S = 240.0


class Told(NamedTuple):
    """What the gateway has of the board, from its own tables."""

    stored: int
    duplicates: int
    in_quarantine: int
    called_lost: int  # that the board said will never come
    missing: int  # that nobody has said anything of


async def run(site: Site) -> Finding:
    scene = Scene(site.folder, site.children)
    await scene.open(1, _PERIOD_MS, "--size", _SIZE)
    [board] = scene.boards
    trace = site.folder / f"{board.name}.trace"
    await site.until(lambda: _has(trace, b'{"acked"', 1), "the first reading arrived", _WITHIN_S)
    await scene.kill_gateway()
    await board.kill()
    await scene.start(board)
    enough = max(20, round(_DROPPED * site.scale))
    await site.until(lambda: _has(trace, b'{"dropped"', enough), "the flash is full", _WITHIN_S)
    await scene.start_gateway()
    await site.until(lambda: _has(trace, b'{"acked"', _BATCHES), "the board delivers", _WITHIN_S)
    drained = await scene.drained()
    await site.until(lambda: _explained(scene.database), "all that is missing is explained")
    await board.kill()
    [book] = scene.books()
    return _tell(site, book, told(scene.database), drained)


async def _has(trace: Path, event: bytes, count: int) -> bool:
    return _count(trace, event) >= count


def _count(trace: Path, event: bytes) -> int:
    return trace.read_bytes().count(event) if trace.exists() else 0


async def _explained(database: Path) -> bool:
    return told(database).missing == 0


def told(database: Path) -> Told:
    """Return what the gateway says of its one device."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:

        def one(sql: str) -> int:
            return int(connection.execute(sql).fetchone()[0])

        return Told(
            one("SELECT count(*) FROM readings"),
            one("SELECT coalesce(sum(duplicates), 0) FROM device"),
            one("SELECT coalesce(sum(quarantined), 0) FROM device"),
            one("SELECT coalesce(sum(last - first + 1), 0) FROM lost"),
            one("SELECT coalesce(sum(last - first + 1), 0) FROM gap"),
        )


def _tell(site: Site, book: Ledger, gateway: Told, drained: bool) -> Finding:
    _ = site.gettext
    board = book.counts()
    finding = Finding(_(TITLE))
    finding.say(_(
        "A board with a very small flash takes a reading every %(period)s ms. The gateway is"
        " killed, then the board's power is cut and comes back. It writes into its flash until that"
        " is full; then it has to give up the oldest readings, and says which. In the end the"
        " gateway is back. Who counts on"
        " both sides must be able to say of each reading where it is.", period=_PERIOD_MS,
    ))  # fmt: skip
    finding.show(Table(
        (_("what"), _("the board says"), _("the gateway says")),
        [
            (_("taken"), site.number(board["taken"]), ""),
            (_("stored"), "", site.number(gateway.stored)),
            (_("waiting on the flash"), site.number(board["waiting"]), ""),
            (_("dropped, as the flash was full"), site.number(board["dropped"]),
             site.number(gateway.called_lost)),
            (_("dead: refused for good"), site.number(board["dead"]),
             site.number(gateway.in_quarantine)),
            (_("came twice, kept once"), "", site.number(gateway.duplicates)),
            (_("missing without a word"), "", site.number(gateway.missing)),
        ],
    ))  # fmt: skip
    faults = book.faults()
    finding.say(_("What does not balance: %(faults)s", faults="; ".join(faults) or _("nothing")))
    finding.claim(
        _("All that the board had was settled: it arrived, or the board said it is gone"), drained
    )
    finding.claim(_("Each reading is stored, waiting, dropped or dead, and none has two rows"),
                  not faults)  # fmt: skip
    finding.claim(_("The flash was full, and the board said what it gave up"),
                  board["dropped"] > 0)  # fmt: skip
    finding.claim(_("For the gateway nothing is missing that nobody has explained"),
                  gateway.missing == 0)  # fmt: skip
    finding.figures = {"board": board, "gateway": gateway._asdict(), "faults": faults}
    return finding
