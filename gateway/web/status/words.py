"""PURE: words that a page looks up by what they stand for, marked so that they are translated."""


def N_(text: str) -> str:
    """Mark a text as one to be translated."""
    return text


STATES = [N_("pending"), N_("running"), N_("done"), N_("failed"), N_("discarded")]
VERBS = [
    N_("enqueue"), N_("claim"), N_("renew"), N_("finish"), N_("fail"), N_("snooze"), N_("release"),
    N_("drop"), N_("rescue"), N_("cancel"), N_("retry"), N_("discard"),
]  # fmt: skip
CLOCKS = [N_("synced"), N_("corrected"), N_("estimated"), N_("none")]
SPANS = [N_("day"), N_("week"), N_("month")]
BANNERS = [
    N_("everybody on this machine reads and writes here without a key"),
    N_("everybody who can reach this gateway reads and writes here without a key"),
]
