"""What the envelope finds out about a request and hands to its handler."""

from aiohttp import web
from multidict import MultiDict

from gateway.web.body import Body
from gateway.web.caller import Caller

REQUEST_ID = web.RequestKey("request_id", str)
CALLER = web.RequestKey("caller", Caller)
BODY = web.RequestKey("body", Body)
FORM = web.RequestKey("form", MultiDict[str])
CSRF = web.RequestKey("csrf", str)  # the token that forms of the page shown to it must bring back
