"""The records of programs: each is usable, compiled, and its examples get the verdict they name."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from hermes.core.effects import Allow, Ask, Decision, Deny
from hermes.policy.patterns import vocabulary
from hermes.policy.programs.records import is_known, record_of
from scripts.generate_policy import compiled, records
from tests.policy.decisions import decide, rules

RECORDS = records()
KINDS: dict[str, type[Decision]] = {"allow": Allow, "ask": Ask, "deny": Deny}


def test_the_compiled_form_is_up_to_date() -> None:
    for path, text in compiled().items():
        assert path.read_text(encoding="utf-8") == text, "run `make generate`"


def test_every_check_is_a_function() -> None:
    for record in RECORDS:
        if (check := record.get("check", "steps")) != "steps":
            module, _, name = check.partition(".")
            found = import_module(f"hermes.policy.programs.{module}")
            assert callable(getattr(found, f"check_{name}")), check


def test_categories_are_known() -> None:
    for record in RECORDS:
        named = {record.get("category", ""), record.get("otherwise", ""), *record.get("asks", {})}
        assert named - {""} <= vocabulary().categories.keys(), record["names"]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record["names"].split()[0])
def test_the_examples_of_a_record(record: dict[str, Any]) -> None:
    by = rules()
    for kind, wanted in KINDS.items():
        for example in record.get(kind, ()):
            assert isinstance(decide(example, by), wanted), example


def test_a_fact_about_a_program_does_not_make_it_known() -> None:
    assert not is_known("zellij")
    assert record_of("zellij").flags == {"holds_a_shell"}
