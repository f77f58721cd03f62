"""Adds tool calls to a local model: constrains replies by a schema and parses calls from them."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import aclosing
from typing import Literal

from hermes.codec.json import encode
from hermes.codec.values import JsonObject, JsonValue, replace
from hermes.core.errors import ProviderError
from hermes.core.messages import (
    AssistantMessage,
    Message,
    Reasoning,
    Text,
    ToolCall,
    ToolMessage,
    UserMessage,
    user_says,
)
from hermes.core.prompt import (
    CallNamed,
    Delta,
    Notice,
    Prompt,
    Reply,
    Restarted,
    TextDelta,
    ToolSpec,
)
from hermes.providers.normalization import call_ids, fresh_id

TEXT = "text"
TOOL = "tool"
ARGUMENTS = "arguments"

# Keywords that the runtime reliably turns into a grammar. Tools check number ranges and string
# formats themselves.
_KEPT_KEYWORDS = ("type", "enum", "const")
_CHOICES = ("anyOf", "oneOf")
_MAX_DEPTH = 12
_ANYTHING: JsonObject = {}


def answer_schema(tools: tuple[ToolSpec, ...]) -> JsonObject:
    """Return the JSON Schema of a reply: a text, or a call of one of these tools."""
    text_schema = _record({TEXT: {"type": "string"}}, required=[TEXT])
    if not tools:
        return text_schema
    calls: list[JsonObject] = []
    for tool in tools:
        arguments = simplify(tool.parameters)
        if arguments.get("type") != "object":
            arguments = {"type": "object"}
        named = {TOOL: {"const": tool.name}, ARGUMENTS: arguments}
        calls.append(_record(named, required=[TOOL, ARGUMENTS]))
    return {"anyOf": [text_schema, *calls]}


def simplify(schema: JsonValue) -> JsonObject:
    """Return a schema of the same shape with few keywords and no references; anything unknown is
    allowed."""
    return _simplify(schema, schema, 0)


def _simplify(schema: JsonValue, root: JsonValue, depth: int) -> JsonObject:
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return _ANYTHING
    if isinstance(reference := schema.get("$ref"), str):
        return _simplify(_resolve(reference, root), root, depth + 1)
    for choice in _CHOICES:
        kinds = schema.get(choice)
        if isinstance(kinds, list) and kinds:
            return {"anyOf": [_simplify(kind, root, depth + 1) for kind in kinds]}
    made: JsonObject = {key: schema[key] for key in _KEPT_KEYWORDS if key in schema}
    if isinstance(items := schema.get("items"), dict):
        made["items"] = _simplify(items, root, depth + 1)
    if isinstance(properties := schema.get("properties"), dict) and properties:
        inner = {name: _simplify(kind, root, depth + 1) for name, kind in properties.items()}
        known = [name for name in schema.get("required", ()) if name in inner]
        return _record(inner, required=known)
    if isinstance(more := schema.get("additionalProperties"), dict):
        made["additionalProperties"] = _simplify(more, root, depth + 1)
    return made


def _record(properties: JsonObject, *, required: list[str]) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _resolve(reference: str, root: JsonValue) -> JsonValue:
    """Return the target of a reference inside the same schema, or None."""
    found = root
    for step in reference.removeprefix("#").strip("/").split("/"):
        found = found.get(step) if isinstance(found, dict) else None
    return found


_INTRODUCTION = """\
# Tools
You act through these tools, one call at a time. Each line describes one:
"""
_FORM = """
Write one JSON object and nothing else. To use a tool:
{"tool": "…", "arguments": {…}}
Its result is the next message. To answer the person, when no tool is needed any more:
{"text": "…"}"""


def without_tools(prompt: Prompt) -> Prompt:
    """Return the prompt for a model without tools: earlier results become text, calls are
    dropped."""
    messages: list[Message] = []
    for message in prompt.messages:
        if isinstance(message, AssistantMessage) and message.calls:
            message = AssistantMessage(parts=(Text(text=message.text),))
        messages.append(_results(message) if isinstance(message, ToolMessage) else message)
    return replace(prompt, messages=tuple(messages), tools=())


def with_tools_as_text(prompt: Prompt) -> Prompt:
    """Return the prompt for a model whose replies follow `answer_schema`. Its earlier replies get
    the same form."""
    system = f"{prompt.system}\n\n{describe_tools(prompt.tools)}".lstrip()
    messages = tuple(_to_form(message) for message in prompt.messages)
    return replace(prompt, system=system, messages=messages, tools=())


def describe_tools(tools: tuple[ToolSpec, ...]) -> str:
    lines = (encode(tool).decode() for tool in tools)
    return _INTRODUCTION + "\n".join(lines) + "\n" + _FORM


def _to_form(message: Message) -> Message:
    match message:
        case UserMessage():
            return message
        case AssistantMessage(text=text, calls=calls):
            entries: list[JsonObject] = [
                {"tool": call.name, "arguments": call.arguments} for call in calls
            ]
            lines = (encode(entry).decode() for entry in entries or [{"text": text}])
            return AssistantMessage(parts=(Text(text="\n".join(lines)),))
        case ToolMessage():
            return _results(message)


def _results(message: ToolMessage) -> UserMessage:
    texts = (
        f"{f'{r.name} failed' if r.failed else f'Result of {r.name}'}:\n{r.text}"
        for r in message.results
    )
    return user_says("\n\n".join(texts), origin="tool")


# Some models put a code fence around all JSON.
_START = r"\s*(?:```(?:json)?\s*)?\{\s*"
_TEXT = re.compile(rf'{_START}"{TEXT}"\s*:\s*"')
_TOOL = re.compile(rf'{_START}"{TOOL}"\s*:\s*"((?:[^"\\]|\\.)*)"', re.DOTALL)
_HEX = r"[0-9a-fA-F]"
_HIGH_SURROGATE = rf"u[dD][89abAB]{_HEX}{{2}}"
# The complete characters of a JSON string. The first half of a surrogate pair waits for the second.
_CHARACTERS = re.compile(
    rf'(?:[^"\\]+|\\(?:[^u]|(?!{_HIGH_SURROGATE})u{_HEX}{{4}}'
    rf"|{_HIGH_SURROGATE}(?:\\u{_HEX}{{4}}|(?=\\[^u]|[^\\]))))*",
    re.DOTALL,
)
_ESCAPES = re.compile(rf"(?:\\u{_HEX}{{4}})+|\\.", re.DOTALL)

ReplyStage = Literal["opening", "text", "call", "closed"]


class ConstrainedReply:
    """Takes JSON as it arrives; `message` is the reply once it is complete."""

    def __init__(self) -> None:
        self._raw: list[str] = []
        self._stage: ReplyStage = "opening"
        self._text: list[str] = []
        self._held = ""
        self._tool = ""

    def feed(self, piece: str) -> Iterator[Delta]:
        self._raw.append(piece)
        if self._stage == "opening":
            piece = yield from self._open()
        if self._stage == "text":
            yield from self._read_text(piece)

    @property
    def lacks_form(self) -> bool:
        """There is output, but it has neither text nor a call."""
        return self._stage == "opening" and bool("".join(self._raw).strip())

    def finish(self) -> Iterator[Delta]:
        """End the reply; output without the expected form counts as text."""
        if self.lacks_form:
            self._text = ["".join(self._raw)]
            self._stage = "closed"
            yield TextDelta(text=self._text[0])

    def message(self, whole: AssistantMessage, *, call_id: str) -> AssistantMessage:
        """Build the message from the JSON of `whole`, whose reasoning and stop reason are kept."""
        thoughts = tuple(part for part in whole.parts if isinstance(part, Reasoning))
        if self._stage != "call":
            text = "".join(self._text)
            return AssistantMessage(
                parts=(*thoughts, Text(text=text)) if text else thoughts, stop=whole.stop
            )
        arguments = _parse_arguments("".join(self._raw))
        broken = "the call is incomplete" if arguments is None else ""
        call = ToolCall(id=call_id, name=self._tool, arguments=arguments or {}, broken=broken)
        stop = "calls" if whole.stop == "done" else whole.stop
        return AssistantMessage(parts=(*thoughts, call), stop=stop)

    def _open(self) -> Generator[Delta, None, str]:
        """Detect what the reply is; return the rest of the text so far."""
        so_far = "".join(self._raw)
        if match := _TEXT.match(so_far):
            self._stage = "text"
            return so_far[match.end() :]
        if match := _TOOL.match(so_far):
            self._stage = "call"
            self._tool = _unquote(match[1])
            yield CallNamed(name=self._tool)
        return ""

    def _read_text(self, piece: str) -> Iterator[Delta]:
        pending = self._held + piece
        match = _CHARACTERS.match(pending)
        end = match.end() if match else 0
        self._held = pending[end:]
        if self._held.startswith('"'):
            self._stage = "closed"
        if end:
            text = _ESCAPES.sub(lambda escape: _unquote(escape[0]), pending[:end])
            self._text.append(text)
            yield TextDelta(text=text)


def _unquote(text: str) -> str:
    try:
        value: str = json.loads(f'"{text}"', strict=False)
    except ValueError:
        return text
    return value.encode("utf-8", "replace").decode("utf-8")


def _parse_arguments(raw: str) -> dict[str, JsonValue] | None:
    try:
        value, _ = json.JSONDecoder(strict=False).raw_decode(raw, raw.index("{"))
    except (ValueError, RecursionError):
        return None
    arguments = value.get(ARGUMENTS) if isinstance(value, dict) else None
    return arguments if isinstance(arguments, dict) else None


UNCONSTRAINED = (
    "The format of tool calls cannot be enforced for this model, so some calls may fail."
)


# Sends a prompt without tools; the schema constrains the reply.
AskEngine = Callable[[Prompt, JsonObject | None], AsyncGenerator[Delta | Reply]]


class ConstrainedTools:
    """Offers tools through a reply schema. The runtime does not enforce tool calls, whatever the
    file's template says, so all files use a schema."""

    def __init__(self, ask: AskEngine) -> None:
        self._ask = ask
        self._unconstrained = False

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        rendered = with_tools_as_text(prompt)
        form: JsonObject | None = answer_schema(() if prompt.text_only else prompt.tools)
        started = repeated = False
        while True:
            form = None if self._unconstrained else form
            try:
                async with aclosing(self._read(prompt, rendered, form)) as items:
                    async for item in items:
                        started |= not isinstance(item, Notice)
                        yield item
                return
            except ProviderError as error:
                if started:
                    raise
                if form is not None and error.reason in ("format_error", "server_error"):
                    self._unconstrained = True
                elif error.reason == "cut" and not repeated:
                    repeated = True
                else:
                    raise
            if self._unconstrained and form is not None:
                yield Notice(text=UNCONSTRAINED, kind="warn")

    async def _read(
        self, prompt: Prompt, asked: Prompt, schema: JsonObject | None
    ) -> AsyncGenerator[Delta | Reply]:
        answer = ConstrainedReply()
        async with aclosing(self._ask(asked, schema)) as items:
            async for item in items:
                match item:
                    case TextDelta(text=text):
                        for delta in answer.feed(text):
                            yield delta
                    case Restarted():
                        answer = ConstrainedReply()
                        yield item
                    case Reply(message=AssistantMessage(stop="cut")) if answer.lacks_form:
                        raise ProviderError("The model's reply broke off; try again.", reason="cut")
                    case Reply():
                        for delta in answer.finish():
                            yield delta
                        # Unused, and stable for the same conversation.
                        messages = prompt.messages
                        call_id = fresh_id(f"call_{len(messages)}", call_ids(messages))
                        message = answer.message(item.message, call_id=call_id)
                        yield replace(item, message=message)
                    case _:
                        yield item
