"""Sheets of readings as spreadsheets and scripts write them, and what is wrong with others."""

import pytest

from gateway.sheet import BadLine, NoSheet, Sheet

HEAD = b"device,sensor,value,at\n"
AT = "2026-11-30T12:00:00Z"
AT_MS = 1_796_040_000_000


def read(line: str, head: bytes = HEAD):
    return Sheet.of(head).read(line.encode())


def test_a_line_is_a_reading():
    line = read(f"d1,t,21.50,{AT}\r\n")
    assert line.device == "d1"
    assert line.reading == {"sensor": "t", "value": 21.5, "at_ms": AT_MS}


@pytest.mark.parametrize(
    "head",
    [
        b"\xef\xbb\xbfdevice;sensor;value;at\r\n",
        b"Device ; SENSOR;value;at",
        b'"device";"sensor";"value";"at"\n',
    ],
)
def test_semicolons_come_with_a_decimal_comma(head):
    assert read(f"d1;t;21,5;{AT}", head).reading["value"] == 21.5
    assert read(f'd1;"t";"-0,5e1";{AT}', head).reading["value"] == -5
    assert read(f"d1;t;21.5;{AT}", head).reading["value"] == 21.5


@pytest.mark.parametrize(
    ("at", "at_ms"),
    [
        (AT, AT_MS),
        ("2026-11-30T13:00:00+01:00", AT_MS),
        ("2026-11-30 12:00:00.123456+00:00", AT_MS + 123),
        ("20261130T120000Z", AT_MS),
        (str(AT_MS), AT_MS),
        ("0", 0),
    ],
)
def test_an_instant_is_iso_8601_with_an_offset_or_ms(at, at_ms):
    assert read(f"d1,t,1,{at}").reading["at_ms"] == at_ms


@pytest.mark.parametrize(
    "at",
    ["2026-11-30T12:00:00", "2026-02-30T12:00:00Z", "yesterday", "-1", "1.5", "9" * 15,
     "1969-12-31T23:00:00Z", "٣", "2026-11-30"],
)  # fmt: skip
def test_any_other_instant_is_refused(at):
    with pytest.raises(BadLine, match=r"^at "):
        read(f"d1,t,1,{at}")


@pytest.mark.parametrize("value", ["nan", "inf", "1e999", "1_000", "0x10", "1.2.3", "٣", "21,5"])
def test_what_is_no_finite_number_is_refused(value):
    with pytest.raises(BadLine, match="is not a finite number"):
        read(f'd1,t,"{value}",{AT}')


def test_with_two_separators_a_number_is_refused_and_not_guessed():
    with pytest.raises(BadLine):
        read(f"d1;t;1.234,5;{AT}", HEAD.replace(b",", b";"))


def test_truth_is_a_value():
    assert read(f"d1,t,TRUE,{AT}").reading["value"] is True


def test_text_keeps_its_quotes_separators_and_spaces():
    head = b"device,sensor,text,at,unit,id\n"
    line = read(f'd1,t," say ""a, b"" ",{AT},,x-1', head)
    assert line.reading == {"sensor": "t", "text": ' say "a, b" ', "at_ms": AT_MS, "id": "x-1"}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (f",t,1,{AT}", "device is empty"),
        (f"d1, ,1,{AT}", "sensor is empty"),
        ("d1,t,1", "at is empty"),
        (f"a b,t,1,{AT}", "device is not"),
        (f"d1,t,,{AT}", "neither value nor text"),
        (f"d1,t,1,{AT},more", "5 cells"),
        ('d1,"t,1', "quotes"),
    ],
)
def test_a_bad_line_says_why(line, reason):
    with pytest.raises(BadLine, match=reason):
        read(line)


def test_value_and_text_in_one_line_are_refused():
    with pytest.raises(BadLine, match="value and text"):
        read(f"d1,t,1,a,{AT}", b"device,sensor,value,text,at")


def test_what_is_not_utf_8_costs_its_line():
    with pytest.raises(BadLine, match="UTF-8"):
        Sheet.of(HEAD).read(b"d1,t\xe9,1,0")


@pytest.mark.parametrize("line", ["", "\r\n", ",,,\n"])
def test_an_empty_line_is_none(line):
    assert read(line) is None


def test_empty_cells_behind_the_last_column_do_no_harm():
    assert read(f"d1,t,1,{AT},,") is not None


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        (b"", "it lacks device, sensor, at, value or text"),
        (b"device,sensor,value\n", "it lacks at"),
        (b"device,sensor,at\n", "it lacks value or text"),
        (b"device,sensor,value,at,colour\n", "unknown: colour"),
        (b"device,sensor,value,at,at\n", "twice: at"),
        (b"device,sensor,value,at,at_ms\n", "twice: at"),
        ("device,sensor".encode("utf-16"), "UTF-16"),
        (b"d\xe9vice,sensor,value,at", "not UTF-8"),
        (b"d1,t,1,1764529200000\n", "it lacks"),
    ],
)
def test_a_first_line_that_names_no_columns_is_refused(head, reason):
    with pytest.raises(NoSheet, match=reason):
        Sheet.of(head)


def test_the_gateways_own_csv_is_a_sheet():
    from gateway.web.csv_rows import COLUMNS

    line = f"x-1,d1,t,21.5,,Cel,,,,{AT_MS},synced,{AT_MS + 5}"
    found = Sheet.of(",".join(COLUMNS).encode()).read(line.encode())
    assert found.reading == {
        "id": "x-1", "sensor": "t", "value": 21.5, "unit": "Cel", "at_ms": AT_MS
    }  # fmt: skip


def test_two_ways_to_write_the_same_are_the_same():
    one = read(f"d1,t,21.50,{AT}")
    other = read("d1;t;21,5;2026-11-30T13:00:00+01:00", HEAD.replace(b",", b";"))
    assert one.identity() == other.identity()
    assert read(f"d1,t,true,{AT}").identity() == read(f"d1,t,1,{AT}").identity()
