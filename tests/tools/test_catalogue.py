from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from hermes.codec.json import encode
from hermes.core.errors import NotFound
from hermes.core.tools import ToolContext, ToolOutput, tool
from hermes.core.turn import Toolbox
from hermes.tools.catalogue import (
    SCHEMAS,
    TARGETS,
    Catalogue,
    Entry,
    built_in_entries,
    load_target,
)
from hermes.tools.toolbox import AT_TIMES
from hermes.tools.toolsets import resolve_toolsets

BUDGET_BYTES = 9_000


@tool()
async def shout(ctx: ToolContext, words: str) -> ToolOutput:
    """Say it loud."""
    return ToolOutput.text(words.upper())


def test_specs_come_sorted_and_equal_the_signatures() -> None:
    catalogue = Catalogue(built_in_entries())
    specs = catalogue.specs(reversed(catalogue.names))
    assert [spec.name for spec in specs] == sorted(TARGETS)
    assert specs == tuple(load_target(TARGETS[name]).spec for name in sorted(TARGETS))


def test_the_stored_schemas_are_what_the_script_writes() -> None:
    specs = [json.loads(encode(load_target(TARGETS[name]).spec)) for name in sorted(TARGETS)]
    assert SCHEMAS.read_text() == json.dumps(specs, ensure_ascii=False, indent=1) + "\n"


def test_the_schemas_of_the_usual_tools_stay_within_the_budget() -> None:
    # The others of this kind come with a plugin that somebody has chosen.
    chosen = set(AT_TIMES) - {"image_generate"}
    usual = [name for name in resolve_toolsets(("hermes-cli",)) if name not in chosen]
    assert len(encode(Catalogue(built_in_entries()).specs(usual))) <= BUDGET_BYTES


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from nodes(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from nodes(value)


@pytest.mark.parametrize("entry", built_in_entries(), ids=lambda entry: entry.spec.name)
def test_a_schema_is_plain_enough_for_every_model_server(entry: Entry) -> None:
    schema = entry.spec.parameters
    assert schema["type"] == "object"
    assert entry.spec.description
    for node in nodes(schema):
        assert not {"$ref", "$defs", "anyOf", "oneOf", "allOf"} & node.keys()
        if node.get("type") == "array":
            assert "items" in node
        if node.get("type") == "object" and "properties" in node:
            assert set(node.get("required", ())) <= node["properties"].keys()
            assert all({"type", "enum"} & each.keys() for each in node["properties"].values())


def test_a_tool_is_loaded_when_it_is_first_wanted() -> None:
    code = (
        "import sys\n"
        "from hermes.tools.catalogue import Catalogue, built_in_entries\n"
        "catalogue = Catalogue(built_in_entries())\n"
        "catalogue.specs(catalogue.names)\n"
        "print(sorted(name for name in sys.modules if name.startswith('hermes.tools.')))\n"
        "print(catalogue.load('todo').name, 'hermes.tools.todo' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(path for path in sys.path if path)},
    )
    assert done.stdout == "['hermes.tools.catalogue']\ntodo True\n"


def test_other_rooms_can_add_tools_and_replace_some() -> None:
    catalogue = Catalogue((*built_in_entries(), Entry(shout.spec, shout)))
    assert catalogue.load("shout") is shout
    assert catalogue.specs(["shout"]) == (shout.spec,)
    assert "shout" in catalogue.names
    louder = Entry(shout.spec, load_target(TARGETS["todo"]))
    assert Catalogue((Entry(shout.spec, shout), louder)).load("shout").name == "todo"


def test_an_unknown_tool_is_not_found() -> None:
    with pytest.raises(NotFound, match="'fly'"):
        Catalogue(()).load("fly")


def test_chosen_tools_are_a_toolbox_of_what_is_there() -> None:
    box: Toolbox = Catalogue(built_in_entries()).choose(["todo", "clarify", "fly"])
    assert [spec.name for spec in box.specs] == ["clarify", "todo"]
    assert box.load("todo") is not None
    assert box.load("patch") is None
    assert box.load("fly") is None


def test_a_target_must_be_a_tool() -> None:
    with pytest.raises(TypeError, match="is not a tool"):
        load_target("hermes.tools.catalogue:Catalogue")
