"""Answers requests from a server: sampling, elicitation and roots."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
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
from hermes.core.prompt import Prompt, Reply, ToolSpec
from hermes.core.world import World
from hermes.mcp.calls import IMAGE_TYPES, KeepImage, ToolCaller
from hermes.mcp.listing import clean_description, clean_schema
from hermes.mcp.server import McpServer, ServerFault

Ask = Callable[[str, tuple[str, ...]], Awaitable[str | None]]
DECLINE = "decline"
YES, NO = "yes", "no"
DECLINED: JsonObject = {"action": DECLINE}
CANCELLED: JsonObject = {"action": "cancel"}
_TRUE = frozenset((YES, "y", "true", "1", "on", "ok"))


class FormField:
    """One field: name, description and choices."""

    def __init__(self, name: str, schema: JsonObject) -> None:
        self._name = name
        self._schema = schema
        self._kind = schema.get("type", "string")
        self._values = _choices(schema)

    @property
    def choices(self) -> tuple[str, ...]:
        offered = (YES, NO) if self._kind == "boolean" else tuple(self._values)
        default = self._schema.get("default")
        if default is not None:
            if isinstance(default, bool):
                text = YES if default else NO
            else:
                values = default if isinstance(default, list) else [default]
                text = ", ".join(self._label(each) for each in values)
            # The default comes first.
            offered = (text, *(each for each in offered if each != text))
        return (*offered, DECLINE) if offered else ()

    @property
    def question(self) -> str:
        title = self._schema.get("title") or self._name
        about = clean_description(str(self._schema.get("description") or ""))
        return f"{title}: {about}" if about else str(title)

    def value(self, text: str) -> JsonValue:
        """Convert the answer; raise ValueError when it is invalid."""
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
        return next((label for label, known in self._values.items() if known == value), str(value))

    def _one(self, text: str) -> JsonValue:
        if self._values and text not in self._values:
            raise ValueError(text)
        return self._values.get(text, text)


async def fill_form(server: str, params: JsonObject, ask: Ask) -> JsonObject:
    """Return the filled-in form, a decline or a cancellation."""
    intro = f"{server} asks: {clean_description(str(params.get('message', '')))}"
    schema = params.get("requestedSchema") or {}
    properties = schema.get("properties") or {}
    if not properties:
        reply = await ask(intro, (YES, DECLINE))
        if reply is None:
            return CANCELLED
        if reply.strip().lower() not in _TRUE:
            return DECLINED
        return {"action": "accept"} | ({"content": {}} if reply == YES else {})
    content: JsonObject = {}
    for name, inner in properties.items():
        field = FormField(name, inner if isinstance(inner, dict) else {})
        reply = await ask(f"{intro}\n{field.question}", field.choices)
        if reply is None:
            return CANCELLED
        if reply.strip().lower() == DECLINE:
            return DECLINED
        try:
            content[name] = field.value(reply)
        except ValueError:
            if name in (schema.get("required") or ()):
                return DECLINED
    return {"action": "accept", "content": content}


def _choices(schema: JsonObject) -> dict[str, JsonValue]:
    """Return the choices by their labels."""
    inner = schema.get("items") if isinstance(schema.get("items"), dict) else schema
    inner = inner or {}
    titled = inner.get("oneOf") or inner.get("anyOf") or ()
    if titled:
        return {str(each.get("title", each.get("const"))): each.get("const") for each in titled}
    names = schema.get("enumNames") or ()
    values = inner.get("enum") or ()
    return {str(names[n] if n < len(names) else value): value for n, value in enumerate(values)}


_USE, _RESULT = "tool_use", "tool_result"
_STOPS = {"done": "endTurn", "length": "maxTokens", "calls": "toolUse"}


def prompt_of(server: McpServer, params: JsonObject, keep_image: KeepImage | None = None) -> Prompt:
    """Build the prompt within the token limit. Images are included where they can be stored."""
    messages: list[Message] = []
    for each in params.get("messages", ()):
        messages += _to_messages(server, each, keep_image)
    return Prompt(
        system=str(params.get("systemPrompt") or ""),
        messages=tuple(messages),
        tools=tuple(
            ToolSpec(
                name=str(tool.get("name", "")),
                description=clean_description(str(tool.get("description") or "")),
                parameters=clean_schema(tool.get("inputSchema") or {}),
            )
            for tool in params.get("tools") or ()
        ),
        max_tokens=max(1, min(int(params.get("maxTokens", 1)), server.sampling.max_tokens_cap)),
    )


def result_of(reply: Reply) -> JsonObject:
    """Convert a reply to the protocol's content blocks."""
    blocks: list[JsonObject] = []
    for part in reply.message.parts:
        match part:
            case Text(text=text) if text:
                blocks.append({"type": "text", "text": text})
            case ToolCall(id=call_id, name=name, arguments=arguments):
                blocks.append({"type": _USE, "id": call_id, "name": name, "input": arguments})
            case _:
                pass
    content = blocks[0] if len(blocks) == 1 else blocks
    return {
        "role": "assistant",
        "content": content or {"type": "text", "text": ""},
        "model": reply.model,
        "stopReason": _STOPS.get(reply.message.stop, "endTurn"),
    }


def tool_rounds(params: JsonObject) -> int:
    """Count the tool rounds at the end of the messages."""
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
        parts: list[Text | ToolCall] = []
        for block in blocks:
            if block.get("type") == "text":
                parts.append(Text(text=str(block.get("text", ""))))
            elif block.get("type") == _USE:
                id, name = str(block.get("id", "")), str(block.get("name", ""))
                parts.append(ToolCall(id=id, name=name, arguments=block.get("input") or {}))
        has_calls = any(isinstance(part, ToolCall) for part in parts)
        return [AssistantMessage(parts=tuple(parts), stop="calls" if has_calls else "done")]
    results = tuple(
        ToolResult(
            call_id=str(block.get("toolUseId", "")),
            name="",
            parts=(Text(text="\n".join(_block_text(each) for each in block.get("content") or ())),),
            failed=bool(block.get("isError")),
            origin=server.origin,
        )
        for block in blocks
        if block.get("type") == _RESULT
    )
    others = tuple(_user_part(block, keep) for block in blocks if block.get("type") != _RESULT)
    messages: list[Message] = [ToolMessage(results=results)] if results else []
    if others:
        messages.append(UserMessage(parts=others, origin=server.origin))
    return messages


def _user_part(block: JsonObject, keep: KeepImage | None) -> Text | Image:
    kind = str(block.get("mimeType", ""))
    if block.get("type") == "image" and kind in IMAGE_TYPES and keep is not None:
        with suppress(binascii.Error):
            data = base64.b64decode(str(block.get("data", "")), validate=True)
            return Image(file=keep(data, kind), media_type=kind)
    return Text(text=_block_text(block))


def _block_text(block: JsonObject) -> str:
    if block.get("type") == "text":
        return str(block.get("text", ""))
    if block.get("type") in ("image", "audio"):
        return f"[{block.get('mimeType', block['type'])}]"
    return encode(block).decode()


_MINUTE = 60.0


class ServerRequests:
    """Answers the requests of one server. A request belongs to the running call; a server that asks
    without a call, or during calls of several sessions, gets an error."""

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
        roots = [caller.ctx.workspace.root for caller in self._callers] or [self._folder]
        paths = (Path(root) for root in dict.fromkeys(roots))
        return [{"uri": path.as_uri(), "name": path.name or str(path)} for path in paths]

    async def sample(self, params: JsonObject) -> JsonObject:
        limits = self.server.sampling
        services = self._caller().services
        sampler = services.sampler
        if not limits.enabled or sampler is None:
            raise ServerFault("Sampling is disabled.")
        if tool_rounds(params) >= limits.max_tool_rounds:
            raise ServerFault(f"More than {limits.max_tool_rounds} tool rounds in a row.")
        now = self._world.clock.monotonic()
        while self._recent and now - self._recent[0] >= _MINUTE:
            self._recent.popleft()
        if len(self._recent) >= limits.max_rpm:
            raise ServerFault(f"More than {limits.max_rpm} requests in a minute.")
        self._recent.append(now)
        prompt = prompt_of(self.server, params, services.keep_image)
        preferences = params.get("modelPreferences") or {}
        hints = tuple(hint.get("name", "") for hint in preferences.get("hints") or ())
        try:
            async with asyncio.timeout(limits.timeout):
                return result_of(await sampler(self.server, prompt, hints))
        except TimeoutError:
            raise ServerFault(f"No answer within {limits.timeout:g} s.") from None

    async def elicit(self, params: JsonObject) -> JsonObject:
        """Show forms to the person; requests to open a URL are declined."""
        if params.get("mode", "form") != "form" or "requestedSchema" not in params:
            return DECLINED
        ask = self._caller().ctx.ask
        try:
            async with asyncio.timeout(self.server.elicitation.timeout):
                return await fill_form(self.server.name, params, ask)
        except TimeoutError:
            return CANCELLED

    def _caller(self) -> ToolCaller:
        sessions = {id(caller.services) for caller in self._callers}
        if not sessions:
            raise ServerFault("No call is running, so no one can be asked.")
        if len(sessions) > 1:
            raise ServerFault(
                "Calls of several sessions are running; the request cannot be assigned."
            )
        return self._callers[-1]
