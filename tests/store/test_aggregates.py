"""Aggregates against plain Python: any order of arrival, any steps, any interruption."""

import sqlite3
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.store import aggregates, rebuilds
from gateway.store.aggregates import DAY_MS, HOUR_MS
from gateway.store.rebuilds import Range
from tests.store.aggregate_books import Books, Reading

NOON_MS = 20_000 * DAY_MS + 12 * HOUR_MS
PLAIN = aggregates.calibration_of({})
CALIBRATION = {
    "a": {"s": {"scale": -2.0, "offset": 0.5}, "t": {"offset": 1.0}}, "gone": {"s": {"scale": 3.0}},
}  # fmt: skip
CALIBRATED = aggregates.calibration_of({"calibration": CALIBRATION})
JOB = 7

# Eighths are added without rounding, so that the sums are equal in whatever order they are made.
contents = st.one_of(
    st.integers(-8_000_000, 8_000_000).map(lambda n: n / 8), st.sampled_from(["on", None])
)
readings = st.builds(
    Reading,
    st.sampled_from("ab"),
    st.sampled_from("st"),
    st.integers(-4, 4).map(lambda n: NOON_MS + n * HOUR_MS * 4),
    contents,
)
actions = st.one_of(readings, st.sampled_from(["step", "die", *["rebuild"] * 3, "die there"]))


def transaction(
    connection: sqlite3.Connection,
    work: Callable[[sqlite3.Connection], object],
    *,
    dies: bool = False,
) -> object:
    connection.execute("BEGIN IMMEDIATE")
    result = work(connection)
    connection.execute("ROLLBACK" if dies else "COMMIT")
    return result


def follow_all(books: Books, calibration: str = PLAIN, rows: int = 3) -> None:
    while transaction(books.connection, lambda c: aggregates.follow(c, calibration, rows)):
        pass


def unplaced(books: Books) -> int:
    """Return how many aggregates are made anew and not in place."""
    sql = "SELECT count(*) FROM aggregate WHERE rebuild <> 0"
    count: int = books.connection.execute(sql).fetchone()[0]
    return count


class Rebuilding:
    """A rebuild that is taken one step at a time, as `handlers.rebuild` takes it."""

    def __init__(self, books: Books, wanted: Range, calibration: str) -> None:
        self._books = books
        self._wanted = wanted
        self._calibration = calibration
        self.is_over = False
        self._has_counted = False

    def step(self, *, dies: bool = False) -> None:
        connection = self._books.connection
        if self.is_over:
            return

        def work(c: sqlite3.Connection) -> bool:
            if not rebuilds.begin(c, JOB, self._wanted, self._calibration, rows=1):
                return False
            if not self._has_counted:
                before = rebuilds.reached(c, JOB)
                self._has_counted = rebuilds.count(c, JOB, 0, rows=2) == before
                return False
            return rebuilds.put_in_place(c, JOB, 0, rows=1)

        self.is_over = bool(transaction(connection, work, dies=dies)) and not dies

    def end(self) -> None:
        while not self.is_over:
            self.step()


@settings(max_examples=300)
@given(st.lists(actions, max_size=60), st.sampled_from([None, "a"]))
def test_aggregates_hold_each_reading_once_in_any_order_of_arrival_and_interruption(
    done: list[Reading | str], device: str | None
) -> None:
    books = Books()
    try:
        books.arrive(Reading("a", "s", NOON_MS, 1.0))
        wanted = Range(1 if device else None, NOON_MS - NOON_MS % DAY_MS, 2**62)
        rebuilding = Rebuilding(books, wanted, PLAIN)
        for what in done:
            if isinstance(what, Reading):
                books.arrive(what)
            elif what.startswith("rebuild"):
                rebuilding.step()
            elif what == "die there":
                rebuilding.step(dies=True)
            else:
                transaction(
                    books.connection,
                    lambda c: aggregates.follow(c, PLAIN, rows=2),
                    dies=what == "die",
                )
        follow_all(books)
        assert books.counted() == books.expected()
        rebuilding.end()
        assert books.counted() == books.expected()
        assert unplaced(books) == 0
    finally:
        books.connection.close()


@given(st.lists(readings, min_size=1, max_size=30))
def test_a_calibration_shows_in_the_aggregates_and_in_no_reading(arrived: list[Reading]) -> None:
    books = Books()
    try:
        for reading in arrived:
            books.arrive(reading)
        stored = books.connection.execute("SELECT value, text, error FROM reading").fetchall()
        follow_all(books, CALIBRATED)
        assert books.counted() == books.expected(CALIBRATION)
        assert (
            stored == books.connection.execute("SELECT value, text, error FROM reading").fetchall()
        )
    finally:
        books.connection.close()


@pytest.fixture
def books() -> Iterator[Books]:
    made = Books()
    yield made
    made.connection.close()


def test_a_rebuild_brings_a_new_calibration_to_its_range_only(books: Books) -> None:
    for day in (0, 1, 2):
        books.arrive(Reading("a", "s", NOON_MS + day * DAY_MS, 8.0))
        books.arrive(Reading("b", "s", NOON_MS + day * DAY_MS, 8.0))
    follow_all(books)
    first_ms = NOON_MS - NOON_MS % DAY_MS
    Rebuilding(books, Range(1, first_ms + DAY_MS, first_ms + 2 * DAY_MS), CALIBRATED).end()
    sums = books.connection.execute(
        "SELECT device, from_ms, sum FROM aggregates WHERE span_ms = ? ORDER BY 1, 2", (DAY_MS,)
    ).fetchall()
    assert [(device, total) for device, _, total in sums] == [
        ("a", 8.0), ("a", -15.5), ("a", 8.0), ("b", 8.0), ("b", 8.0), ("b", 8.0),
    ]  # fmt: skip


def test_what_arrives_for_an_aggregate_that_is_in_place_again_joins_that_one(books: Books) -> None:
    for hour in (0, 1):
        books.arrive(Reading("a", "s", NOON_MS + hour * HOUR_MS, 8.0))
    follow_all(books)
    rebuilding = Rebuilding(books, Range(None, 0, 2**62), PLAIN)
    past = "SELECT coalesce(max(past_sensor_id), 0) FROM rebuild"
    while not books.connection.execute(past).fetchone()[0]:
        rebuilding.step()
    books.arrive(Reading("a", "s", NOON_MS, 9.0))
    follow_all(books)
    rebuilding.end()
    assert books.counted() == books.expected()
    assert unplaced(books) == 0


def test_a_rebuild_takes_away_what_has_no_reading(books: Books) -> None:
    books.arrive(Reading("a", "s", NOON_MS, 8.0))
    follow_all(books)
    books.connection.execute("UPDATE aggregate SET count = 99, from_ms = from_ms + span_ms")
    first_ms = NOON_MS - NOON_MS % DAY_MS
    Rebuilding(books, Range(None, first_ms, first_ms + 2 * DAY_MS), PLAIN).end()
    assert books.counted() == books.expected()


def test_a_rebuild_begun_with_another_calibration_begins_anew(books: Books) -> None:
    for hour in range(4):
        books.arrive(Reading("a", "s", NOON_MS + hour * HOUR_MS, 8.0))
    follow_all(books)
    everything = Range(None, 0, 2**62)
    Rebuilding(books, everything, PLAIN).step()
    Rebuilding(books, everything, CALIBRATED).end()
    assert books.counted() == books.expected(CALIBRATION)


def test_what_an_ended_job_left_of_a_rebuild_is_cleared_away(books: Books) -> None:
    for hour in range(4):
        books.arrive(Reading("a", "s", NOON_MS + hour * HOUR_MS, 8.0))
    follow_all(books)
    Rebuilding(books, Range(None, 0, 2**62), PLAIN).step()
    while transaction(books.connection, lambda c: rebuilds.clear(c, JOB + 1, rows=1)):
        pass
    assert unplaced(books) == 0
    assert books.counted() == books.expected()


@pytest.mark.parametrize("scale", [1.0, 1e300])
def test_values_at_the_edge_of_a_float_do_not_stop_the_aggregator(
    books: Books, scale: float
) -> None:
    for value in (1.7e308, 1.7e308, -1.7e308, -1.7e308):
        books.arrive(Reading("a", "s", NOON_MS, value))
    follow_all(books, aggregates.calibration_of({"calibration": {"a": {"s": {"scale": scale}}}}), 2)
    books.arrive(Reading("b", "s", NOON_MS, 2.0))
    follow_all(books)
    counts = books.connection.execute("SELECT count FROM aggregates WHERE span_ms = ?", (DAY_MS,))
    assert counts.fetchall() == [(4,), (1,)]


def test_steps_pass_over_numbers_that_retention_took_away(books: Books) -> None:
    for hour in range(6):
        books.arrive(Reading("a", "s", NOON_MS + hour, 1.0))
    books.connection.execute("UPDATE reading SET id = id + 9000000 WHERE id > 3")
    books.connection.execute("DELETE FROM reading WHERE id < 3")
    follow_all(books)
    row = books.counted()[-1]
    assert (row[4], row[10], row[11], row[12], row[13]) == (4, 1.0, NOON_MS + 2, 1.0, NOON_MS + 5)


def test_a_step_reads_only_its_own_rows(books: Books) -> None:
    from gateway.store import queries

    told = {
        "after": 0, "upto": 9, "calibration": "[]", "rebuild": 0, "device_id": None, "from_ms": 0,
        "to_ms": 9, "past_sensor_id": 0, "past_span_ms": 0, "past_from_ms": 0,
    }  # fmt: skip
    fold = queries.load("aggregates").fold
    plan = [row[3] for row in books.connection.execute("EXPLAIN QUERY PLAN " + fold, told)]
    assert any("SEARCH r USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)" in line for line in plan)
