import lost


def _lost(*ids):
    one = lost.Lost()
    for reading_id in ids:
        one.add(reading_id)
    return one


def test_neighbours_are_one_range():
    one = _lost("d-0000000a1-5", "d-0000000a1-6", "d-0000000a1-4")
    assert one.ranges() == [("0000000a1", 4, 6)]


def test_the_number_between_two_ranges_makes_them_one():
    one = _lost("d-0000000a1-5", "d-0000000a1-7", "d-0000000a1-6")
    assert one.ranges() == [("0000000a1", 5, 7)]


def test_one_id_twice_is_one_id():
    assert _lost("d-0000000a1-5", "d-0000000a1-5").ranges() == [("0000000a1", 5, 5)]


def test_boots_are_kept_apart():
    one = _lost("d-0000000a1-5", "d-0000000a2-6")
    assert sorted(one.ranges()) == [("0000000a1", 5, 5), ("0000000a2", 6, 6)]


def test_a_device_may_have_dashes_in_its_name():
    assert _lost("a-b-c-0000000a1-5").ranges() == [("0000000a1", 5, 5)]


def test_an_id_outside_the_grammar_explains_no_gap():
    assert _lost("x", "", "no-number-here", "one-two").ranges() == []


def test_what_was_acknowledged_is_said_no_more():
    one = _lost("d-0000000a1-5", "d-0000000a1-9")
    one.forget([("0000000a1", 5, 5)])
    assert one.ranges() == [("0000000a1", 9, 9)]


def test_a_range_that_grew_while_it_travelled_is_said_again():
    one = _lost("d-0000000a1-5")
    sent = one.ranges()
    one.add("d-0000000a1-6")
    one.forget(sent)
    assert one.ranges() == [("0000000a1", 5, 6)]


def test_the_list_is_bounded_and_goes_on_merging():
    one = _lost(*[f"d-0000000a1-{n}" for n in range(1, 200, 2)])
    assert len(one.ranges()) == one.max_ranges
    one.add("d-0000000a1-2")
    assert ("0000000a1", 1, 3) in one.ranges()
