import sensors


def test_a_wrong_entry_is_complained_of_and_costs_only_itself():
    complaints = []
    made = sensors.build(
        [{"type": "tricorder"}, {}, {"type": "tricorder", "name": "nose"}], complaints.append
    )
    assert made == []
    assert complaints == [
        "sensor tricorder: unknown type tricorder",
        "sensor None: unknown type None",
        "sensor nose: unknown type tricorder",
    ]
