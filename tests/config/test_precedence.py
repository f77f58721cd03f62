"""For every key and every set of places that name it, the documented place wins and the
explanation says so."""

from __future__ import annotations

from string import ascii_lowercase
from typing import Any, Literal, get_args, get_origin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.codec.json import plain
from hermes.config.home import Home
from hermes.config.layers import Held, Source, SourceKind
from hermes.config.load import Config, load
from hermes.config.schema import (
    ANY_NAME,
    Setting,
    all_settings,
    alternatives,
    format_key,
    is_section,
    without_bounds,
)
from hermes.config.settings import OVERRIDES, Override, Settings
from hermes.config.yaml_write import block_lines

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
words = st.text(ascii_lowercase, min_size=1, max_size=8)


def sample(kind: Any) -> st.SearchStrategy[Any]:
    first, outer = without_bounds(kind)
    bare, inner = without_bounds(alternatives(first)[0])
    least = max([1, *(int(each.ge) for each in (*outer, *inner) if each.ge is not None)])
    simple: dict[Any, st.SearchStrategy[Any]] = {
        bool: st.booleans(),
        int: st.integers(least, 10**6),
        float: st.integers(least, 10**6).map(float),
        str: words,
    }
    if bare in simple:
        return simple[bare]
    if get_origin(bare) is Literal:
        return st.sampled_from([choice for choice in get_args(bare) if choice])
    if get_origin(bare) is tuple and is_section(section := get_args(bare)[0]):
        name = "model" if "model" in section.__struct_fields__ else section.__struct_fields__[0]
        return st.lists(st.builds(section, **{name: words}), min_size=1).map(tuple)
    if get_origin(bare) is tuple:
        return st.lists(words, min_size=1).map(tuple)
    held = get_args(bare)[1] if get_args(bare) else str
    return st.dictionaries(words, words if held is Any else sample(held), min_size=1)


class Said:
    """One key, named in several places at once."""

    def __init__(self, setting: Setting) -> None:
        self.path = tuple("box" if name == ANY_NAME else name for name in setting.path)
        self.key = format_key(self.path)
        self.expected: list[Held] = []
        self._given: dict[str, dict[str, Any]] = {"flag": {}, "session": {}}
        self._variables: dict[str, dict[str, str]] = {"environment": {}, "env_file": {}}
        self._lines: list[str] = []

    def overrides(self, weak: bool) -> list[Override]:
        return [o for o in OVERRIDES if o.key == self.key and o.weak is weak]

    def say(self, place: SourceKind, value: Any, override: Override | None) -> None:
        if override is not None:
            word = str(value).lower() if isinstance(value, bool) else str(value)
            if isinstance(value, tuple):
                word = ",".join(map(str, value))
            self._variables[place][override.variable] = "1" if override.when_true else word
            value = override.when_true or value
        elif place == "file":
            self._lines = block_lines(self.path, plain(value), 0)
        else:
            self._given[place][self.key] = plain(value)
        name = override.variable if override is not None else ""
        self.expected.append(Held(value=value, source=Source(kind=place, name=name)))

    def load(self, home: Home) -> Config:
        """From the home, all of whose files are written anew."""
        file = self._variables["env_file"].items()
        home.config.write_text("\n".join([*self._lines, ""]))
        home.env_file.write_text("".join(f"{name}={text}\n" for name, text in file))
        return load(
            home,
            flags=self._given["flag"],
            session=self._given["session"],
            env=self._variables["environment"],
        )


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """One for all: to make and remove a folder takes longer than to read it."""
    return Home(tmp_path_factory.mktemp("home"))


@pytest.mark.parametrize("setting", list(all_settings(Settings)), ids=lambda setting: setting.key)
@settings(max_examples=15, deadline=None)
@given(st.data())
def test_the_documented_place_wins_and_the_explanation_agrees(
    setting: Setting, home: Home, data: st.DataObject
) -> None:
    said = Said(setting)
    for place, weak in PLACES:
        overrides = said.overrides(weak)
        needs_variable = place in ("environment", "env_file")
        if (needs_variable and not overrides) or not data.draw(st.booleans()):
            continue
        override = data.draw(st.sampled_from(overrides)) if needs_variable else None
        said.say(place, data.draw(sample(setting.kind)), override)
    config = said.load(home)
    explanation = config.explain(said.key)
    default = Held(value=setting.default, source=Source(kind="default"))
    used = Held(value=explanation.value, source=explanation.source)
    assert [used, *explanation.shadows] == [*said.expected, default]
    if said.expected or ANY_NAME not in setting.path:
        assert value_at(config.settings, said.path) == used.value
        assert said.key in config.known_keys()


def value_at(value: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        value = value[name] if isinstance(value, dict) else getattr(value, name)
    return value
