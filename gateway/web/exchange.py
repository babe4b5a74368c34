"""What the envelope finds out about a request and hands to its handler."""

from aiohttp import web

from gateway.web.body import Body
from gateway.web.gate import Caller

REQUEST_ID = web.RequestKey("request_id", str)
CALLER = web.RequestKey("caller", Caller)
BODY = web.RequestKey("body", Body)
