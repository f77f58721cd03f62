"""Answers requests from a server: sampling, elicitation and roots."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections import deque
from collections.abc import Awaitable, Callable
from pathlib import Path

from hermes.codec.json import encode
from hermes.codec.values import JsonObject, JsonValue
from hermes.core.messages import (
    AssistantMessage,
    Image,
    Message,
    Text,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from hermes.core.prompt import ToolSpec
from hermes.core.world import World
from hermes.mcp.calls import IMAGE_TYPES, KeepImage, Sample, SampleRequest, ToolCaller
from hermes.mcp.listing import clean_description, clean_schema
from hermes.mcp.server import McpServer, ServerFault

Ask = Callable[[str, tuple[str, ...]], Awaitable[str | None]]
DECLINE = "decline"
YES, NO = "yes", "no"
_TRUE = frozenset((YES, "y", "true", "1", "on", "ok"))


class FormField:
    """One field: name, description and choices."""

    def __init__(self, name: str, schema: JsonObject, *, required: bool) -> None:
        self.name = name
        self.required = required
        self._schema = schema
        self._kind = schema.get("type", "string")
        self._values = _choices(schema)

    @property
    def choices(self) -> tuple[str, ...]:
        offered = (YES, NO) if self._kind == "boolean" else tuple(self._values)
        default_text = self.default_text
        if default_text is not None:
            # The default comes first.
            offered = (default_text, *(each for each in offered if each != default_text))
        return (*offered, DECLINE) if offered else ()

    @property
    def default_text(self) -> str | None:
        """Returns the text of the default value."""
        given = self._schema.get("default")
        match given:
            case None:
                return None
            case bool():
                return YES if given else NO
            case list():
                return ", ".join(self._label(each) for each in given)
            case _:
                return self._label(given)

    @property
    def words(self) -> str:
        title = self._schema.get("title") or self.name
        about = clean_description(str(self._schema.get("description") or ""))
        return f"{title}: {about}" if about else str(title)

    def value(self, text: str) -> JsonValue:
        """Converts the answer; ValueError when it is invalid."""
        match self._kind:
            case "boolean":
                return text.strip().lower() in _TRUE
            case "integer":
                return int(text)
            case "number":
                return float(text)
            case "array":
                return [self._one(each.strip()) for each in text.split(",") if each.strip()]
            case _:
                return self._one(text)

    def _label(self, value: JsonValue) -> str:
        return next((words for words, known in self._values.items() if known == value), str(value))

    def _one(self, text: str) -> JsonValue:
        if self._values and text not in self._values:
            raise ValueError(text)
        return self._values.get(text, text)


class ElicitationForm:
    def __init__(self, server: str, params: JsonObject) -> None:
        schema = params.get("requestedSchema") or {}
        required = schema.get("required") or ()
        self.intro = f"{server} asks: {clean_description(str(params.get('message', '')))}"
        self.fields = tuple(
            FormField(name, inner if isinstance(inner, dict) else {}, required=name in required)
            for name, inner in (schema.get("properties") or {}).items()
        )


async def fill_form(form: ElicitationForm, ask: Ask) -> JsonObject:
    """Returns the filled-in form, a decline or a cancellation."""
    if not form.fields:
        reply = await ask(form.intro, (YES, DECLINE))
        return {"action": _action(reply)} | ({"content": {}} if reply == YES else {})
    content: JsonObject = {}
    for field in form.fields:
        reply = await ask(f"{form.intro}\n{field.words}", field.choices)
        if reply is None or reply.strip().lower() == DECLINE:
            return {"action": _action(reply)}
        try:
            content[field.name] = field.value(reply)
        except ValueError:
            if field.required:
                return {"action": DECLINE}
    return {"action": "accept", "content": content}


def _action(reply: str | None) -> str:
    if reply is None:
        return "cancel"
    return "accept" if reply.strip().lower() in _TRUE else DECLINE


def _choices(schema: JsonObject) -> dict[str, JsonValue]:
    """Returns the choices by their labels."""
    inner = schema.get("items") if isinstance(schema.get("items"), dict) else schema
    inner = inner or {}
    titled = inner.get("oneOf") or inner.get("anyOf") or ()
    if titled:
        return {str(each.get("title", each.get("const"))): each.get("const") for each in titled}
    names = schema.get("enumNames") or ()
    values = inner.get("enum") or ()
    return {str(names[n] if n < len(names) else value): value for n, value in enumerate(values)}


_USE, _RESULT = "tool_use", "tool_result"


def request_of(
    server: McpServer, params: JsonObject, keep_image: KeepImage | None = None
) -> SampleRequest:
    """Builds the request within the token limit. Images are included where they can be stored."""
    messages: list[Message] = []
    for each in params.get("messages", ()):
        messages += _to_messages(server, each, keep_image)
    preferences = params.get("modelPreferences") or {}
    hints = (hint.get("name", "") for hint in preferences.get("hints") or ())
    return SampleRequest(
        server=server.name,
        system=str(params.get("systemPrompt") or ""),
        messages=tuple(messages),
        tools=tuple(_to_tool_spec(tool) for tool in params.get("tools") or ()),
        max_tokens=max(1, min(int(params.get("maxTokens", 1)), server.sampling.max_tokens_cap)),
        hints=tuple(hint for hint in hints if hint),
    )


def result_of(sample: Sample) -> JsonObject:
    content = list(sample.content)
    only = content[0] if len(content) == 1 else content
    return {
        "role": "assistant",
        "content": only or {"type": "text", "text": ""},
        "model": sample.model,
        "stopReason": sample.stop,
    }


def content_of(message: AssistantMessage) -> tuple[JsonObject, ...]:
    """Converts a reply to the protocol's content blocks."""
    found: list[JsonObject] = []
    for part in message.parts:
        match part:
            case Text(text=text) if text:
                found.append({"type": "text", "text": text})
            case ToolCall(id=call_id, name=name, arguments=arguments):
                found.append({"type": _USE, "id": call_id, "name": name, "input": arguments})
            case _:
                pass
    return tuple(found)


def tool_rounds(params: JsonObject) -> int:
    """Counts the tool rounds at the end of the messages."""
    rounds = 0
    for message in reversed(params.get("messages", ())):
        kinds = {block.get("type") for block in _blocks(message)}
        if message.get("role") == "assistant" and _USE in kinds:
            rounds += 1
        elif _RESULT not in kinds:
            break
    return rounds


def _blocks(message: JsonObject) -> list[JsonObject]:
    content: JsonValue = message.get("content") or []
    return content if isinstance(content, list) else [content]


def _to_messages(server: McpServer, message: JsonObject, keep: KeepImage | None) -> list[Message]:
    blocks = _blocks(message)
    if message.get("role") == "assistant":
        parts = tuple(part for block in blocks if (part := _assistant_part(block)) is not None)
        stop = "calls" if any(isinstance(part, ToolCall) for part in parts) else "done"
        return [AssistantMessage(parts=parts, stop="calls" if stop == "calls" else "done")]
    results = tuple(
        _to_tool_result(server, block) for block in blocks if block.get("type") == _RESULT
    )
    others = tuple(_user_part(block, keep) for block in blocks if block.get("type") != _RESULT)
    found: list[Message] = [ToolMessage(results=results)] if results else []
    if others:
        found.append(UserMessage(parts=others, origin=server.origin))
    return found


def _user_part(block: JsonObject, keep: KeepImage | None) -> Text | Image:
    kind = str(block.get("mimeType", ""))
    if block.get("type") == "image" and kind in IMAGE_TYPES and keep is not None:
        try:
            data = base64.b64decode(str(block.get("data", "")), validate=True)
        except binascii.Error:
            return Text(text=_block_text(block))
        return Image(file=keep(data, kind), media_type=kind)
    return Text(text=_block_text(block))


def _assistant_part(block: JsonObject) -> Text | ToolCall | None:
    match block.get("type"):
        case "text":
            return Text(text=str(block.get("text", "")))
        case "tool_use":
            return ToolCall(
                id=str(block.get("id", "")),
                name=str(block.get("name", "")),
                arguments=block.get("input") or {},
            )
        case _:
            return None


def _to_tool_result(server: McpServer, block: JsonObject) -> ToolResult:
    inner = block.get("content") or ()
    return ToolResult(
        call_id=str(block.get("toolUseId", "")),
        name="",
        parts=(Text(text="\n".join(_block_text(each) for each in inner)),),
        failed=bool(block.get("isError")),
        origin=server.origin,
    )


def _block_text(block: JsonObject) -> str:
    if block.get("type") == "text":
        return str(block.get("text", ""))
    if block.get("type") in ("image", "audio"):
        return f"[{block.get('mimeType', block['type'])}]"
    return encode(block).decode()


def _to_tool_spec(tool: JsonObject) -> ToolSpec:
    return ToolSpec(
        name=str(tool.get("name", "")),
        description=clean_description(str(tool.get("description") or "")),
        parameters=clean_schema(tool.get("inputSchema") or {}),
    )


_MINUTE = 60.0
DECLINED: JsonObject = {"action": "decline"}
CANCELLED: JsonObject = {"action": "cancel"}


class ServerRequests:
    """For one server. A request belongs to the running call; a server that asks without a call,
    or during calls of several sessions, gets an error."""

    def __init__(self, server: McpServer, world: World, folder: str) -> None:
        self.server = server
        self._world = world
        self._folder = folder
        self._callers: list[ToolCaller] = []
        self._recent: deque[float] = deque()

    def begin(self, caller: ToolCaller) -> None:
        self._callers.append(caller)

    def end(self, caller: ToolCaller) -> None:
        self._callers.remove(caller)

    def roots(self) -> list[JsonObject]:
        folders = dict.fromkeys(caller.root for caller in self._callers) or {self._folder: None}
        return [{"uri": Path(each).as_uri(), "name": Path(each).name or each} for each in folders]

    async def sample(self, params: JsonObject) -> JsonObject:
        limits = self.server.sampling
        hosting = self._caller().hosting
        sampler = hosting.sampler
        if not limits.enabled or sampler is None:
            raise ServerFault("Sampling is disabled.")
        if tool_rounds(params) >= limits.max_tool_rounds:
            raise ServerFault(f"More than {limits.max_tool_rounds} tool rounds in a row.")
        self._count()
        request = request_of(self.server, params, hosting.keep_image)
        try:
            async with asyncio.timeout(limits.timeout):
                return result_of(await sampler(self.server, request))
        except TimeoutError:
            raise ServerFault(f"No answer within {limits.timeout:g} s.") from None

    async def elicit(self, params: JsonObject) -> JsonObject:
        """Shows forms to the person; requests to open a URL are declined."""
        if params.get("mode", "form") != "form" or "requestedSchema" not in params:
            return DECLINED
        form = ElicitationForm(self.server.name, params)
        caller = self._caller()
        try:
            async with asyncio.timeout(self.server.elicitation.timeout):
                return await fill_form(form, caller.ask)
        except TimeoutError:
            return CANCELLED

    def _caller(self) -> ToolCaller:
        hostings = {id(caller.hosting) for caller in self._callers}
        if not hostings:
            raise ServerFault("No call is running, so no one can be asked.")
        if len(hostings) > 1:
            raise ServerFault(
                "Calls of several sessions are running; the request cannot be assigned."
            )
        return self._callers[-1]

    def _count(self) -> None:
        now = self._world.clock.monotonic()
        while self._recent and now - self._recent[0] >= _MINUTE:
            self._recent.popleft()
        if len(self._recent) >= self.server.sampling.max_rpm:
            raise ServerFault(f"More than {self.server.sampling.max_rpm} requests in a minute.")
        self._recent.append(now)
