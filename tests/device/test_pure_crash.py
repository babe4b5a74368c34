import os

import crash


def test_a_crash_is_sent_by_the_boots_after_it_until_acknowledged():
    crash.Report("crash.txt").write("ValueError: boom")
    for _ in range(2):
        report = crash.Report("crash.txt")
        assert report.text == "ValueError: boom"
    report.forget(report.text)
    assert report.text is None
    assert crash.Report("crash.txt").text is None


def test_a_board_that_never_crashed_says_nothing():
    report = crash.Report("crash.txt")
    assert report.text is None
    report.forget(None)
    assert report.text is None


def test_what_was_not_in_the_acknowledged_attempt_is_still_to_be_said():
    report = crash.Report("crash.txt")
    report.note("config: unknown key gatway")
    sent = report.text
    report.note("more")
    report.forget(sent)
    assert report.text == "config: unknown key gatway | more"


def test_a_text_is_at_most_one_kib_and_keeps_its_end():
    crash.Report("crash.txt").write("begin " + "é\n" * 2000 + "ValueError: the end")
    text = crash.Report("crash.txt").text
    assert len(text.encode()) <= 1024
    assert text.endswith("ValueError: the end")
    assert all(32 <= ord(c) < 127 for c in text)


def test_a_torn_crash_file_does_not_stop_a_boot():
    with open("crash.txt", "wb") as file:
        file.write(b"\xff\xfe\xc3")
    report = crash.Report("crash.txt")
    report.note("x")
    report.forget(report.text)


def test_a_crash_that_can_not_be_written_is_no_second_crash():
    crash.Report("no/such/folder/crash.txt").write("x")
    assert "no" not in os.listdir(".")
