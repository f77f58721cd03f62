"""Translates the messages of Hermes. The code has the English text; `languages/` has one file per
other language."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hermes.codec.values import Value

FOLDER = Path(__file__).parent / "languages"
ENGLISH_NAME = "en"


class LanguageFile(Value):
    """A language file: sentences by their English text, and answer words."""

    phrases: dict[str, str]
    yes: tuple[str, ...] = ()
    no: tuple[str, ...] = ()


class Translator:
    """Translates messages: `say("Stopped after {used} calls.", used=3)` returns the translation, or
    English without one."""

    def __init__(self, name: str = ENGLISH_NAME, written: LanguageFile | None = None) -> None:
        self.name = name
        self._phrases: Mapping[str, str] = written.phrases if written else {}
        self.yes = ("y", "yes", *(written.yes if written else ()))
        self.no = ("n", "no", *(written.no if written else ()))

    def __call__(self, english: str, /, **facts: object) -> str:
        phrase = self._phrases.get(english, english)
        return phrase.format_map(facts) if facts else phrase


ENGLISH = Translator()


def load_language(name: str) -> Translator:
    """Falls back to English without a file."""
    if name == ENGLISH_NAME or name not in list_languages():
        return ENGLISH
    # English needs no file.
    from hermes.codec.json import decode

    return Translator(name, decode(LanguageFile, (FOLDER / f"{name}.json").read_bytes()))


def list_languages() -> tuple[str, ...]:
    return (ENGLISH_NAME, *sorted(file.stem for file in FOLDER.glob("*.json")))
