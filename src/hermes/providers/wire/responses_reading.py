"""Decodes replies of the responses API, streamed or whole."""

from __future__ import annotations

from collections.abc import Iterator

from hermes.codec.values import JsonObject
from hermes.core.messages import AssistantMessage, StopReason, Usage
from hermes.core.prompt import Delta
from hermes.providers.endpoint import Endpoint
from hermes.providers.failures import classify_event, malformed_response
from hermes.providers.sse import SseEvent
from hermes.providers.wire.draft import CallBuilder, ReplyBuilder
from hermes.providers.wire.loose import event_objects, object_of, objects_of, text_of
from hermes.providers.wire.plain import responses_words
from hermes.providers.wire.usage import responses_usage

_TEXT = ("response.output_text.delta", "response.refusal.delta")
_THOUGHT = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")
_ENDS = ("response.completed", "response.incomplete", "response.done")


class ResponsesReader:
    """Deltas are only for display; the whole item at its end is authoritative."""

    def __init__(self, endpoint: Endpoint, draft: ReplyBuilder) -> None:
        self.draft = draft
        self.model = ""
        self.usage: Usage | None = None
        self.ended = False
        self.closed = False
        self._endpoint = endpoint
        self._stop: StopReason = "done"
        self._wishes: dict[str, CallBuilder] = {}
        self._spoken: set[str] = set()
        self._thought: set[str] = set()
        self._open: set[str] = set()

    def words(self, event: SseEvent) -> str | None:
        found = responses_words(event.data)
        return found[0] if found is not None and found[1] in self._spoken else None

    def feed(self, event: SseEvent) -> Iterator[Delta]:
        for document in event_objects(event):
            yield from self._event(text_of(document.get("type")) or event.name, document)

    def run_out(self) -> None:
        """Every item announces its end; when all have ended, the reply is complete."""
        self.ended = self.ended or (bool(self.draft.parts) and not self._open)

    def read(self, body: JsonObject) -> Iterator[Delta]:
        if error := body.get("error"):
            raise classify_event(self._endpoint, error)
        if not isinstance(body.get("output"), list):
            raise malformed_response(self._endpoint, "the reply has no output")
        for place, item in enumerate(objects_of(body.get("output"))):
            yield from self._item(str(place), item)
        self._end(body)

    def message(self) -> AssistantMessage:
        return self.draft.message(self._stop if self.ended else "cut")

    def _event(self, kind: str, event: JsonObject) -> Iterator[Delta]:
        place = str(event.get("output_index", event.get("item_id")))
        if kind in _TEXT:
            self._spoken.add(place)
            yield from self.draft.add_text(text_of(event.get("delta")))
        elif kind in _THOUGHT:
            self._thought.add(place)
            yield from self.draft.add_reasoning(text_of(event.get("delta")))
        elif kind == "response.output_item.added":
            self._open.add(place)
            yield from self._begin(place, object_of(event.get("item")))
        elif kind == "response.function_call_arguments.delta" and place in self._wishes:
            self._wishes[place].append(text_of(event.get("delta")))
        elif kind == "response.function_call_arguments.done" and place in self._wishes:
            self._wishes[place].replace(text_of(event.get("arguments")))
        elif kind == "response.output_item.done":
            self._open.discard(place)
            yield from self._item(place, object_of(event.get("item")))
        elif kind in _ENDS:
            self._end(object_of(event.get("response")))
        elif kind in ("response.failed", "error"):
            held = object_of(event.get("response"))
            raise classify_event(self._endpoint, held.get("error") or event.get("error") or event)

    def _begin(self, place: str, item: JsonObject) -> Iterator[Delta]:
        if item.get("type") == "function_call":
            yield from self.draft.flush()
            wish = self._wish(place, item)
            yield from self.draft.announce(wish)

    def _wish(self, place: str, item: JsonObject) -> CallBuilder:
        if place not in self._wishes:
            self._wishes[place] = self.draft.add_call()
        wish = self._wishes[place]
        wish.id = text_of(item.get("call_id")) or wish.id
        wish.name = text_of(item.get("name")) or wish.name
        return wish

    def _item(self, place: str, item: JsonObject) -> Iterator[Delta]:
        match item.get("type"):
            case "message":
                yield from self._words(place, item)
            case "function_call":
                yield from self._begin(place, item)
                arguments = item.get("arguments")
                if isinstance(arguments, dict):
                    self._wish(place, item).given_arguments = arguments
                elif isinstance(arguments, str) and arguments:
                    self._wish(place, item).replace(arguments)
            case "reasoning":
                yield from self._reasoning(place, item)

    def _words(self, place: str, item: JsonObject) -> Iterator[Delta]:
        parts = objects_of(item.get("content"))
        if any(part.get("type") == "refusal" for part in parts):
            self._stop = "filtered"
        if place not in self._spoken:
            for part in parts:
                yield from self.draft.add_text(
                    text_of(part.get("text")) or text_of(part.get("refusal"))
                )
        yield from self.draft.flush()

    def _reasoning(self, place: str, item: JsonObject) -> Iterator[Delta]:
        if place not in self._thought:
            yield from self.draft.add_reasoning(
                "\n".join(text_of(part.get("text")) for part in objects_of(item.get("summary")))
            )
        if item.get("encrypted_content"):
            # The item id is left out: the server was asked not to store the item.
            self.draft.open_reasoning().sealed = {
                "type": "reasoning",
                "summary": objects_of(item.get("summary")),
                "encrypted_content": item["encrypted_content"],
            }

    def _end(self, response: JsonObject) -> None:
        self.model = text_of(response.get("model"))
        self.usage = responses_usage(response.get("usage"))
        status = response.get("status")
        if status in ("failed", "cancelled"):
            raise classify_event(self._endpoint, response.get("error") or f"response {status}")
        if status == "incomplete":
            why = object_of(response.get("incomplete_details")).get("reason")
            self._stop = "filtered" if why == "content_filter" else "length"
        self.ended = self.closed = True
