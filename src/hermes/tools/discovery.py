"""Finds and calls tools that are not named in every request."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Annotated

from msgspec import Meta

from hermes.codec.json import encode
from hermes.codec.values import JsonObject
from hermes.core.errors import ToolError
from hermes.core.prompt import ToolSpec
from hermes.core.tools import ToolContext, ToolDisplay, ToolOutput, tool

_WORD = re.compile(r"[a-z]+|\d+")
_IN_NAME = 3.0
_SCHEMA_CHARS = 1_500
_LINE_CHARS = 240
NOTHING = "No tool matches. Describe in other words what it should do."


class ToolDirectory:
    """The tools of one session that can be found."""

    def __init__(self, specs: Callable[[], Sequence[ToolSpec]] = tuple) -> None:
        self.specs = specs


@tool(repeat="safe", toolset="tool_search", kind="search")
async def tool_search(
    ctx: ToolContext,
    query: Annotated[str, "What the tool should do, or its name"],
    limit: Annotated[int, Meta(ge=1, le=20)] = 5,
) -> ToolOutput:
    """Find tools that are not listed here by what they do. Use one with tool_call."""
    found = rank_tools(query, ctx.service(ToolDirectory).specs())[:limit]
    if not found:
        return ToolOutput.text(NOTHING, details={"found": []})
    text = "\n\n".join(map(describe_tool, found))
    return ToolOutput.text(text, details={"found": [signature(spec) for spec in found]})


@tool(toolset="tool_search", display=ToolDisplay(title="{name}"))
async def tool_call(
    ctx: ToolContext,
    name: Annotated[str, "From tool_search"],
    arguments: JsonObject | None = None,
) -> ToolOutput:
    """Use a tool that is not listed here."""
    # The loop runs the named tool, with its own effects, in place of this one.
    raise ToolError(f"{name} cannot be used here.")


def rank_tools(query: str, specs: Sequence[ToolSpec]) -> list[ToolSpec]:
    """Return matching tools, best first. Rare words count most."""
    wanted = set(_words(query))
    texts = []
    for spec in specs:
        arguments = " ".join(spec.parameters.get("properties", {}))
        texts.append((_words(spec.name), _words(f"{spec.description} {arguments}")))
    count = {word: sum(_in(word, n) or _in(word, t) for n, t in texts) for word in wanted}
    scored = []
    for spec, (name, text) in zip(specs, texts, strict=True):
        score = sum(
            math.log(1 + len(specs) / count[word])
            * (_IN_NAME if _in(word, name) else 1.0 if _in(word, text) else 0.0)
            for word in wanted
            if count[word]
        )
        score += 100 if query.strip().lower() == spec.name.lower() else 0
        if score:
            scored.append((-score, spec.name, spec))
    return [spec for *_, spec in sorted(scored, key=lambda each: each[:2])]


def describe_tool(spec: ToolSpec) -> str:
    """Return everything that a model needs to use the tool."""
    schema = encode(spec.parameters).decode()
    shown = schema if len(schema) <= _SCHEMA_CHARS else signature(spec)
    return f"{spec.name}: {spec.description}\narguments: {shown}"


def signature(spec: ToolSpec) -> str:
    """Return one line about the tool."""
    properties = spec.parameters.get("properties", {})
    required = spec.parameters.get("required", [])
    arguments = [
        f"{name}{'' if name in required else '?'}: "
        + (str(schema.get("type", "any")) if isinstance(schema, dict) else "any")
        for name, schema in properties.items()
    ]
    first = spec.description.partition("\n")[0].partition(". ")[0]
    return f"{spec.name}({', '.join(arguments)}) {first}"[:_LINE_CHARS]


def _words(text: str) -> list[str]:
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", text)
    return _WORD.findall(spaced.lower())


def _in(word: str, words: Sequence[str]) -> bool:
    """Return whether the word, or another form of it, is there."""
    if len(word) < 4:
        return word in words
    stem = word[: max(4, len(word) - 3)]
    return any(each == word or each.startswith(stem) for each in words)
