"""Decodes replies of the chat completions API, streamed or whole."""

from __future__ import annotations

from collections.abc import Iterator

from hermes.codec.values import JsonObject
from hermes.core.messages import AssistantMessage, StopReason, Usage
from hermes.core.prompt import Delta
from hermes.net.sse import SseEvent
from hermes.providers.endpoint import Endpoint
from hermes.providers.failures import classify_event, malformed_response
from hermes.providers.wire.events import (
    chat_words,
    event_objects,
    object_of,
    objects_of,
    parse_json,
    text_of,
)
from hermes.providers.wire.reply_builder import CallBuilder, ReplyBuilder
from hermes.providers.wire.usage import chat_usage


class CallAssembler:
    """A fragment belongs to the call with its index, or else to the newest call. It starts a new
    call when it has a name plus an id or arguments that cannot belong to the matched call: some
    servers use index 0 for every call, or send no index."""

    def __init__(self, draft: ReplyBuilder) -> None:
        self._draft = draft
        self._by_index: dict[int, CallBuilder] = {}
        self._last: CallBuilder | None = None

    def add(self, piece: JsonObject) -> Iterator[Delta]:
        function = object_of(piece.get("function"))
        id, name = _text(piece.get("id")), _text(function.get("name"))
        index, arguments = piece.get("index"), function.get("arguments")
        wish = self._find(index, id)
        if wish is None or (name and _starts_new_call(wish, id, name, arguments)):
            yield from self._draft.flush()
            doubtful = wish is not None and not id and name == wish.name
            wish = self._draft.add_call(id)
            wish.doubtful = doubtful
            if isinstance(index, int):
                self._by_index[index] = wish
        self._last = wish
        _append_name(wish, name)
        wish.id = wish.id or id
        if arguments is not None:
            _append_arguments(wish, arguments)
            if not wish.is_echo:
                yield from self._draft.announce(wish)

    def _find(self, index: object, id: str) -> CallBuilder | None:
        if isinstance(index, int):
            return self._by_index.get(index)
        if id:
            same = [wish for wish in self._draft.calls if wish.id == id]
            return same[0] if same else self._last
        return self._last


def _starts_new_call(wish: CallBuilder, id: str, name: str, arguments: object) -> bool:
    if id and wish.id:
        return id != wish.id
    if wish.given_arguments is not None:
        return arguments is not None
    if not wish.size:
        return False
    return name != wish.name or (_is_complete(wish.raw) and _starts_over(arguments, wish.raw))


def _is_complete(raw: str) -> bool:
    return raw.rstrip().endswith("}") and isinstance(
        parse_json(raw.encode("utf-8", "replace")), dict
    )


def _starts_over(arguments: object, raw: str) -> bool:
    if isinstance(arguments, str):
        starts = not arguments or arguments.lstrip().startswith("{")
        return starts and not (arguments and arguments.startswith(raw))
    return isinstance(arguments, dict)


def _append_name(wish: CallBuilder, name: str) -> None:
    """A name may arrive whole, in fragments, or whole with every fragment."""
    if not name or name == wish.name:
        return
    wish.name = name if name.startswith(wish.name) else wish.name + name


def _append_arguments(wish: CallBuilder, piece: object) -> None:
    if isinstance(piece, dict):
        wish.given_arguments = piece
    if not isinstance(piece, str) or not piece:
        return
    # A JSON object hardly ever continues with its own beginning, so such a fragment is a full
    # resend.
    if wish.size and len(piece) >= wish.size and piece.startswith(wish.raw):
        wish.replace(piece)
    else:
        wish.append(piece)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


_STOPS: dict[str, StopReason] = {
    "stop": "done",
    "tool_calls": "calls",
    "function_call": "calls",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "filtered",
}
_PLAIN = frozenset(("role", "content"))


class ChatReader:
    def __init__(self, endpoint: Endpoint, draft: ReplyBuilder) -> None:
        self.draft = draft
        self.model = ""
        self.usage: Usage | None = None
        self.ended = False
        self.closed = False
        self._endpoint = endpoint
        self._calls = CallAssembler(draft)
        self._stop: StopReason = "done"
        self._thoughts: list[str] = []
        self._details: list[JsonObject] = []
        self._signatures: JsonObject = {}

    def words(self, event: SseEvent) -> str | None:
        # The first chunk also carries the model name, so it needs full parsing.
        return chat_words(event.data) if self.model else None

    def feed(self, event: SseEvent) -> Iterator[Delta]:
        if event.data.strip() == b"[DONE]":
            self.ended = self.closed = True
            return
        for chunk in event_objects(event):
            yield from self._chunk(chunk)

    def run_out(self) -> None:
        """Only an explicit end marks the reply as complete."""

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
        return self.draft.message(self._stop if self.ended else "cut")

    def _chunk(self, chunk: JsonObject) -> Iterator[Delta]:
        if error := chunk.get("error"):
            raise classify_event(self._endpoint, error)
        self.model = self.model or text_of(chunk.get("model"))
        choices = objects_of(chunk.get("choices"))
        if (usage := chat_usage(chunk.get("usage"))) is not None:
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
                yield from self.draft.add_text(text)
            return
        yield from self._think(delta)
        if text := text_of(delta.get("content")):
            yield from self.draft.add_text(text)
        if refusal := text_of(delta.get("refusal")):
            self._stop = "filtered"
            yield from self.draft.add_text(refusal)
        for place, piece in enumerate(objects_of(delta.get("tool_calls"))):
            yield from self._calls.add(piece)
            if signed := object_of(piece.get("extra_content")):
                self._signatures[str(piece.get("index", place))] = signed
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
        yield from self.draft.add_reasoning(text)

    def _seal(self) -> None:
        """Keeps the reasoning fields that the endpoint expects back in later requests."""
        sealed: JsonObject = {}
        if self._thoughts:
            sealed["reasoning_content"] = "".join(self._thoughts)
        if self._details:
            sealed["reasoning_details"] = _join_details(self._details)
        if self._signatures:
            sealed["extra_content"] = self._signatures
        if sealed:
            self.draft.first_reasoning().sealed = sealed


def _join_details(details: list[JsonObject]) -> list[JsonObject]:
    """Merges fragments with the same index and type into one block; blocks keep their order."""
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
