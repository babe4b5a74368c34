"""The languages of the page: which one a reader wants, and how it says a sentence.

The texts in the code are English; `locale/<language>/LC_MESSAGES/fieldpost.po` has the others. They
are compiled when first asked for, so nothing has to be built.
"""

import gettext
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from importlib.resources import files
from io import BytesIO

from babel import Locale
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_decimal

LANGUAGES = ("en", "pt")  # the first for whoever wants another
DOMAIN = "fieldpost"

_MOST_NUMBERS = 4096  # written before and remembered
_MOST_RANGES = 20  # of an Accept-Language that are looked at


@dataclass(frozen=True)
class Said:
    """A sentence that is still to be said in a language; `count` chooses between its forms."""

    one: str
    more: str
    count: int
    values: Mapping[str, object] = field(default_factory=dict)


class Tongue:
    """One language."""

    def __init__(self, language: str) -> None:
        self.language = language
        self._texts = _texts(language)
        self._decimal = lru_cache(_MOST_NUMBERS)(
            partial(format_decimal, format="#,##0.######", locale=Locale.parse(language))
        )

    def gettext(self, message: str, **values: object) -> str:
        """Return the message in this language; `%(name)s` in it becomes that value."""
        text = self._texts.gettext(message) if message else ""
        return text % values if values else text

    def ngettext(self, one: str, more: str, count: int, **values: object) -> str:
        """Return the form for `count`, which stands for `%(count)s`."""
        told = {"count": self.number(count), **values}
        return self._texts.ngettext(one, more, count) % told

    def say(self, said: Said) -> str:
        """Return the sentence; one whose forms are the same has no plural in the catalogues."""
        if said.one == said.more:
            return self.gettext(said.one, count=self.number(said.count), **said.values)
        return self.ngettext(said.one, said.more, said.count, **said.values)

    def number(self, value: float) -> str:
        """Return a number as it is written here, with at most six digits behind the point."""
        if isinstance(value, int) and 0 <= value < 1000:  # most are, on a page of many
            return str(value)
        return self._decimal(value)


@cache
def tongue(language: str) -> Tongue:
    """Return one of LANGUAGES."""
    return Tongue(language)


def wanted(accept_language: str) -> str:
    """Return the one of LANGUAGES that an Accept-Language (RFC 9110, 12.5.4) likes best."""
    liked: dict[str, tuple[float, int]] = {}
    for place, item in enumerate(accept_language.split(",")[:_MOST_RANGES]):
        name, _, parameter = item.strip().lower().partition(";")
        language = name.strip().partition("-")[0]
        if language in LANGUAGES:
            liked.setdefault(language, (-_quality(parameter), place))
    best = min(liked, key=lambda language: liked[language], default=LANGUAGES[0])
    return best if liked and liked[best][0] else LANGUAGES[0]


def _quality(parameter: str) -> float:
    name, _, value = parameter.strip().partition("=")
    if name != "q":
        return 1.0
    sane = len(value) <= 5 and value.isascii() and value.replace(".", "", 1).isdecimal()
    return float(value) if sane else 0.0


def _texts(language: str) -> gettext.GNUTranslations:
    place = files(__package__).joinpath("locale", language, "LC_MESSAGES", f"{DOMAIN}.po")
    with place.open("rb") as file:
        catalogue = read_po(file, locale=language, domain=DOMAIN)
    compiled = BytesIO()
    write_mo(compiled, catalogue)
    compiled.seek(0)
    return gettext.GNUTranslations(compiled)
