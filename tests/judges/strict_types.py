"""The request types of the vendors' own libraries, made strict: no key that they do not name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from pydantic import TypeAdapter
from pydantic_core import SchemaValidator

from hermes.testing.wires.table import WireName

Schema = dict[str, Any]


class Changes(NamedTuple):
    """What a vendor adds to the types, by the name of the type: `fields` are further optional
    keys (or other types of known ones) and `optional` are keys that need not be there."""

    fields: Mapping[str, Mapping[str, Any]] = {}
    optional: Mapping[str, tuple[str, ...]] = {}


class WireTypes(NamedTuple):
    """`item` is the type of one entry of the conversation."""

    item: Any
    whole: Any
    streamed: Any


# The field that holds the conversation.
ITEMS: dict[WireName, str] = {"chat": "messages", "responses": "input", "messages": "messages"}


def types_of(wire: WireName) -> WireTypes:
    """Each library takes a second to load: whoever speaks one wire waits for no other."""
    match wire:
        case "chat":
            from openai.types.chat import ChatCompletionMessageParam, completion_create_params

            return WireTypes(
                ChatCompletionMessageParam,
                completion_create_params.CompletionCreateParamsNonStreaming,
                completion_create_params.CompletionCreateParamsStreaming,
            )
        case "responses":
            from openai.types.responses import ResponseInputItemParam, response_create_params

            return WireTypes(
                ResponseInputItemParam,
                response_create_params.ResponseCreateParamsNonStreaming,
                response_create_params.ResponseCreateParamsStreaming,
            )
        case "messages":
            from anthropic.types import message_create_params
            from anthropic.types.message_param import MessageParam

            return WireTypes(
                MessageParam,
                message_create_params.MessageCreateParamsNonStreaming,
                message_create_params.MessageCreateParamsStreaming,
            )


def validator(wire: WireName, kind: str, changes: Changes) -> SchemaValidator:
    return SchemaValidator(_Tightening(_schema(wire, kind), changes).whole())


@cache
def _schema(wire: WireName, kind: str) -> Schema:
    return dict(TypeAdapter[Any](getattr(types_of(wire), kind)).core_schema)


class _Tightening:
    def __init__(self, schema: Schema, changes: Changes) -> None:
        self._schema = schema
        self._changes = changes
        definitions = schema.get("definitions", ())
        self._models = {one["ref"] for one in definitions if one["type"] == "model"}

    def whole(self) -> Any:
        return self._node(self._schema)

    def _node(self, node: Any) -> Any:
        if isinstance(node, list):
            return [self._node(item) for item in node]
        if not isinstance(node, dict) or node.get("type") == "model":
            return node
        made = {name: self._node(value) for name, value in node.items()}
        match made.get("type"):
            case "generator":
                # The libraries take any iterable, and look into it only when it is used up.
                return {"type": "list", "items_schema": made["items_schema"]}
            case "union":
                made["choices"] = [choice for choice in made["choices"] if not self._reply(choice)]
            case "typed-dict":
                self._tighten(made)
        return made

    def _reply(self, choice: Schema) -> bool:
        """Objects of answers may be passed back to the libraries; a request has none."""
        emptied = choice["type"] == "union" and not choice["choices"]
        return emptied or choice["type"] == "model" or choice.get("schema_ref") in self._models

    def _tighten(self, schema: Schema) -> None:
        if schema.get("extra_behavior") != "allow":
            schema["extra_behavior"] = "forbid"
        name = schema["cls"].__name__
        for key, kind in self._changes.fields.get(name, {}).items():
            added = TypeAdapter[Any](kind).core_schema
            schema["fields"][key] = {
                "type": "typed-dict-field",
                "schema": added,
                "required": False,
            }
        for key in self._changes.optional.get(name, ()):
            schema["fields"][key] = schema["fields"][key] | {"required": False}
