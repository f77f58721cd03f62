"""Decodes replies of the Anthropic messages API, streamed or whole."""

from __future__ import annotations

from collections.abc import Iterator

from hermes.codec.values import JsonObject, JsonValue
from hermes.core.messages import AssistantMessage, StopReason, Usage
from hermes.core.prompt import Delta
from hermes.providers.endpoint import Endpoint
from hermes.providers.failures import classify_event, malformed_response
from hermes.providers.sse import SseEvent
from hermes.providers.wire.draft import CallBuilder, ReasoningBuilder, ReplyBuilder
from hermes.providers.wire.loose import event_objects, object_of, objects_of, text_of
from hermes.providers.wire.plain import messages_words
from hermes.providers.wire.usage import messages_usage

_STOPS: dict[str, StopReason] = {
    "end_turn": "done",
    "stop_sequence": "done",
    "tool_use": "calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "filtered",
    # The server asks for a follow-up request that contains the reply so far.
    "pause_turn": "length",
}


class MessagesReader:
    def __init__(self, endpoint: Endpoint, draft: ReplyBuilder) -> None:
        self.draft = draft
        self.model = ""
        self.ended = False
        self.closed = False
        self._endpoint = endpoint
        self._stop: StopReason = "done"
        self._counts: JsonObject = {}
        self._blocks: dict[str, CallBuilder | ReasoningBuilder] = {}
        self._signatures: dict[str, str] = {}

    @property
    def usage(self) -> Usage | None:
        return messages_usage(self._counts)

    def words(self, event: SseEvent) -> str | None:
        return messages_words(event.data)

    def feed(self, event: SseEvent) -> Iterator[Delta]:
        for document in event_objects(event):
            yield from self._event(text_of(document.get("type")) or event.name, document)

    def run_out(self) -> None:
        """Only an explicit end marks the reply as complete."""

    def read(self, body: JsonObject) -> Iterator[Delta]:
        if error := body.get("error"):
            raise classify_event(self._endpoint, error)
        if not isinstance(body.get("content"), list):
            raise malformed_response(self._endpoint, "the reply has no content")
        self._begin(body)
        for place, block in enumerate(objects_of(body.get("content"))):
            yield from self._start(str(place), block)
            yield from self._close(str(place))
        self._finish(body)
        self.ended = True

    def message(self) -> AssistantMessage:
        return self.draft.message(self._stop if self.ended else "cut")

    def _event(self, kind: str, event: JsonObject) -> Iterator[Delta]:
        place = str(event.get("index"))
        match kind:
            case "content_block_delta":
                yield from self._delta(place, object_of(event.get("delta")))
            case "content_block_start":
                yield from self._start(place, object_of(event.get("content_block")))
            case "content_block_stop":
                yield from self._close(place)
            case "message_start":
                self._begin(object_of(event.get("message")))
            case "message_delta":
                self._count(event.get("usage"))
                self._finish(object_of(event.get("delta")))
            case "message_stop":
                self.ended = self.closed = True
            case "error":
                raise classify_event(self._endpoint, event.get("error") or event)

    def _begin(self, message: JsonObject) -> None:
        self.model = text_of(message.get("model"))
        self._count(message.get("usage"))

    def _count(self, usage: JsonValue) -> None:
        """Later counts are totals and replace earlier ones; null is ignored."""
        given = object_of(usage)
        self._counts |= {name: value for name, value in given.items() if value is not None}

    def _start(self, place: str, block: JsonObject) -> Iterator[Delta]:
        match block.get("type"):
            case "text":
                yield from self.draft.add_text(text_of(block.get("text")))
            case "thinking":
                self._blocks[place] = self.draft.add_reasoning_part()
                self._signatures[place] = text_of(block.get("signature"))
                yield from self.draft.add_reasoning(text_of(block.get("thinking")))
            case "redacted_thinking":
                self.draft.add_reasoning_part().sealed = block
            case "tool_use":
                yield from self.draft.flush()
                wish = self.draft.add_call(text_of(block.get("id")), text_of(block.get("name")))
                self._blocks[place] = wish
                given = block.get("input")
                if isinstance(given, dict) and given:
                    wish.given_arguments = given
                elif isinstance(given, str):
                    wish.append(given)
                yield from self.draft.announce(wish)

    def _delta(self, place: str, delta: JsonObject) -> Iterator[Delta]:
        block = self._blocks.get(place)
        match delta.get("type"):
            case "text_delta":
                yield from self.draft.add_text(text_of(delta.get("text")))
            case "thinking_delta":
                yield from self.draft.add_reasoning(text_of(delta.get("thinking")))
            case "signature_delta":
                signature = self._signatures.get(place, "") + text_of(delta.get("signature"))
                self._signatures[place] = signature
            case "input_json_delta" if isinstance(block, CallBuilder):
                self._write(block, delta.get("partial_json"))

    def _write(self, wish: CallBuilder, piece: JsonValue) -> None:
        if isinstance(piece, dict):
            wish.given_arguments = piece
        elif isinstance(piece, str) and piece:
            wish.given_arguments = None
            wish.append(piece)

    def _close(self, place: str) -> Iterator[Delta]:
        """Ends a block. Reasoning without a signature cannot be sent back."""
        block = self._blocks.get(place)
        signature = self._signatures.get(place, "")
        if isinstance(block, ReasoningBuilder) and signature:
            thinking = "".join(block.pieces)
            block.sealed = {"type": "thinking", "thinking": thinking, "signature": signature}
        yield from self.draft.flush()

    def _finish(self, delta: JsonObject) -> None:
        if reason := text_of(delta.get("stop_reason")):
            self._stop = _STOPS.get(reason, "done")
            self.ended = True
