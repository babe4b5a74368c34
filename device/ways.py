# More than one way to the gateway, such as a cable and Wi-Fi. One is used for as long as
# it answers. Whichever it is, the same batch goes out, so nothing is doubled by changing.


class Way:
    # up() says whether it is worth trying; exchange(body) as a Post's.
    def __init__(self, up, exchange):
        self.up = up
        self.exchange = exchange


class Ways:
    # The first is tried first.
    def __init__(self, ways):
        self._ways = ways
        self._at = 0

    def up(self):
        return any(way.up() for way in self._ways)

    async def exchange(self, body):
        """An answer by the way that answered last. Raises OSError if there is none."""
        way = self._next_up()
        try:
            answer = await way.exchange(body)
        except OSError:
            self._at += 1
            raise
        if not answer.counts:
            self._at += 1
        return answer

    def _next_up(self):
        for _ in self._ways:
            way = self._ways[self._at % len(self._ways)]
            if way.up():
                return way
            self._at += 1
        raise OSError("no way to the gateway")
