# PURE: records of many slots in one file of at most one flash block, written once, never changed.
#
# Its name, "s1f-42-24-e8b", tells first key, last key, count and bytes. A board's readings begin
# alike, so of each record only what differs from the first one's beginning is kept: before its frame
# stands its length(2) and how much of that is the first record's(1). A damaged record costs only
# itself, unless it is the first.
import framed

BLOCK_BYTES = 4096
_BEFORE_BYTES = 3
_MOST_SHARED_BYTES = 255


def name(file):
    return "s%x-%x-%x-%x" % (file.first, file.last, file.count, file.nbytes)


def numbers(name):
    # [first key, last key, count, bytes], or None if it is no segment's name.
    return framed.numbers(name[1:], 4) if name[0] == "s" else None


def write(path, records):
    # Returns how many there was room for. Raises OSError. Whole only once it is closed, so under a
    # temporary name.
    count = size = 0
    first = b""
    with open(path, "wb") as out:
        for key, data in records:
            shared = _alike(first, data)
            size += _BEFORE_BYTES + framed.HEADER_BYTES + len(data) - shared
            if size > BLOCK_BYTES:
                break
            out.write(len(data).to_bytes(2, "little") + bytes((shared,)))
            frame = framed.pack(key, data)
            out.write(frame[: framed.HEADER_BYTES])
            out.write(frame[framed.HEADER_BYTES + shared :])
            first = first or data
            count += 1
    return count


def walk(path, first_key, last_key, visit):
    # visit(key, data) for each whole record, until it returns True: then None is returned, else
    # (count, bytes) of the whole records. Raises OSError, so visit must do no I/O of its own.
    count = nbytes = 0
    first = b""
    with open(path, "rb") as source:
        while True:
            before = source.read(_BEFORE_BYTES)
            length, shared = int.from_bytes(before[:2], "little"), before[2:]
            if not shared or not shared[0] < length <= framed.MAX_DATA_BYTES:
                return count, nbytes  # the end, or a damaged length
            header = source.read(framed.HEADER_BYTES)
            data = first[: shared[0]] + source.read(length - shared[0])
            first = first or data
            record = framed.unpack(header + data)
            if record and first_key <= record[0] <= last_key:
                count += 1
                nbytes += length
                if visit(*record):
                    return None


def _alike(first, data):
    most = min(len(first), len(data) - 1, _MOST_SHARED_BYTES)
    for at in range(most):
        if first[at] != data[at]:
            return at
    return most
