"""Fieldpost's gateway: readings from boards in the field reach a database exactly once."""

__version__ = "0.1.0"
