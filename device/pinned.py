# HTTPS to the gateway. Of its certificate the board may be given a copy: then nothing at all is
# sent to anybody who has another. Without one the line is encrypted, but to whoever answers.

import asyncio
import binascii
import ssl

import post


class Pinned:
    # certificate: base64 of the certificate's DER, or None.
    def __init__(self, url, certificate):
        self._host = post.parse(url)[0]
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._context.verify_mode = ssl.CERT_REQUIRED if certificate else ssl.CERT_NONE
        if certificate:
            # It is its own authority. mbedTLS also looks at its name, and at its dates with a
            # clock that stands in 2000 until the gateway tells the time (docs/board.md).
            self._context.load_verify_locations(cadata=binascii.a2b_base64(certificate))

    async def connect(self, address):
        """(stream, close), as Post wants it. The handshake comes with the first write."""
        sock = await post.connected(address)
        try:
            secure = self._context.wrap_socket(
                sock, server_hostname=self._host, do_handshake_on_connect=False
            )
        except BaseException:
            sock.close()
            raise
        secure.setblocking(False)

        def close():
            try:
                secure.close()
            finally:
                sock.close()  # after a handshake that failed the other one does not

        return asyncio.StreamReader(secure), close
