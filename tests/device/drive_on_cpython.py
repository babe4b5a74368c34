# CPython's streams in the form in which the firmware's post.py asks for them.

import asyncio


class Stream:
    def __init__(self, reader, writer):
        self.read = reader.read
        self.write = writer.write
        self.drain = writer.drain


async def connect(address):
    reader, writer = await asyncio.open_connection(*address[-1][:2])
    return Stream(reader, writer), writer.transport.abort
