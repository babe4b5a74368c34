import json

import backoff

_VECTORS = __file__.rsplit("/", 2)[0] + "/vectors/waits.json"


def test_waits_are_those_of_the_vectors():
    with open(_VECTORS, "rb") as file:
        vectors = json.load(file)
    assert len(vectors) > 50
    for one in vectors:
        assert backoff.wait_ms(one["failures"], lambda one=one: one["random"]) == one["wait_ms"], (
            one
        )


def test_a_count_that_ran_for_years_is_no_large_power():
    assert backoff.wait_ms(10**15, lambda: 0.0) == 32000


def test_every_wait_is_an_integer_for_sleep_ms():
    assert isinstance(backoff.wait_ms(3, lambda: 0.123), int)


def test_the_wait_at_the_cap_is_that_of_many_failures():
    assert backoff.at_cap_ms(lambda: 0.25) == backoff.wait_ms(1000, lambda: 0.25) == 40000


def test_other_numbers_may_be_given():
    assert backoff.wait_ms(3, lambda: 0.0, initial_ms=10, factor=3, cap_ms=1000) == 90
