"""Encodes prompts and decodes replies of the chat completions API."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from hermes.codec.values import JsonObject, JsonValue
from hermes.core.messages import (
    AssistantMessage,
    Image,
    Message,
    Reasoning,
    StopReason,
    Text,
    ToolCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from hermes.core.prompt import Delta, Prompt, ToolSpec
from hermes.net.sse import SseEvent
from hermes.providers.endpoint import Endpoint
from hermes.providers.failures import classify_event, malformed_response
from hermes.providers.normalization import clean_text
from hermes.providers.wire.events import (
    MISMATCH,
    event_objects,
    object_of,
    objects_of,
    parse_json,
    text_of,
)
from hermes.providers.wire.format import (
    TEXT_PART_END,
    ReplyReader,
    WireFormat,
    cache_mark,
    sorted_text,
)
from hermes.providers.wire.reply_builder import CallBuilder, ReplyBuilder
from hermes.providers.wire.usage import openai_usage
from hermes.providers.wire.vendor_fields import tool_schema


class CallAssembler:
    """Assigns fragments to tool calls. A fragment belongs to the call with its index, or else to
    the newest call. It starts a new call when it has a name plus an id or arguments that cannot
    belong to the matched call: some servers use index 0 for every call, or send no index."""

    def __init__(self, builder: ReplyBuilder) -> None:
        self._draft = builder
        self._by_index: dict[int, CallBuilder] = {}
        self._last: CallBuilder | None = None

    def add(self, piece: JsonObject) -> Iterator[Delta]:
        function = object_of(piece.get("function"))
        id, name = text_of(piece.get("id")), text_of(function.get("name"))
        index, arguments = piece.get("index"), function.get("arguments")
        call = self._find(index, id)
        if call is None or (name and _starts_new_call(call, id, name, arguments)):
            yield from self._draft.flush()
            doubtful = call is not None and not id and name == call.name
            call = self._draft.add_call(id)
            call.doubtful = doubtful
            if isinstance(index, int):
                self._by_index[index] = call
        self._last = call
        if name != call.name:
            # A name may arrive whole, in fragments, or whole with every fragment.
            call.name = name if name.startswith(call.name) else call.name + name
        call.id = call.id or id
        if arguments is not None:
            _append_arguments(call, arguments)
            if not call.is_echo:
                yield from self._draft.announce(call)

    def _find(self, index: object, id: str) -> CallBuilder | None:
        if isinstance(index, int):
            return self._by_index.get(index)
        if id:
            same = [call for call in self._draft.calls if call.id == id]
            return same[0] if same else self._last
        return self._last


def _starts_new_call(call: CallBuilder, id: str, name: str, arguments: object) -> bool:
    if id and call.id:
        return id != call.id
    if call.parsed_arguments is not None:
        return arguments is not None
    if not call.size:
        return False
    if name != call.name:
        return True
    raw = call.raw
    if not raw.rstrip().endswith("}"):
        return False
    if isinstance(arguments, str):
        resent = arguments.startswith(raw)
        starts_over = not arguments or (arguments.lstrip().startswith("{") and not resent)
    else:
        starts_over = isinstance(arguments, dict)
    return starts_over and isinstance(parse_json(raw.encode("utf-8", "replace")), dict)


def _append_arguments(call: CallBuilder, piece: object) -> None:
    if isinstance(piece, dict):
        call.parsed_arguments = piece
    if not isinstance(piece, str) or not piece:
        return
    # A JSON object hardly ever continues with its own beginning, so such a fragment is a full
    # resend.
    if call.size and len(piece) >= call.size and piece.startswith(call.raw):
        call.replace(piece)
    else:
        call.append(piece)


_STOPS: dict[str, StopReason] = {
    "stop": "done",
    "tool_calls": "calls",
    "function_call": "calls",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "filtered",
}
_PLAIN = frozenset(("role", "content"))


class _Delta(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    role: str | None = None
    content: str | None = None


class _Choice(msgspec.Struct, gc=False):
    delta: _Delta
    finish_reason: None = None
    error: None = None


class _Chunk(msgspec.Struct, gc=False):
    """A chunk with nothing but text."""

    choices: tuple[_Choice]
    usage: None = None
    error: None = None


_decode_chunk = msgspec.json.Decoder(_Chunk).decode


class ChatReader(ReplyReader):
    def __init__(self, endpoint: Endpoint, builder: ReplyBuilder) -> None:
        super().__init__(endpoint, builder)
        self._calls = CallAssembler(builder)
        self._thoughts: list[str] = []
        self._details: list[JsonObject] = []
        self._signatures: JsonObject = {}

    def plain_text(self, event: SseEvent) -> str | None:
        # The first chunk also carries the model name, so it needs full parsing.
        if not self.model:
            return None
        try:
            return _decode_chunk(event.data).choices[0].delta.content or ""
        except MISMATCH:
            return None

    def feed(self, event: SseEvent) -> Iterator[Delta]:
        if event.data.strip() == b"[DONE]":
            self.ended = self.closed = True
            return
        for chunk in event_objects(event):
            yield from self._chunk(chunk)

    def read(self, body: JsonObject) -> Iterator[Delta]:
        choices = objects_of(body.get("choices"))
        if not choices and "error" not in body:
            raise malformed_response(self._endpoint, "the reply has no message")
        message = object_of(choices[0].get("message")) if choices else {}
        # Whole calls need no assembly: each gets its own index.
        calls = [{**c, "index": n} for n, c in enumerate(objects_of(message.get("tool_calls")))]
        whole = {**message, "tool_calls": calls}
        yield from self._chunk({**body, "choices": [{**c, "delta": whole} for c in choices[:1]]})
        self.ended = True

    def message(self) -> AssistantMessage:
        self._seal()
        return super().message()

    def _chunk(self, chunk: JsonObject) -> Iterator[Delta]:
        if error := chunk.get("error"):
            raise classify_event(self._endpoint, error)
        self.model = self.model or text_of(chunk.get("model"))
        choices = objects_of(chunk.get("choices"))
        if (usage := openai_usage(chunk.get("usage"), "prompt", "completion")) is not None:
            self.usage = usage
            # A chunk with usage and no choices is the last one.
            self.ended = self.ended or not choices
        for choice in choices[:1]:
            yield from self._delta(object_of(choice.get("delta")))
            self._finish(choice)

    def _finish(self, choice: JsonObject) -> None:
        finish = text_of(choice.get("finish_reason"))
        if finish == "error" or choice.get("error"):
            raise classify_event(self._endpoint, choice.get("error") or finish)
        if finish:
            if self._stop != "filtered":
                self._stop = _STOPS.get(finish, "done")
            self.ended = True

    def _delta(self, delta: JsonObject) -> Iterator[Delta]:
        if delta.keys() <= _PLAIN:
            # The common case: plain content.
            if text := text_of(delta.get("content")):
                yield from self.builder.add_text(text)
            return
        yield from self._think(delta)
        if text := text_of(delta.get("content")):
            yield from self.builder.add_text(text)
        if refusal := text_of(delta.get("refusal")):
            self._stop = "filtered"
            yield from self.builder.add_text(refusal)
        for index, piece in enumerate(objects_of(delta.get("tool_calls"))):
            yield from self._calls.add(piece)
            if signed := object_of(piece.get("extra_content")):
                self._signatures[str(piece.get("index", index))] = signed
        if isinstance(old := delta.get("function_call"), dict):
            yield from self._calls.add({"index": 0, "function": old})

    def _think(self, delta: JsonObject) -> Iterator[Delta]:
        details = objects_of(delta.get("reasoning_details"))
        self._details += details
        content = text_of(delta.get("reasoning_content"))
        # Servers that send more than one of these fields repeat the same text.
        text = content or text_of(delta.get("reasoning"))
        if not text:
            text = "".join(text_of(d.get("text")) or text_of(d.get("summary")) for d in details)
        if content:
            self._thoughts.append(content)
        yield from self.builder.add_reasoning(text)

    def _seal(self) -> None:
        """Keep the reasoning fields that the endpoint expects back in later requests."""
        sealed: JsonObject = {}
        if self._thoughts:
            sealed["reasoning_content"] = "".join(self._thoughts)
        if self._details:
            sealed["reasoning_details"] = _join_details(self._details)
        if self._signatures:
            sealed["extra_content"] = self._signatures
        if sealed:
            self.builder.first_reasoning().sealed = sealed


def _join_details(details: list[JsonObject]) -> list[JsonObject]:
    """Merge fragments with the same index and type into one block; blocks keep their order."""
    blocks: list[JsonObject] = []
    for piece in details:
        last = blocks[-1] if blocks else {}
        same = "index" in piece and all(piece.get(k) == last.get(k) for k in ("index", "type"))
        if not same:
            blocks.append(dict(piece))
            continue
        for name, value in piece.items():
            grows = name in ("text", "summary", "data") and isinstance(last.get(name), str)
            if grows and isinstance(value, str):
                last[name] += value
            elif value is not None:
                last[name] = value
    return blocks


class ChatWire(WireFormat):
    """The chat completions format. A cache mark needs a part to sit on, so with marks every content
    is a list of parts."""

    path = "/chat/completions"
    reader_type = ChatReader
    stream_fields = {"stream": True, "stream_options": {"include_usage": True}}
    mark_end = TEXT_PART_END

    def _opening(self, prompt: Prompt) -> bytes:
        fields: JsonObject = {"model": self._endpoint.model}
        if prompt.tools:
            fields["tools"] = [self._tool(tool) for tool in prompt.tools]
        first = b""
        if system := self._system_text(prompt):
            role = "developer" if self._profile.developer else "system"
            content: JsonValue = system
            if self._marks:
                mark = cache_mark(self._cache_ttl)
                content = [{"type": "text", "text": system, "cache_control": mark}]
            first = self._json({"role": role, "content": content})
        return self._open_list(fields, "messages", first)

    def _tool(self, tool: ToolSpec) -> JsonObject:
        function = {
            "name": tool.name,
            "description": clean_text(tool.description),
            "parameters": tool_schema(tool, self._profile),
        }
        return {"type": "function", "function": function}

    def _fields(
        self, prompt: Prompt, messages: tuple[Message, ...], head: bytes, fragments: list[bytes]
    ) -> JsonObject:
        fields: JsonObject = {}
        if prompt.tools:
            fields["tool_choice"] = "none" if prompt.text_only else "auto"
        if (limit := self._output_limit(prompt)) is not None:
            fields[self._profile.output_field] = limit
        return fields

    def _fragment(self, message: Message) -> bytes:
        match message:
            case UserMessage(parts=parts):
                return self._json({"role": "user", "content": self._content(parts)})
            case AssistantMessage():
                return self._json(self._assistant(message))
            case ToolMessage(results=results):
                return b",".join(self._json(self._result(result)) for result in results)

    def _assistant(self, message: AssistantMessage) -> JsonObject:
        """Encode a message of the model. `content` comes last, so that a cache mark can be appended
        to the encoded fragment."""
        field = self._profile.replay
        encoded: JsonObject = {"role": "assistant"}
        sealed = [p.sealed for p in message.parts if isinstance(p, Reasoning) and self._sealed(p)]
        reasoning = next((held[field] for held in sealed if held and field in held), None)
        signatures: JsonObject = {}
        if field == "extra_content":
            # Signatures belong to single calls, by position, not to the message.
            signatures = reasoning or {}
        elif reasoning is not None and field not in ("none", "sealed"):
            encoded[field] = reasoning
        if message.calls:
            encoded["tool_calls"] = calls = [self._call(call) for call in message.calls]
            for index, call in enumerate(calls):
                if signature := signatures.get(str(index)):
                    call["extra_content"] = signature
        text = message.text.strip()
        encoded["content"] = self._content((Text(text=text),)) if text else None
        return encoded

    def _result(self, result: ToolResult) -> JsonObject:
        pictures = any(isinstance(part, Image) for part in result.parts)
        parts = self._marks and not pictures
        content = self._content(result.parts) if parts else self._result_content(result)
        return {"role": "tool", "tool_call_id": result.call_id, "content": content}

    def _content(self, parts: tuple[Text | Image, ...]) -> JsonValue:
        encoded = [self._part(part) for part in parts]
        if not self._marks and all(part["type"] == "text" for part in encoded):
            return "".join(part["text"] for part in encoded)
        return super()._content(parts) or ""

    def _call(self, call: ToolCall) -> JsonObject:
        function = {"name": call.name, "arguments": sorted_text(call.arguments)}
        return {"id": call.id, "type": "function", "function": function}

    def _image(self, media_type: str, data: str) -> JsonObject:
        return {"type": "image_url", "image_url": {"url": f"data:{media_type};base64,{data}"}}
