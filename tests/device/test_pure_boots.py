import os

import boots


class Entropy:
    def __init__(self):
        self.drawn = 0

    def __call__(self, n):
        self.drawn += 1
        return bytes([0x7F, 0x3A, 0x17, self.drawn])[:n]


def _zeros(n):
    return bytes(n)


def _bytes(path):
    with open(path, "rb") as file:
        return file.read()


def _write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def test_one_nonce_and_a_counter_from_one():
    urandom = Entropy()
    names = [boots.next_boot("boot", urandom) for _ in range(12)]
    assert names == [f"7f3a1701{n}" for n in range(1, 13)]
    assert urandom.drawn == 1


def test_real_entropy_gives_another_nonce_to_each_board():
    names = {boots.next_boot(f"boot{board}", os.urandom)[:8] for board in range(8)}
    assert len(names) > 1
    assert all(len(name) == 8 and name == name.lower() for name in names)


def test_a_boot_file_torn_anywhere_begins_a_new_nonce():
    urandom = Entropy()
    boots.next_boot("boot", urandom)
    whole = _bytes("boot")
    for size in range(len(whole) - 1):  # without its last newline it is whole
        _write("boot", whole[:size])
        name = boots.next_boot("boot", urandom)
        assert name == f"7f3a17{urandom.drawn:02x}1", size
    assert urandom.drawn == len(whole)


def test_a_boot_file_with_any_bit_turned_begins_a_new_nonce():
    urandom = Entropy()
    boots.next_boot("boot", urandom)
    whole = _bytes("boot")
    for at in range(len(whole) - 1):
        for bit in (1, 0x20, 0x80):
            wrong = bytearray(whole)
            wrong[at] ^= bit
            _write("boot", wrong)
            assert boots.next_boot("boot", _zeros) == "000000001"


def test_a_cut_while_the_next_boot_is_written_wastes_no_name_and_repeats_none():
    urandom = Entropy()
    boots.next_boot("boot", urandom)
    old = _bytes("boot")
    boots.next_boot("boot", urandom)
    new = _bytes("boot")
    for size in range(len(new) + 1):
        _write("boot", old)
        _write("boot.new", new[:size])
        assert boots.next_boot("boot", urandom) == "7f3a17012", size


def test_a_name_that_can_not_be_kept_is_not_given_out():
    try:
        boots.next_boot("no/such/folder/boot", _zeros)
    except OSError:
        return
    raise AssertionError("gave out a name that is not durable")


def test_a_file_of_somebody_else_is_no_boot_file():
    for data in (b"\n", b"\n00000000\n", b"hello\nworld\n", bytes(300), b"\xff\xfe\n"):
        _write("boot", data)
        assert boots.next_boot("boot", _zeros) == "000000001"


def test_ids_count_from_one_and_never_repeat():
    ids = boots.Ids("esp32-a4cf12b3d4e5", "7f3a17c212")
    assert [ids.next() for _ in range(3)] == [
        f"esp32-a4cf12b3d4e5-7f3a17c212-{n}" for n in (1, 2, 3)
    ]
