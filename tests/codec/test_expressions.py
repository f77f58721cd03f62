"""Expressions come from a file of what was compiled before, if they may be in a file at all."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from re import _compiler  # type: ignore[attr-defined]
from types import ModuleType

import pytest

from hermes.codec import expressions

MODULE = """
import re
WORD = re.compile(r"(?P<first>[a-zé]+)-(\\d+)", re.IGNORECASE)
RAW = re.compile(rb"\\x00[a-f]+")
EACH = [re.compile(word) for word in ("one|two", "[^x]{2,5}?")]
def later(text):
    return re.compile(text + "[0-9]+")
"""
SECRET = "hunter2-canary"


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place of its own; nothing is known yet."""
    monkeypatch.setattr(expressions, "FILE", tmp_path / "expressions")
    monkeypatch.setattr(expressions, "INSTALLED", (str(tmp_path),))
    monkeypatch.setattr(expressions, "_known", {})
    monkeypatch.setattr(expressions, "_missing", set())
    monkeypatch.setattr(_compiler, "compile", _compiler.compile)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (tmp_path / "told.py").write_text(MODULE)
    re.purge()
    yield tmp_path
    re.purge()


def loaded(shelf: Path, name: str = "told") -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, shelf / "told.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    re.purge()
    monkeypatch.setattr(expressions, "_known", {})
    monkeypatch.setattr(expressions, "_missing", set())
    expressions.load_cache()


def patterns(module: ModuleType) -> list[re.Pattern[str] | re.Pattern[bytes]]:
    return [module.WORD, module.RAW, *module.EACH]


def test_the_second_process_compiles_nothing(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expressions.load_cache()
    first = patterns(loaded(shelf))
    expressions.save_cache()
    another_process(monkeypatch)
    monkeypatch.setattr(expressions, "_compile", None)
    module = loaded(shelf)
    # Equal expressions have the same code.
    assert patterns(module) == first
    found = module.WORD.fullmatch("É-12")
    assert found and found.groupdict() == {"first": "É"} and found[2] == "12"


def test_what_is_made_while_working_is_never_kept(shelf: Path) -> None:
    expressions.load_cache()
    module = loaded(shelf)
    assert module.later(SECRET).match(f"{SECRET}1")
    assert re.compile(SECRET + "$").match(SECRET)
    expressions.save_cache()
    assert SECRET.encode() not in expressions.FILE.read_bytes()
    assert b"one|two" in expressions.FILE.read_bytes()


def test_modules_of_a_home_are_not_kept(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expressions, "INSTALLED", ("/nowhere",))
    expressions.load_cache()
    loaded(shelf)
    expressions.save_cache()
    assert not expressions.FILE.exists()


def test_what_the_program_itself_makes_is_not_kept(shelf: Path) -> None:
    expressions.load_cache()
    loaded(shelf, "__main__")
    expressions.save_cache()
    assert not expressions.FILE.exists()


def test_a_constant_made_late_is_kept(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expressions.load_cache()
    first = expressions.compile_constant("late|r", re.MULTILINE)
    expressions.save_cache()
    another_process(monkeypatch)
    monkeypatch.setattr(expressions, "_compile", None)
    assert expressions.compile_constant("late|r", re.MULTILINE) == first


@pytest.mark.parametrize("place", range(0, 1_000, 97))
def test_a_damaged_file_counts_for_nothing(
    shelf: Path, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    expressions.load_cache()
    first = patterns(loaded(shelf))
    expressions.save_cache()
    data = bytearray(expressions.FILE.read_bytes())
    data[place % len(data)] ^= 0xFF
    expressions.FILE.write_bytes(data)
    another_process(monkeypatch)
    assert expressions._known == {}
    assert patterns(loaded(shelf)) == first


def test_a_place_that_cannot_be_written_to_is_left_alone(
    shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expressions, "FILE", shelf / "missing" / "expressions")
    expressions.load_cache()
    loaded(shelf)
    expressions.save_cache()
    assert not (shelf / "missing").exists()


def test_bytecode_that_is_not_wanted_brings_no_expressions(
    shelf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    expressions.load_cache()
    loaded(shelf)
    expressions.save_cache()
    assert not expressions.FILE.exists()
