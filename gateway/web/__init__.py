"""HTTP: who may do what, the resources, the page."""

from gateway.web.application import FRONT, application
from gateway.web.server import Runner

__all__ = ["FRONT", "Runner", "application"]
