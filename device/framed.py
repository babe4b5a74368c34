# PURE: a record on flash that knows whether it is whole: key(4) crc32(4) data, little-endian.
#
# The CRC covers the key and the data. Where the data ends is told by the end of the file, or by a
# length that stands before the frame; a wrong end makes a wrong CRC.
import binascii

HEADER_BYTES = 8
MAX_DATA_BYTES = 1024


def pack(key, data):
    head = key.to_bytes(4, "little")
    crc = binascii.crc32(data, binascii.crc32(head)) & 0xFFFFFFFF
    return head + crc.to_bytes(4, "little") + data


def unpack(frame):
    # (key, data), or None when a byte is missing, added or wrong.
    key, data = int.from_bytes(frame[:4], "little"), frame[HEADER_BYTES:]
    return (key, data) if data and pack(key, data) == frame else None


def numbers(name, count):
    # The numbers in a file's name, "1f-0-a3" as [31, 0, 163]; None if it is no such name.
    try:
        found = [int(part, 16) for part in name.split("-")]
    except ValueError:
        return None
    return found if len(found) == count else None
