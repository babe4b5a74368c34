"""What the outbox does to a flash: room, wear and files, on a littlefs of few blocks."""

from collections.abc import Iterator
from typing import Any

import pytest

from tools.flash_bed import BLOCK_BYTES, Board, Flash

ALL = 1 << 30


class Bench:
    """An outbox on a flash, and what it costs there."""

    def __init__(self, board: Board, **bounds: Any) -> None:
        self.board = board
        self.outbox = self.open(**bounds)

    def open(self, **bounds: Any) -> Any:
        limits = {"max_bytes": 1 << 20, "max_count": 100_000, **bounds}
        return self.board.load("outbox").Outbox("/outbox", **limits)

    def put(self, count: int, size: int = 70) -> list[int]:
        return [self.outbox.put(bytes([number % 250 + 1]) * size) for number in range(count)]

    def waiting(self) -> list[int]:
        return [key for key, _ in self.outbox.batch(ALL, ALL)]

    def free_blocks(self) -> int:
        return self.board.os.statvfs("/")[4]

    def names(self, kind: str = "") -> list[str]:
        return [name for name in self.board.os.listdir("/outbox") if name.startswith(kind)]

    def erases(self) -> int:
        return sum(operation.data is None for operation in self.board.flash.journal)

    def fill(self, leave: int) -> None:
        """Let somebody else fill the flash up to so many blocks."""
        with self.board.open("/other", "wb") as file:
            for _ in range(self.free_blocks() - leave):
                file.write(bytes(BLOCK_BYTES - 8 * 4))  # and its pointers


@pytest.fixture
def board() -> Iterator[Board]:
    with Board(Flash(32)) as board:
        yield board


@pytest.mark.parametrize("size", [70, 120, 121, 1024])
def test_eight_blocks_stay_free_and_the_newest_wait(board: Board, size: int) -> None:
    bench = Bench(board)
    least_free = 32
    keys = []
    for _ in range(1000):
        keys += bench.put(1, size)
        least_free = min(least_free, bench.free_blocks())
    assert bench.outbox.dropped > 0
    assert least_free >= 8
    assert least_free <= 10, "room is left unused"
    assert bench.waiting() == keys[bench.outbox.dropped :]


def test_the_newest_stay_when_others_fill_the_flash(board: Board) -> None:
    bench = Bench(board)
    bench.put(100)
    bench.fill(leave=3)
    keys = bench.put(40)
    assert bench.waiting()[-40:] == keys


def test_put_on_a_full_flash_drops_the_oldest_and_goes_on(board: Board) -> None:
    bench = Bench(board, free_blocks=0)
    keys = bench.put(6, 1000)
    bench.fill(leave=0)
    new = bench.put(3, 1000)
    assert bench.waiting() == (keys + new)[bench.outbox.dropped :]
    assert 1 <= bench.outbox.dropped <= 6


def test_put_raises_28_when_there_is_nothing_to_drop(board: Board) -> None:
    bench = Bench(board)
    bench.fill(leave=0)
    with pytest.raises(OSError, match="28"):
        bench.put(1, 1000)
    board.os.remove("/other")
    assert bench.waiting() == []
    assert bench.put(1, 1000) == bench.waiting()


def test_put_raises_28_when_dropping_does_not_help(board: Board) -> None:
    bench = Bench(board, free_blocks=0)
    (key,) = bench.put(1, 70)
    bench.fill(leave=0)
    with pytest.raises(OSError, match="28"):
        bench.put(60, 1000)
    assert bench.waiting() != [key]
    board.os.remove("/other")
    assert bench.put(1, 1000) > [key]


@pytest.mark.parametrize("left", [9, 10])
def test_room_is_kept_between_folds_too(board: Board, left: int) -> None:
    bench = Bench(board)
    bench.put(60, 121)
    bench.fill(leave=left)
    bench.outbox = bench.open()
    for _ in range(14):
        bench.put(1, 121)
        assert bench.free_blocks() >= 8


def test_room_taken_by_the_dead_letter_is_given_back(board: Board) -> None:
    bench = Bench(board)
    bench.put(600)
    bench.put(6, 1000)
    for key in bench.waiting()[-5:]:
        bench.outbox.bury(key, "bad")
    bench.put(1)
    assert bench.free_blocks() >= 8


def test_without_room_for_a_fold_nothing_is_lost_and_it_is_not_tried_each_time(
    board: Board,
) -> None:
    bench = Bench(board, free_blocks=0)
    keys = bench.put(79, 20)
    bench.fill(leave=0)
    board.calls.clear()
    keys += bench.put(40, 20)
    assert bench.waiting() == keys[bench.outbox.dropped :]
    assert bench.outbox.dropped < 40
    assert board.calls["statvfs"] < 12


def test_without_room_for_a_segment_the_newest_stay_in_their_slots(board: Board) -> None:
    bench = Bench(board)
    bench.put(130)
    bench.fill(leave=6)
    least = 130
    for _ in range(300):
        bench.put(1)
        least = min(least, len(bench.outbox))
    assert bench.outbox.dropped > 0
    assert least >= 80
    assert bench.names("s") == []


def test_a_fold_that_can_not_be_renamed_changes_nothing(board: Board) -> None:
    bench = Bench(board)
    rename = board.os.rename

    def no_fold(old: str, new: str) -> None:
        if old.endswith("/tmp"):
            raise OSError(28, "no room")
        rename(old, new)

    board.os.rename = no_fold  # type: ignore[method-assign]  # a flash that fails there
    keys = bench.put(100)
    assert bench.waiting() == keys
    assert len(bench.outbox) == 100
    assert bench.outbox.torn == 0
    assert bench.names("tmp") == []


def test_what_the_mark_can_not_tell_is_deleted_one_by_one(board: Board) -> None:
    bench = Bench(board)
    keys = bench.put(110)

    def no_room(old: str, new: str) -> None:
        raise OSError(28, "no room")

    board.os.rename = no_room  # type: ignore[method-assign]  # a flash that fails there
    bench.outbox.remove(keys[:105])
    assert bench.waiting() == keys[105:]
    bench.outbox = bench.open()
    assert bench.waiting() == keys[105:]


def test_bury_without_room_leaves_the_record_waiting(board: Board) -> None:
    bench = Bench(board, free_blocks=0)
    keys = bench.put(3)
    bench.fill(leave=0)
    with pytest.raises(OSError, match="28"):
        bench.outbox.bury(keys[1], "bad")
    assert bench.waiting() == keys
    assert bench.outbox.dead == 0
    board.os.remove("/other")
    bench.outbox.bury(keys[1], "bad")
    assert bench.waiting() == [keys[0], keys[2]]
    assert bench.outbox.dead == 1


def test_a_letter_that_could_not_be_written_leaves_no_file(board: Board) -> None:
    bench = Bench(board, free_blocks=0)
    keys = bench.put(2) + bench.put(1, 1000)
    bench.outbox.bury(keys[0], "bad")
    bench.fill(leave=0)
    with pytest.raises(OSError, match="28"):
        bench.outbox.bury(keys[2], "bad")
    assert len(board.os.listdir("/outbox/dead")) == bench.outbox.dead == 1


def test_a_segment_is_dropped_in_pieces_that_fit_in_ram(board: Board) -> None:
    told = []

    def on_drop(key: int, data: bytes) -> None:
        told.append(key)
        if len(told) == 40:
            raise RuntimeError("no more")

    bench = Bench(board, on_drop=on_drop)
    with pytest.raises(RuntimeError, match="no more"):
        bench.put(2000)
    assert 40 - 16 <= bench.outbox.dropped < 40


@pytest.mark.parametrize("size", [200, 1024])
def test_long_records_give_their_blocks_back(board: Board, size: int) -> None:
    bench = Bench(board)
    bench.put(1)
    free = bench.free_blocks()
    for _ in range(4):
        bench.outbox.remove(bench.put(10, size))
    bench.put(60, size)
    assert free - bench.free_blocks() < 60 * size / BLOCK_BYTES + 20, "stale slots hold blocks"
    bench.outbox.remove(bench.waiting())
    assert free - bench.free_blocks() <= 4


def test_the_flash_is_asked_seldom(board: Board) -> None:
    bench = Bench(board)
    board.calls.clear()
    bench.put(1000)
    assert bench.outbox.dropped > 0
    assert board.calls["listdir"] == 0
    assert board.calls["statvfs"] < 200


@pytest.mark.parametrize(("size", "most"), [(70, 0.05), (85, 0.06), (100, 0.06), (120, 0.07)])
def test_a_reading_on_line_costs_few_erases(board: Board, size: int, most: float) -> None:
    bench = Bench(board)
    before = bench.erases()
    for _ in range(500):
        bench.outbox.remove(bench.put(1, size))
    assert (bench.erases() - before) / 500 <= most


def test_a_full_outbox_costs_few_erases(board: Board) -> None:
    bench = Bench(board, max_count=300)
    bench.put(300, 100)
    before = bench.erases()
    bench.put(500, 100)
    assert bench.outbox.dropped == 500
    assert (bench.erases() - before) / 500 <= 0.12
