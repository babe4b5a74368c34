"""Why a board does not start."""


class Refused(Exception):
    """It can not start like this; the message says what to do."""
