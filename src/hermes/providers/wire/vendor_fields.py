"""Request fields that differ between vendors: conversation id, reasoning effort, tool schemas."""

from __future__ import annotations

import hashlib
from functools import lru_cache

from hermes.codec.json import encode
from hermes.codec.values import JsonObject, JsonValue
from hermes.core.messages import Message, UserMessage
from hermes.core.prompt import Prompt, ToolSpec
from hermes.providers.endpoint import Endpoint
from hermes.providers.normalization import clean_json
from hermes.providers.profile import ModelProfile
from hermes.providers.wire.events import list_of, object_of, objects_of


class ConversationFields:
    """The conversation id in requests. Nothing is sent unless the profile names a field or header
    for it. Without a configured id, the id is a hash of the start of the conversation, so it is
    stable as long as prompt caches are."""

    def __init__(self, endpoint: Endpoint, profile: ModelProfile) -> None:
        self._model = endpoint.model
        self._profile = profile
        self._id = profile.conversation
        self._start: tuple[str, Message] | None = None
        self._initiator = ""

    def update(self, prompt: Prompt, messages: tuple[Message, ...]) -> None:
        """Update id and initiator for a request; `messages` are the repaired messages of the
        prompt."""
        if self._profile.initiator:
            last = messages[-1]
            from_user = isinstance(last, UserMessage) and last.origin == "user"
            self._initiator = "user" if from_user else "agent"
        named = self._profile.conversation_field or self._profile.conversation_header
        start = self._start
        if not named or self._profile.conversation:
            return
        if start is None or start[0] != prompt.system or start[1] is not messages[0]:
            self._start = (prompt.system, messages[0])
            digest = hashlib.sha256(encode([self._model, prompt.system, messages[0]]))
            self._id = digest.hexdigest()[:32]

    @property
    def fields(self) -> JsonObject:
        field = self._profile.conversation_field
        return {field: self._id} if field and self._id else {}

    @property
    def headers(self) -> dict[str, str]:
        named = {
            self._profile.conversation_header: self._id,
            self._profile.initiator: self._initiator,
        }
        return {name: value for name, value in named.items() if name and value}


LEVELS = ("none", "minimal", "low", "medium", "high", "xhigh", "max", "ultra")
_OFF = ("false", "off", "disabled")
_BUDGETS = {"minimal": 4_000, "low": 4_000, "medium": 8_000, "high": 16_000}
_LARGEST_BUDGET = 32_000
_SMALLEST_BUDGET = 1_024
ANSWER_TOKENS = 4_096
"""Tokens reserved for the answer when reasoning has its own budget."""


def level_of(effort: str) -> str:
    """Return one of LEVELS, or "" for the provider's default."""
    effort = effort.strip().lower()
    if effort in _OFF:
        return "none"
    return effort if effort in LEVELS else ""


def nearest_level(level: str, known: tuple[str, ...]) -> str:
    """Return the level itself or the next stronger one that the model supports, else its strongest;
    "" if it supports none."""
    if not known:
        return ""
    strong = [other for other in known if LEVELS.index(other) >= LEVELS.index(level)]
    return strong[0] if strong else known[-1]


def effort_fields(profile: ModelProfile, effort: str) -> JsonObject:
    """Return the top-level request fields for every style except "budget" (see
    `reasoning_budget`)."""
    level = level_of(effort)
    supported = nearest_level(level, profile.efforts) if level else ""
    if profile.effort == "responses":
        # A model without levels still returns encrypted reasoning, which is sent back later.
        sealed: JsonObject = {"include": ["reasoning.encrypted_content"]}
        if not profile.efforts:
            return sealed
        chosen = {"effort": supported} if level else {}
        return {"reasoning": {**chosen, "summary": "auto"}, **sealed}
    if not level:
        return {}
    on = level != "none"
    toggle = {"thinking": {"type": "enabled" if on else "disabled"}}
    match profile.effort:
        case "adaptive" if on:
            thinking = {"type": "adaptive", "display": "summarized"}
            return {"thinking": thinking, "output_config": {"effort": supported}}
        case "envelope" | "envelope_on" if on:
            return {"reasoning": {"enabled": True, **({"effort": supported} if supported else {})}}
        case "envelope":
            return {"reasoning": {"enabled": False}}
        case "flat" if supported:
            return {"reasoning_effort": supported}
        case "template":
            return {"chat_template_kwargs": {"enable_thinking": on}}
        case "enable_thinking":
            return {"enable_thinking": on}
        case "think":
            return {"think": on}
        case "toggle":
            return toggle
        case "toggle_effort":
            return toggle | ({"reasoning_effort": supported} if on and supported else {})
        case "google":
            # Newer models take a level, older ones a token count; none takes both.
            budget = _BUDGETS.get(level, _LARGEST_BUDGET) if on else 0
            fields = {"thinking_level": supported} if supported else {"thinking_budget": budget}
            config = {"include_thoughts": on, **fields}
            return {"extra_body": {"google": {"thinking_config": config}}}
        case _:
            return {}


def reasoning_budget(profile: ModelProfile, effort: str, limit: int | None = None) -> int:
    """Return the reasoning tokens in the style "budget"; 0 disables reasoning. They stay below
    `limit`, the maximum output of the request."""
    level = level_of(effort)
    if profile.effort != "budget" or level in ("", "none"):
        return 0
    wanted = _BUDGETS.get(level, _LARGEST_BUDGET)
    for ceiling in (profile.max_output, limit):
        if ceiling is not None:
            wanted = min(wanted, ceiling - ANSWER_TOKENS)
    return wanted if wanted >= _SMALLEST_BUDGET else 0


_KEPT_KEYWORDS = ("description", "minimum", "maximum", "minItems", "maxItems")
_MAX_DEPTH = 24


class _ToolIdentity:
    """A key that compares tools by identity, because the sessions of a process share them."""

    __slots__ = ("tool",)

    def __init__(self, tool: ToolSpec) -> None:
        self.tool = tool

    def __hash__(self) -> int:
        return id(self.tool)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ToolIdentity) and self.tool is other.tool


def tool_schema(tool: ToolSpec, profile: ModelProfile) -> JsonObject:
    """Return the tool's JSON Schema without unsupported keywords. Shared: do not modify."""
    return _schema(_ToolIdentity(tool), profile.schemas == "reduced", profile.patterns)


@lru_cache(maxsize=1024)
def _schema(same: _ToolIdentity, reduce: bool, patterns: bool) -> JsonObject:
    parameters: JsonObject = clean_json(same.tool.parameters)
    if reduce:
        return _Reducer(parameters).reduce(parameters)
    result: JsonObject = parameters if patterns else _without_patterns(parameters)
    return result


def _without_patterns(value: JsonValue, *, names: bool = False) -> JsonValue:
    """Remove `pattern` and `format`. `names` means that the keys are argument names, as inside
    `properties`, not schema keywords."""
    if isinstance(value, list):
        return [_without_patterns(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _without_patterns(item, names=key == "properties" and not names)
        for key, item in value.items()
        if names or key not in ("pattern", "format")
    }


class _Reducer:
    """Rewrites a schema with keywords that every endpoint supports: one type each, properties,
    items, string enums and anyOf. What they cannot express is left open, and so is a recursive
    definition. `path` lists the definitions being expanded."""

    def __init__(self, root: JsonObject) -> None:
        held = (*object_of(root.get("definitions")).items(), *object_of(root.get("$defs")).items())
        self._definitions = {name: node for name, node in held if isinstance(node, dict)}

    def reduce(self, node: JsonValue, path: tuple[str, ...] = (), *, depth: int = 0) -> JsonObject:
        if not isinstance(node, dict) or depth > _MAX_DEPTH:
            return {"type": "string"}
        node, path = self._resolve(node, path)
        kept = {name: node[name] for name in _KEPT_KEYWORDS if name in node}
        choices = _choices(node)
        if len(choices) > 1:
            made = [self.reduce(choice, path, depth=depth + 1) for choice in choices]
            return {**kept, "anyOf": made}
        if choices:
            return {**self.reduce(choices[0], path, depth=depth + 1), **kept}
        kind = _type_of(node)
        if kind == "object":
            return {**kept, "type": kind, **self._members(node, path, depth)}
        if kind == "array":
            items = self.reduce(node.get("items"), path, depth=depth + 1)
            return {**kept, "type": kind, "items": items}
        values = [node["const"]] if "const" in node else list_of(node.get("enum"))
        if kind == "string" and values and all(isinstance(word, str) for word in values):
            return {**kept, "type": kind, "enum": values}
        return {**kept, "type": kind}

    def _resolve(
        self, node: JsonObject, path: tuple[str, ...]
    ) -> tuple[JsonObject, tuple[str, ...]]:
        """Follow references and merge all parts of `allOf`."""
        while (name := str(node.get("$ref", "")).rpartition("/")[2]) in self._definitions:
            rest = {key: value for key, value in node.items() if key != "$ref"}
            inner = {"type": "object"} if name in path else self._definitions[name]
            node, path = {**inner, **rest}, (*path, name)
        for part in objects_of(node.get("allOf")):
            joined, path = self._resolve(part, path)
            properties = object_of(joined.get("properties")) | object_of(node.get("properties"))
            required = [*list_of(node.get("required")), *list_of(joined.get("required"))]
            node = {**joined, **node, "required": required}
            if properties:
                node["properties"] = properties
        return node, path

    def _members(self, node: JsonObject, path: tuple[str, ...], depth: int) -> JsonObject:
        properties = node.get("properties")
        if not isinstance(properties, dict):
            return {"properties": {}} if depth == 0 else {}
        made = {n: self.reduce(v, path, depth=depth + 1) for n, v in properties.items()}
        required = [n for n in list_of(node.get("required")) if isinstance(n, str) and n in made]
        return {"properties": made, **({"required": required} if required else {})}


def _choices(node: JsonObject) -> list[JsonObject]:
    """Return the alternatives of a node without null; empty if it has none."""
    for word in ("anyOf", "oneOf"):
        if held := objects_of(node.get(word)):
            return [choice for choice in held if choice.get("type") != "null"]
    kinds = node.get("type")
    if not isinstance(kinds, list):
        return []
    return [{**node, "type": kind} for kind in kinds if isinstance(kind, str) and kind != "null"]


def _type_of(node: JsonObject) -> str:
    kind = node.get("type")
    if isinstance(kind, str) and kind != "null":
        return kind
    if isinstance(node.get("properties"), dict):
        return "object"
    return "array" if "items" in node else "string"
