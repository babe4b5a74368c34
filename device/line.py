# The way to the gateway: up while Wi-Fi is, with the LED lit for as long as it is used.


class Line:
    # post: a Post, or None while the config names no gateway. wifi has .up().
    def __init__(self, post, wifi, led):
        self._post = post
        self._wifi = wifi
        self._led = led

    def up(self):
        return self._wifi.up()

    async def exchange(self, body):
        """A post.Answer to this wire.Body. Raises OSError if there is none."""
        if self._post is None:
            raise OSError("no gateway in config.json")
        return await self._led.lit(self._post.exchange, body)
