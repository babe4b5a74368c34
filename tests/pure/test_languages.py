"""The languages of the page: chosen as the reader asks, and whole."""

import re
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po

import gateway
from gateway.languages import DOMAIN, LANGUAGES, Said, tongue, wanted
from tests.web.texts import texts

LOCALE = Path(gateway.__file__).parent / "locale"
_VALUE = re.compile(r"%\(\w+\)s")


def catalogue(language: str) -> Catalog:
    with (LOCALE / language / "LC_MESSAGES" / f"{DOMAIN}.po").open("rb") as file:
        return read_po(file, locale=language, abort_invalid=True)


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ("", "en"),
        ("pt", "pt"),
        ("pt-BR,pt;q=0.9,en;q=0.8", "pt"),
        ("en-GB, pt;q=0.9", "en"),
        ("pt;q=0.1, en;q=0.2", "en"),
        ("de, fr", "en"),
        ("de, PT-pt", "pt"),
        ("pt;q=0", "en"),
        ("pt;q=nan", "en"),
        ("*", "en"),
    ],
)
def test_a_reader_gets_the_language_liked_best(asked: str, given: str) -> None:
    assert wanted(asked) == given


def test_every_text_of_the_page_is_said_in_portuguese() -> None:
    said = {message.id for message in catalogue("pt") if message.id}
    assert texts() == {id_ if isinstance(id_, str) else tuple(id_) for id_ in said}
    assert len(said) > 200


def test_a_translation_has_the_values_of_its_text() -> None:
    for message in catalogue("pt"):
        ids = [message.id] if isinstance(message.id, str) else list(message.id)
        strings = [message.string] if isinstance(message.string, str) else list(message.string)
        assert all(strings), message.id
        for id_, string in zip(ids, strings, strict=True):
            if id_:
                assert set(_VALUE.findall(id_)) == set(_VALUE.findall(string)), id_


def test_a_sentence_takes_the_form_of_its_count() -> None:
    many = Said("%(count)s job failed", "%(count)s jobs failed", 2000)
    assert [tongue(language).say(many) for language in LANGUAGES] == [
        "2,000 jobs failed",
        "2.000 trabalhos falharam",
    ]
    assert tongue("pt").say(Said("now", "now", 1)) == "agora"


def test_a_text_with_a_per_cent_sign_is_said_as_it_is() -> None:
    assert tongue("en").gettext("50 % of %s") == "50 % of %s"
