"""What the pages need besides themselves: a style sheet, a script, an icon; none from elsewhere."""

from importlib.resources import files

from aiohttp import web
from aiohttp.typedefs import Handler

_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_PAGE = files("gateway.web").joinpath("page")


def asset(name: str) -> Handler:
    """Return the handler that answers with a file of the page."""
    body = _PAGE.joinpath(name).read_bytes()
    content_type = _TYPES[name.rpartition(".")[2]]

    async def get(request: web.Request) -> web.Response:
        return web.Response(body=body, content_type=content_type, charset="utf-8", headers={
            "Cache-Control": "max-age=300", "X-Content-Type-Options": "nosniff"
        })  # fmt: skip

    return get
