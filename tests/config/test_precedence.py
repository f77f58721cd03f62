"""For every key and every set of places that name it, the documented place wins and the
explanation says so."""

from __future__ import annotations

from pathlib import Path
from random import Random
from string import ascii_lowercase
from typing import Any, Literal, get_args, get_origin

import pytest

from hermes.codec.json import plain
from hermes.config.home import Home
from hermes.config.layers import SettingSource, SourcedValue, SourceKind
from hermes.config.load import Config, load
from hermes.config.schema import (
    ANY_NAME,
    Setting,
    all_settings,
    alternatives,
    format_key,
    is_section,
    strip_bounds,
)
from hermes.config.settings import OVERRIDES, Override, Settings
from hermes.config.settings_file import block_lines

# Strongest first: the order that the documentation promises.
PLACES: tuple[tuple[SourceKind, bool], ...] = (
    ("flag", False),
    ("session", False),
    ("environment", False),
    ("env_file", False),
    ("file", False),
    ("environment", True),
    ("env_file", True),
)
VARIABLES = ("environment", "env_file")
SETTINGS = tuple(all_settings(Settings))


def word(chance: Random) -> str:
    return "".join(chance.choices(ascii_lowercase, k=chance.randint(1, 8)))


def sample(kind: Any, chance: Random) -> Any:
    first, outer = strip_bounds(kind)
    bare, inner = strip_bounds(alternatives(first)[0])
    least = max([1, *(int(each.ge) for each in (*outer, *inner) if each.ge is not None)])
    if bare is bool:
        return chance.choice((False, True))
    if bare in (int, float):
        most = min([10**6, *(int(each.le) for each in (*outer, *inner) if each.le is not None)])
        return bare(chance.randint(least, most))
    if bare is str:
        return word(chance)
    if get_origin(bare) is Literal:
        return chance.choice([choice for choice in get_args(bare) if choice])
    few = range(chance.randint(1, 3))
    if get_origin(bare) is tuple and is_section(section := get_args(bare)[0]):
        name = "model" if "model" in section.__struct_fields__ else section.__struct_fields__[0]
        return tuple(section(**{name: word(chance)}) for _ in few)
    if get_origin(bare) is tuple:
        return tuple(word(chance) for _ in few)
    held = get_args(bare)[1] if get_args(bare) else str
    return {word(chance): sample(str if held is Any else held, chance) for _ in few}


class Said:
    """Keys that are named in several places at once."""

    def __init__(self) -> None:
        self._given: dict[str, dict[str, Any]] = {"flag": {}, "session": {}}
        self._variables: dict[str, dict[str, str]] = {"environment": {}, "env_file": {}}
        self._file: dict[str, Any] = {}

    def say(
        self, key: Key, place: SourceKind, value: Any, override: Override | None
    ) -> SourcedValue:
        """How the explanation tells of it."""
        if override is not None:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if isinstance(value, tuple):
                text = ",".join(map(str, value))
            self._variables[place][override.variable] = "1" if override.when_true else text
            value = override.when_true or value
        elif place == "file":
            section = self._file
            for name in key.path[:-1]:
                section = section.setdefault(name, {})
            section[key.path[-1]] = plain(value)
        else:
            self._given[place][key.name] = plain(value)
        name = override.variable if override is not None else ""
        return SourcedValue(value=value, source=SettingSource(kind=place, name=name))

    def load(self, home: Home) -> Config:
        """From the home, all of whose files are written anew."""
        file = self._variables["env_file"].items()
        lines = [line for name in self._file for line in block_lines((name,), self._file[name], 0)]
        home.config.write_text("\n".join([*lines, ""]))
        home.env_file.write_text("".join(f"{name}={text}\n" for name, text in file))
        return load(
            home,
            flags=self._given["flag"],
            session=self._given["session"],
            env=self._variables["environment"],
        )


class Key:
    """`places` are all those that can name it, strongest first."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.path = tuple("box" if name == ANY_NAME else name for name in setting.path)
        self.name = format_key(self.path)
        self.places = [
            (place, overrides)
            for place, weak in PLACES
            if (overrides := self._overrides(weak)) or place not in VARIABLES
        ]

    def _overrides(self, weak: bool) -> list[Override]:
        return [each for each in OVERRIDES if each.key == self.name and each.weak is weak]

    def said(self, said: Said, number: int, chance: Random) -> list[SourcedValue]:
        """Named by one set of its places: there are as many sets as numbers of so many bits."""
        held = []
        for bit, (place, overrides) in enumerate(self.places):
            override = chance.choice(overrides) if place in VARIABLES else None
            if number >> bit & 1:
                value = sample(self.setting.kind, chance)
                held.append(said.say(self, place, value, override))
        return held


KEYS = tuple(map(Key, SETTINGS))
ROUNDS = 2 ** max(len(key.places) for key in KEYS)


@pytest.mark.parametrize("number", range(ROUNDS))
def test_the_documented_place_wins_and_the_explanation_agrees(number: int, tmp_path: Path) -> None:
    """In each round every key that has another set of places left is named by it, next to keys that
    are named by others."""
    said, chance = Said(), Random(number)
    expected: dict[Key, list[SourcedValue]] = {}
    for shift, key in enumerate(KEYS):
        sets = 2 ** len(key.places)
        if number < sets:
            expected[key] = key.said(said, (number + shift) % sets, chance)
    config = said.load(Home(tmp_path))
    known = set(config.known_keys())
    for key, held in expected.items():
        explanation = config.explain(key.name)
        default = SourcedValue(value=key.setting.default, source=SettingSource(kind="default"))
        used = SourcedValue(value=explanation.value, source=explanation.source)
        assert [used, *explanation.shadows] == [*held, default], key.name
        if held or ANY_NAME not in key.setting.path:
            assert value_at(config.settings, key.path) == used.value, key.name
            assert key.name in known


def value_at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value[name] if isinstance(value, dict) else getattr(value, name)
    return value
