# Runs under pytest and on MicroPython; each test starts in an empty folder of its own.
import os

from outbox import Outbox

ALL = 1 << 30


def opened(max_bytes=1 << 20, max_count=10_000, **more):
    return Outbox("outbox", max_bytes=max_bytes, max_count=max_count, **more)


def record(number, size=70):
    return (b"%d," % number * size)[:size]


def filled(count, size=70, **more):
    outbox = opened(**more)
    return outbox, [outbox.put(record(number, size)) for number in range(count)]


def waiting(outbox):
    return [key for key, _ in outbox.batch(ALL, ALL)]


def files(kind):
    # "s": segments, "t": what is set aside.
    return sorted("outbox/" + name for name in os.listdir("outbox") if name[:1] == kind)


def spans():
    # (first key, last key) of each segment, oldest first.
    names = [path[len("outbox/s") :].split("-") for path in files("s")]
    return sorted((int(name[0], 16), int(name[1], 16)) for name in names)


def change(path, at, new):
    with open(path, "rb") as file:
        data = file.read()
    with open(path, "wb") as file:
        file.write(data[:at] + new + data[at + len(new) :])


def raises(error, call, *args):
    try:
        call(*args)
    except error as raised:
        return raised
    raise AssertionError("did not raise")


def test_an_empty_outbox_gives_an_empty_batch():
    outbox = opened()
    assert len(outbox) == 0
    assert outbox.batch(64, ALL) == []
    assert outbox.dropped == outbox.dead == outbox.torn == 0


def test_batch_gives_what_was_put_oldest_first_and_removes_nothing():
    outbox, keys = filled(5)
    expected = [(key, record(number)) for number, key in enumerate(keys)]
    assert outbox.batch(64, ALL) == expected
    assert outbox.batch(64, ALL) == expected
    assert len(outbox) == 5


def test_batch_goes_over_slots_and_segments_in_order():
    outbox, keys = filled(170)
    assert len(spans()) == 2
    assert outbox.batch(ALL, ALL) == [(key, record(n)) for n, key in enumerate(keys)]


def test_batch_keeps_to_count_and_bytes_but_gives_at_least_one():
    outbox, keys = filled(120)
    assert [key for key, _ in outbox.batch(64, ALL)] == keys[:64]
    assert [key for key, _ in outbox.batch(64, 700)] == keys[:10]
    assert [key for key, _ in outbox.batch(64, 699)] == keys[:9]
    assert [key for key, _ in outbox.batch(64, 1)] == keys[:1]
    assert [key for key, _ in outbox.batch(0, 0)] == keys[:1]


def test_a_record_has_1_to_1024_bytes():
    outbox = opened()
    raises(ValueError, outbox.put, b"")
    raises(ValueError, outbox.put, bytes(1025))
    for size in (1, 119, 120, 121, 122, 123, 1024):
        key = outbox.put(record(size, size))
        assert outbox.batch(ALL, ALL)[-1] == (key, record(size, size))
    assert len(opened()) == 7


def test_records_are_opaque_bytes():
    outbox = opened()
    odd = [b"\x00", b"\xff" * 120, b"\n", bytes(300), b"\xff" * 1024]
    for data in odd * 8:
        outbox.put(data)
    assert [data for _, data in opened().batch(ALL, ALL)] == odd * 8


def test_what_was_put_is_there_after_opening_again():
    for count in (1, 79, 80, 81, 160):
        outbox, _ = filled(count)
        before = outbox.batch(ALL, ALL)
        assert opened().batch(ALL, ALL) == before
        outbox.remove(waiting(outbox))


def test_keys_only_grow_and_folding_leaves_them():
    outbox, keys = filled(170)
    assert keys == sorted(set(keys))
    assert waiting(outbox) == keys
    assert waiting(opened()) == keys


def test_a_key_is_never_used_again():
    newest = 0
    for count in (1, 3, 70, 300, 1):
        outbox, keys = filled(count)
        assert keys[0] > newest
        newest = keys[-1]
        outbox.remove(keys)
        assert len(outbox) == 0
    assert opened().put(b"x") > newest


def test_remove_ignores_unknown_keys():
    outbox, keys = filled(60)
    outbox.remove([0, keys[-1] + 1, 1 << 40])
    outbox.remove([])
    outbox.remove(iter(()))
    assert waiting(outbox) == keys
    outbox.remove([keys[0]])
    outbox.remove([keys[0]])
    assert waiting(outbox) == keys[1:]


def test_what_was_removed_in_order_stays_removed():
    outbox, keys = filled(170)
    for count in (1, 64, 2, 64):
        outbox.remove([key for key, _ in outbox.batch(count, ALL)])
        left = waiting(outbox)
        assert len(outbox) == len(left)
        outbox = opened()
        assert waiting(outbox) == left
        assert len(outbox) == len(left)
    assert left == keys[131:]


def test_a_new_record_that_was_removed_out_of_order_stays_removed():
    outbox, keys = filled(10)
    outbox.remove([keys[3], keys[9]])
    assert waiting(opened()) == keys[:3] + keys[4:9]


def test_a_folded_record_that_was_removed_out_of_order_is_gone_until_opening():
    outbox, keys = filled(120)
    outbox.remove(keys[3:9])
    assert waiting(outbox) == keys[:3] + keys[9:]
    assert len(outbox) == 114
    outbox.remove(keys[:3])
    assert waiting(opened()) == keys[9:]


def test_what_went_early_stays_gone_once_all_before_it_is():
    outbox, _ = filled(170)
    first, _ = spans()[1]
    outbox.remove(range(first, first + 3))
    outbox.remove(range(1, first))
    assert waiting(outbox) == list(range(first + 3, 171))
    assert waiting(opened()) == list(range(first + 3, 171))


def test_a_whole_segment_that_was_removed_out_of_order_stays_removed():
    outbox, _ = filled(170)
    first, last = spans()[1]
    outbox.remove(range(first - 5, last + 1))
    left = list(range(1, first - 5)) + list(range(last + 1, 171))
    assert waiting(outbox) == left
    assert len(spans()) == 1
    assert [key for key in waiting(opened()) if first <= key <= last] == []


def test_a_stale_slot_does_not_come_back_with_its_segment_gone():
    outbox, keys = filled(100)
    outbox.remove(keys)
    outbox = opened()
    assert len(outbox) == 0
    key = outbox.put(b"new")
    assert waiting(opened()) == [key]


def test_the_number_of_files_stays_small():
    outbox, _ = filled(900)
    assert len(os.listdir("outbox")) < 120
    outbox.remove(waiting(outbox))
    assert files("s") == []
    assert len(os.listdir("outbox")) <= 80 + 1


def test_a_small_outbox_keeps_the_newest_and_tells_before_it_deletes():
    told = []

    def on_drop(key, data):
        assert key in waiting(outbox)
        told.append((key, data))

    outbox = opened(max_count=10, on_drop=on_drop)
    keys = [outbox.put(record(number)) for number in range(25)]
    assert waiting(outbox) == keys[15:]
    assert told == [(key, record(number)) for number, key in enumerate(keys[:15])]
    assert outbox.dropped == 15


def test_the_bound_by_count_holds_to_the_record_within_segments():
    outbox, keys = filled(250, max_count=130)
    assert waiting(outbox) == keys[120:]
    assert outbox.dropped == 120


def test_the_bound_by_bytes_holds():
    outbox, keys = filled(180, max_bytes=7000)
    assert waiting(outbox) == keys[80:]
    assert outbox.dropped == 80


def test_a_record_beyond_the_bound_by_bytes_drops_nothing():
    outbox, keys = filled(3, max_bytes=300)
    assert raises(OSError, outbox.put, bytes(301)).errno == 28
    assert waiting(outbox) == keys


def test_dropped_is_counted_for_life_and_what_was_dropped_stays_away():
    outbox, keys = filled(150, max_count=100)
    outbox = opened(max_count=100)
    assert outbox.dropped == 50
    assert waiting(outbox) == keys[50:]
    outbox.remove(keys)
    outbox = opened(max_count=100)
    assert outbox.dropped == 50


def test_a_failing_on_drop_loses_nothing():
    def on_drop(key, data):
        raise RuntimeError("told")

    outbox, keys = filled(5, max_count=5, on_drop=on_drop)
    raises(RuntimeError, outbox.put, b"x")
    assert waiting(outbox) == keys
    assert opened().dropped == 0


def test_bury_moves_a_record_to_the_dead_letter_with_its_reason():
    outbox, keys = filled(100)
    outbox.bury(keys[1], "value is not a finite number")
    outbox.bury(keys[99], "não")
    expected = [(keys[1], "value is not a finite number", record(1)), (keys[99], "não", record(99))]
    assert list(outbox.dead_letters()) == expected
    assert waiting(outbox) == keys[:1] + keys[2:99]
    assert outbox.dead == 2
    assert outbox.dropped == 0
    assert list(opened().dead_letters()) == expected
    assert opened().dead == 2


def test_bury_ignores_unknown_keys():
    outbox, keys = filled(3)
    outbox.bury(keys[-1] + 1, "no")
    outbox.remove([keys[0]])
    outbox.bury(keys[0], "no")
    assert outbox.dead == 0
    assert list(outbox.dead_letters()) == []
    assert waiting(outbox) == keys[1:]


def test_the_dead_letter_is_bounded_and_the_oldest_go():
    outbox, keys = filled(8, max_dead=3)
    for key in keys:
        outbox.bury(key, "bad")
    assert [key for key, _, _ in outbox.dead_letters()] == keys[5:]
    assert outbox.dead == 8
    assert opened(max_dead=3).dead == 8


def test_a_record_that_came_back_and_is_buried_again_counts_once():
    outbox, keys = filled(100)
    outbox.bury(keys[10], "bad")
    outbox = opened()
    assert keys[10] in waiting(outbox)  # it lies in the middle of a segment
    outbox.bury(keys[10], "bad")
    assert keys[10] not in waiting(outbox)
    assert outbox.dead == 1
    assert len(list(outbox.dead_letters())) == 1


def test_a_long_reason_and_a_long_record_fit():
    outbox, keys = filled(1, size=1024)
    outbox.bury(keys[0], "ü" * 255)
    assert list(opened().dead_letters()) == [(keys[0], "ü" * 100, record(0, 1024))]


def test_a_torn_dead_letter_is_forgotten():
    outbox, keys = filled(2)
    outbox.bury(keys[0], "bad")
    outbox.bury(keys[1], "bad")
    newest = "outbox/dead/" + sorted(os.listdir("outbox/dead"))[-1]
    change(newest, 20, b"?")
    outbox = opened()
    assert outbox.dead == 1
    assert [key for key, _, _ in outbox.dead_letters()] == keys[:1]


def test_a_torn_slot_is_counted_and_costs_only_itself():
    outbox, keys = filled(6)
    with open("outbox/01", "wb"):
        pass
    with open("outbox/03", "wb") as file:
        file.write(b"short")
    change("outbox/05", 30, b"?")
    outbox = opened()
    assert outbox.torn == 3
    assert waiting(outbox) == [keys[0], keys[2], keys[4]]
    new = [outbox.put(record(number)) for number in range(3)]
    assert waiting(opened()) == keys[:5:2] + new
    assert opened().torn == 0


def test_a_slot_damaged_while_open_is_counted_and_costs_only_itself():
    outbox, keys = filled(4)
    change("outbox/01", 30, b"?")
    assert waiting(outbox) == [keys[0], keys[2], keys[3]]
    assert outbox.torn == 1
    assert len(outbox) == 3


def test_a_damaged_record_in_a_segment_costs_only_itself():
    outbox, keys = filled(90)
    (path,) = files("s")
    change(path, 2 * 81 + 30, b"?")
    left = keys[:2] + keys[3:]
    assert waiting(outbox) == left
    assert outbox.torn == 1
    assert len(outbox) == 89
    outbox = opened()
    assert waiting(outbox) == left
    assert outbox.torn == 0
    outbox.remove(left)
    assert len(outbox) == 0
    assert files("s") == []


def test_a_segment_cut_short_anywhere_gives_what_is_whole():
    outbox, keys = filled(90)
    (path,) = files("s")
    with open(path, "rb") as file:
        data = file.read()
    for length in (len(data) - 1, 170, 165, 164, 163, 162, 161, 3, 2, 1, 0):
        with open(path, "wb") as file:
            file.write(data[:length])
        found = waiting(outbox)
        assert found[: length // 81] == keys[: length // 81]
        assert len(outbox) == len(found)
        path = (files("s") or files("t"))[0]


def test_no_garbage_in_a_segment_is_fatal():
    for garbage in (b"\xff\xff\xff", b"\x00\x04\xff", b"\x01\x00\x01", b"\x46\x00\x45"):
        outbox, keys = filled(90)
        change(files("s")[0], 81, garbage)
        found = waiting(outbox)
        assert found[0] == keys[0]
        assert len(found) == len(outbox) < 90
        outbox.remove(keys)
        assert len(opened()) == 0


def test_segments_damaged_from_the_start_are_set_aside_one_at_a_time():
    outbox, keys = filled(170)
    newest = [key for key in keys if key > spans()[-1][1]]
    for path in files("s"):
        change(path, 0, bytes(4))
    assert waiting(outbox) == newest
    assert outbox.torn == 170 - len(newest)
    assert files("s") == []
    assert len(files("t")) == 1
    # Those of the last segment are found once more where they were before they were folded.
    recovered = opened().batch(ALL, ALL)
    assert recovered == [(key, record(key - 1)) for key, _ in recovered]
    assert [key for key, _ in recovered][-len(newest) :] == newest


def test_a_file_that_vanished_or_can_not_be_read_costs_only_itself():
    outbox, _ = filled(90)
    os.remove(files("s")[0])
    os.remove("outbox/00")
    os.mkdir("outbox/00")
    found = waiting(outbox)
    assert len(outbox) == len(found)
    assert outbox.torn == 90 - len(found)
    outbox = opened()
    for number in range(60):
        outbox.put(record(number))
    assert len(waiting(outbox)) == len(outbox) >= 60


def test_files_of_others_are_ignored():
    os.mkdir("outbox")
    for name in ("s", "sensors", "m", "main", "zz", "README", "tmp", "m1-2", "s1-2-3", "dead"):
        with open("outbox/" + name, "wb") as file:
            file.write(b"?")
    outbox, keys = filled(90)
    assert waiting(opened()) == keys
    outbox.remove(keys)
    assert len(opened()) == 0


def test_a_fold_cut_before_its_rename_leaves_the_slots():
    _, keys = filled(5)
    with open("outbox/tmp", "wb") as file:
        file.write(b"half a segm")
    assert waiting(opened()) == keys
    assert files("t") == []


def test_when_folding_fails_nothing_is_lost_and_the_files_stay_few():
    outbox, keys = filled(1)
    os.mkdir("outbox/tmp")
    os.mkdir("outbox/tmp/in the way")
    opened()
    keys += [outbox.put(record(number, 20)) for number in range(250)]
    assert waiting(outbox) == keys[outbox.dropped :]
    assert 110 < len(outbox) < 200
    assert len(os.listdir("outbox")) < 200


def test_a_fold_of_which_one_record_is_whole_loses_it_not():
    outbox, keys = filled(80, size=20)
    for slot in range(80):
        if slot != 7:
            change(f"outbox/{slot:02x}", 12, b"?")
    keys = keys[7:8] + [outbox.put(record(number)) for number in range(100)]
    assert waiting(outbox) == keys
    assert waiting(opened()) == keys


def test_records_that_begin_alike_take_less_room():
    alike = b'["esp32-a4cf12b3d4e5-7f3a17c212-%d","soil",21.5,"Cel",1764529200123]'
    outbox = opened()
    data = [alike % number for number in range(1000, 1080)]
    for one in data:
        outbox.put(one)
    outbox.put(b"another")
    assert spans() == [(1, 80)]
    assert os.stat(files("s")[0])[6] < 80 * 50
    assert [one for _, one in opened().batch(ALL, ALL)][:80] == data


def test_records_of_which_one_begins_another_come_back():
    outbox = opened()
    data = [b"abc" * 100, b"abc", b"a", b"b", b"abc" * 341, b"abc" * 99] * 20
    for one in data:
        outbox.put(one)
    assert len(spans()) > 1
    assert [one for _, one in opened().batch(ALL, ALL)] == data


def test_the_order_stays_when_a_segment_is_damaged():
    outbox, keys = filled(170)
    first = [path for path in files("s") if path.startswith("outbox/s1-")]
    change(first[0], 81 + 30, b"?")
    assert waiting(outbox) == keys[:1] + keys[2:]
    assert waiting(outbox) == keys[:1] + keys[2:]


def test_a_slot_that_can_not_be_written_is_left_alone():
    outbox, keys = filled(1)
    outbox.remove(keys)
    os.remove("outbox/00")
    os.mkdir("outbox/00")
    raises(OSError, outbox.put, b"lost")
    key = outbox.put(b"kept")
    assert outbox.batch(9, ALL) == [(key, b"kept")]


def test_without_its_mark_it_uses_no_key_of_a_waiting_record():
    for count in (5, 100):
        outbox, keys = filled(count)
        os.remove(files("m")[0])
        outbox = opened()
        assert outbox.put(b"new") > keys[-1]
        outbox.remove(waiting(outbox))


def test_the_count_of_the_dead_outlives_their_letters():
    outbox, keys = filled(3, max_dead=0)
    for key in keys:
        outbox.bury(key, "bad")
    assert opened(max_dead=0).dead == 3
    assert len(list(opened(max_dead=0).dead_letters())) <= 1


def test_a_segment_of_which_no_record_was_whole_goes_at_opening():
    os.mkdir("outbox")
    with open("outbox/s1-5-0-0", "wb") as file:
        file.write(b"?" * 400)
    outbox, keys = filled(5, max_count=3)
    assert files("s") == []
    assert waiting(outbox) == keys[2:]


def test_segments_are_in_order_whatever_their_names():
    outbox, keys = filled(400)
    outbox.remove(keys[:70])
    outbox = opened()
    assert len(outbox) == 330
    assert waiting(outbox) == keys[70:]


def test_records_beyond_the_span_of_their_segments_name_do_not_count():
    outbox, keys = filled(90)
    (path,) = files("s")
    os.rename(path, "outbox/s1-9" + path[path.index("-", 11) :])
    outbox = opened(max_count=60)
    assert waiting(outbox)[:9] == keys[:9]
    for number in range(90):
        outbox.put(record(number))
    assert len(outbox) == len(waiting(outbox)) == 60
