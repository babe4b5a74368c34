"""Errors, named by what the one who gets them must do. `web` maps them to HTTP in one place."""


class Rejected(Exception):
    """Theirs to mend: the request can not be taken as it is.

    Args:
        status: the HTTP status, 4xx.
        detail: what is wrong and what would be right, for the caller to read.
    """

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


class TooOften(Rejected):
    """Theirs to slow down: the same request may be sent again after `retry_after_s` seconds."""

    def __init__(self, detail: str, retry_after_s: int) -> None:
        super().__init__(429, detail)
        self.retry_after_s = retry_after_s


class Unavailable(Exception):
    """Ours to mend: the same request may be sent again after `retry_after_s` seconds."""

    def __init__(self, detail: str, retry_after_s: int = 2) -> None:
        super().__init__(detail)
        self.detail = detail
        self.retry_after_s = retry_after_s


class Misconfigured(Exception):
    """The operator's to mend: the gateway can not start like this. The message says what to do."""
