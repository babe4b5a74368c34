"""PURE: which of the forms we have a caller wants (RFC 9110, 12.5.1)."""


def preferred(accept: str, offers: tuple[str, ...]) -> str:
    """Return the offer that `Accept` likes best, the first of equals, and the first if none."""
    liked = [(_quality(offer, accept), -place, offer) for place, offer in enumerate(offers)]
    return max(liked)[2]


def _quality(offer: str, accept: str) -> float:
    """Return 0..1; the most exact of the ranges that fit decides."""
    general = offer.partition("/")[0] + "/*"
    by_range = dict(map(_range, accept.split(",")))
    for wanted in (offer, general, "*/*"):
        if wanted in by_range:
            return by_range[wanted]
    return 0.0


def _range(item: str) -> tuple[str, float]:
    name, *parameters = (part.strip().lower() for part in item.split(";"))
    quality = next((p[2:] for p in parameters if p.startswith("q=")), "1")
    # RFC 9110 has at most three decimals; float() would also take "nan" and "1e9".
    sane = len(quality) <= 5 and quality.replace(".", "", 1).isdecimal() and quality.isascii()
    return name, float(quality) if sane else 0.0
