# PURE: records of many slots in one file of at most one flash block, written once, never changed.
#
# Its name, "s00001f-42-24-e8b", tells first key, last key, count and bytes; before each frame stands
# its data's length(2). A damaged record costs only itself, unless the damage is in a length.
import framed

BLOCK_BYTES = 4096
_LENGTH_BYTES = 2


def name(file):
    return "s%06x-%x-%x-%x" % (file.first, file.last, file.count, file.nbytes)


def numbers(name):
    # [first key, last key, count, bytes], or None if it is no segment's name.
    return framed.numbers(name[1:], 4) if name[0] == "s" else None


def size(count, nbytes):
    # That many records of so many bytes in all take up this many in a segment.
    return nbytes + count * (_LENGTH_BYTES + framed.HEADER_BYTES)


def write(path, records):
    # Raises OSError. Whole only once it is closed, so under a temporary name.
    with open(path, "wb") as out:
        for key, data in records:
            out.write(len(data).to_bytes(_LENGTH_BYTES, "little"))
            out.write(framed.pack(key, data))


def walk(path, visit):
    # visit(key, data) for each whole record, until it returns True: then None is returned, else
    # (count, bytes) of the whole records. Raises OSError, so visit must do no I/O of its own.
    count = nbytes = 0
    with open(path, "rb") as source:
        while True:
            length = int.from_bytes(source.read(_LENGTH_BYTES), "little")
            if not length:
                return count, nbytes
            record = framed.unpack(source.read(framed.HEADER_BYTES + length))
            if record:
                count += 1
                nbytes += length
                if visit(*record):
                    return None
