from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from hermes.config.session_settings import ContextSettings
from hermes.config.settings import Settings
from hermes.core.session_deps import Toolbox
from hermes.core.tools import ToolContext, ToolOutput, tool
from hermes.tools.catalogue import (
    SCHEMAS,
    CatalogueEntry,
    ChosenTools,
    built_in_entries,
    declarations,
    load_target,
)
from hermes.tools.toolbox import CORE, SessionTools, wanted_names
from scripts.generate_schemas import schemas

AVAILABLE = {entry.spec.name: entry for entry in built_in_entries()}


@tool()
async def shout(ctx: ToolContext, words: str) -> ToolOutput:
    """Say it loud."""
    return ToolOutput.text(words.upper())


def test_specs_come_sorted_and_equal_the_signatures() -> None:
    specs = ChosenTools(AVAILABLE, reversed([*AVAILABLE])).specs
    assert [spec.name for spec in specs] == sorted(declarations())
    assert specs == tuple(
        load_target(declarations()[name].target).spec for name in sorted(declarations())
    )


def test_the_stored_schemas_are_what_the_script_writes() -> None:
    assert SCHEMAS.read_text() == schemas(), "run `make generate`"


def test_every_declaration_is_complete() -> None:
    for name, each in declarations().items():
        fields = set(each.spec.parameters["properties"])
        used = set(re.findall(r"\{(\w+)\}", f"{each.display.detail} {each.display.title}"))
        assert used <= fields, f"{name}: the display names unknown arguments"


WEB = ("web_extract", "web_search")
# Tools that exist only where they are set up, and sub-agents, which are found by search.
EXTRA = ("cronjob", "image_generate", "delegate_task")


def direct_tools() -> tuple[str, ...]:
    """The tools that requests of a default session name, with the web."""
    tools = SessionTools()
    for entry in built_in_entries():
        if entry.spec.name in WEB:
            tools.offer(entry.spec.name, entry)
    return tools.choose_direct(wanted_names(Settings()), ContextSettings().direct_tool_tokens)


def test_the_core_tools_fit_into_context_direct_tool_tokens() -> None:
    missing = {*CORE} - {*direct_tools()} - {*EXTRA}
    assert missing == set(), (
        f"{missing} must be found by search, because the core tools do not fit into "
        "context.direct_tool_tokens. Shorten the descriptions in the `@tool` functions, or raise "
        "the default in config/session_settings.py, which makes every request longer."
    )


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from nodes(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from nodes(value)


@pytest.mark.parametrize("entry", built_in_entries(), ids=lambda entry: entry.spec.name)
def test_a_schema_is_plain_enough_for_every_model_server(entry: CatalogueEntry) -> None:
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
        "from hermes.tools.catalogue import declarations, load_target\n"
        "todo = declarations()['todo']\n"
        "print(sorted(name for name in sys.modules if name.startswith('hermes.tools.')))\n"
        "print(load_target(todo.target).name, 'hermes.tools.todo' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(path for path in sys.path if path)},
    )
    assert done.stdout == "['hermes.tools.catalogue']\ntodo True\n"


def test_other_packages_can_add_tools_and_replace_some() -> None:
    tools = SessionTools()
    tools.add([CatalogueEntry(shout.spec, shout)])
    assert tools.find("shout") is shout
    assert tools.choose(("shout",)).specs == (shout.spec,)
    assert tools.filter_known(("shout", "fly")) == ("shout",)
    tools.add([CatalogueEntry(shout.spec, load_target(declarations()["todo"].target))])
    replaced = tools.find("shout")
    assert replaced is not None and replaced.name == "todo"
    assert tools.find("fly") is None


def test_chosen_tools_are_a_toolbox_of_what_is_there() -> None:
    box: Toolbox = ChosenTools(AVAILABLE, ["todo", "clarify", "fly"])
    assert [spec.name for spec in box.specs] == ["clarify", "todo"]
    assert box.load("todo") is not None
    assert box.load("patch") is None
    assert box.load("fly") is None


def test_a_target_must_be_a_tool() -> None:
    with pytest.raises(TypeError, match="is not a tool"):
        load_target("hermes.tools.catalogue:ChosenTools")
