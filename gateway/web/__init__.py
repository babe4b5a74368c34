"""HTTP: who may do what, the resources, the page."""

from gateway.web.application import application
from gateway.web.server import Runner

__all__ = ["Runner", "application"]
