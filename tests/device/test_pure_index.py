# Runs under pytest and on MicroPython.
from index import File, Index

OLD, SLOT, NEW = File(1, 50, 50, 500), File(60, 60, 1, 7), File(70, 99, 20, 200)


def index_of(*files):
    index = Index(0)
    for file in files:
        index.add(file)
    index.sort()
    return index


def test_files_come_oldest_first_also_when_a_slot_is_older_than_a_segment():
    assert list(index_of(NEW, SLOT, OLD).files()) == [OLD, SLOT, NEW]


def test_files_may_go_while_they_are_looked_at():
    index = index_of(OLD, SLOT, NEW)
    seen = []
    for file in index.files():
        seen.append(file)
        index.forget(file)
    assert seen == [OLD, SLOT, NEW]
    assert index.count == index.nbytes == 0


def test_files_begin_with_the_one_that_may_hold_the_key():
    index = index_of(OLD, SLOT, NEW)
    assert list(index.files(50)) == [OLD, SLOT, NEW]
    assert list(index.files(51)) == [SLOT, NEW]
    assert list(index.files(100)) == []


def test_a_key_is_held_by_the_file_that_spans_it():
    index = index_of(OLD, SLOT, NEW)
    assert [index.holding(key) for key in (1, 50, 60, 99)] == [OLD, OLD, SLOT, NEW]
    assert [index.holding(key) for key in (0, 51, 61, 100)] == [None] * 4


def test_it_counts_what_waits():
    index = index_of(OLD, SLOT)
    assert (index.count, index.nbytes) == (51, 507)
    index.wait(OLD, 10, 100)
    assert (index.count, index.nbytes) == (11, 107)
    index.replace(OLD, File(1, 50, 40, 400))
    assert (index.count, index.nbytes) == (11, 107)
    index.forget(File(1, 50, 40, 400))
    assert (index.count, index.nbytes) == (1, 7)


def test_settled_moves_up_to_the_oldest_that_waits_and_never_back():
    index = index_of(SLOT, NEW)
    assert index.settle(100) == 59
    index.forget(SLOT)
    assert index.settle(100) == 69
    index.go(75, True)
    assert index.settle(100) == 75
    index.forget(NEW)
    assert index.settle(100) == 99
    index.add(File(100, 100, 1, 1))
    assert index.settle(101) == 99


def test_gone_are_the_settled_and_those_that_went_out_of_order():
    index = index_of(OLD)
    index.go(7, False)
    index.go(3, True)
    assert [key for key in range(1, 10) if index.is_gone(key)] == [1, 2, 3, 7]
    assert [key for key in range(1, 10) if index.went_early(key)] == [7]
    index.forget(OLD)
    assert not index.is_gone(7)
