"""Converts a turn into the output items of a response, complete or as a stream of events."""

from __future__ import annotations

from hermes.codec.json import encode
from hermes.codec.values import JsonObject
from hermes.commands.tool_calls import image_data_url, image_of
from hermes.core.events import Event, ReplyAdded, ToolFinished
from hermes.core.messages import AssistantMessage, ToolCall, ToolResult
from hermes.hosting.follower import RecordAdded, ReplyRestarted, RunEvent, TextPiece
from hermes.hosting.run import Run
from hermes.surfaces.api.encoding import CallFinished, ToolCallTracker, sse_event

# The image path: internal, never sent to clients.
IMAGE_PATH = "hermes_place"


def message_item(run: Run, number: int, text: str, status: str = "completed") -> JsonObject:
    return {
        "type": "message",
        "id": f"msg_{run.id[-12:]}_{number}",
        "status": status,
        "role": "assistant",
        "content": [] if status == "in_progress" else [text_part(text)],
    }


def _status(message: AssistantMessage) -> str:
    return "incomplete" if message.stop == "interrupted" else "completed"


def text_part(text: str) -> JsonObject:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def call_item(call: ToolCall, status: str = "completed") -> JsonObject:
    return {
        "type": "function_call",
        "id": f"fc_{call.id}",
        "call_id": call.id,
        "name": call.name,
        "arguments": encode(call.arguments).decode(),
        "status": status,
    }


def result_item(result: ToolResult) -> JsonObject:
    return {
        "type": "function_call_output",
        "id": f"fco_{result.call_id}",
        "call_id": result.call_id,
        "output": result.text,
        "status": "completed",
    }


def image_item(result: ToolResult) -> JsonObject | None:
    """The item of a generated image; None for any other result."""
    image = image_of(result)
    if not image:
        return None
    return {
        "type": "image_generation_call",
        "id": f"ig_{result.call_id}",
        "status": "completed",
        "result": None,
        IMAGE_PATH: image,
    }


def with_image_data(item: JsonObject) -> JsonObject:
    """The item with the image data, if its file can still be read."""
    image = item.get(IMAGE_PATH)
    if not isinstance(image, str):
        return item
    shown = {name: value for name, value in item.items() if name != IMAGE_PATH}
    url = image_data_url(image)
    if url.startswith("data:"):
        return shown | {
            "result": url.partition(",")[2],
            "output_format": url[11:].partition(";")[0],
        }
    return shown | {"url": url} if url else shown


def reasoning_item(run: Run, number: int, text: str) -> JsonObject:
    part = {"type": "reasoning_text", "text": text}
    return {
        "type": "reasoning",
        "id": f"rs_{run.id[-12:]}_{number}",
        "summary": [],
        "content": [part],
    }


def output_items(run: Run, *, reasoning: bool) -> list[JsonObject]:
    """All items of a turn in order."""
    items: list[JsonObject] = []
    number = 0
    for record in run.records:
        match record.event:
            case ReplyAdded(message=message):
                if reasoning and message.reasoning:
                    items.append(reasoning_item(run, number, message.reasoning))
                if message.text:
                    items.append(message_item(run, number, message.text, _status(message)))
                items += [call_item(call) for call in message.calls]
                number += 1
            case ToolFinished(result=result):
                items.append(result_item(result))
                if (picture := image_item(result)) is not None:
                    items.append(picture)
            case _:
                pass
    return items


class ItemEncoder:
    """Encodes the items of a run as events, in the order of `output_items`. Each added item is
    also completed."""

    def __init__(self, run: Run, *, reasoning: bool) -> None:
        self._run = run
        self._shows_reasoning = reasoning
        self._thinking: int | None = None
        self._thought: list[str] = []
        self._sequence = 0
        self._index = 0
        self._number = 0
        self._open: int | None = None
        self._sent: list[str] = []
        self._indexes: dict[str, int] = {}
        self._tracker = ToolCallTracker()

    def event(self, kind: str, facts: JsonObject) -> bytes:
        fields = {"type": kind, "sequence_number": self._sequence, **facts}
        self._sequence += 1
        return sse_event(kind, encode(fields))

    def encode(self, event: RunEvent) -> bytes:
        match event:
            case TextPiece(text=text, is_text=True):
                return self._delta(text)
            case TextPiece(text=text):
                return self._think(text) if self._shows_reasoning else b""
            case ReplyRestarted():
                self._sent.clear()
                return self.event("hermes.message.restarted", {})
            case RecordAdded(record=record):
                return self._record_events(record.event)

    def close(self) -> bytes:
        """Complete the open items of a run that ended without a reply."""
        data = self._stop_thinking()
        if self._open is not None:
            data += self._done("".join(self._sent), "incomplete")
        return data

    def _record_events(self, event: Event) -> bytes:
        data = b""
        if isinstance(event, ReplyAdded):
            data += self._stop_thinking()
            if self._open is not None:
                data += self._done(event.message.text, _status(event.message))
            self._number += 1
            data += b"".join([self._start_item(call) for call in event.message.calls])
        for change in self._tracker.apply(event):
            if isinstance(change, CallFinished):
                data += self._end_item(change)
        return data

    def _think(self, text: str) -> bytes:
        data = b""
        if self._thinking is None:
            self._thinking = self._next()
            facts = {"output_index": self._thinking, "item": self._reasoning("")}
            data = self.event("response.output_item.added", facts)
        self._thought.append(text)
        facts = {
            "item_id": self._reasoning("")["id"],
            "output_index": self._thinking,
            "content_index": 0,
            "delta": text,
        }
        return data + self.event("response.reasoning_text.delta", facts)

    def _stop_thinking(self) -> bytes:
        if self._thinking is None:
            return b""
        facts = {"output_index": self._thinking, "item": self._reasoning("".join(self._thought))}
        self._thinking = None
        self._thought.clear()
        return self.event("response.output_item.done", facts)

    def _reasoning(self, text: str) -> JsonObject:
        return reasoning_item(self._run, self._number, text)

    def _delta(self, text: str) -> bytes:
        data = self._stop_thinking()
        if self._open is None:
            self._open = self._next()
            item = message_item(self._run, self._number, "", "in_progress")
            data += self.event(
                "response.output_item.added", {"output_index": self._open, "item": item}
            )
            data += self.event("response.content_part.added", {**self._at(), "part": text_part("")})
        self._sent.append(text)
        return data + self.event(
            "response.output_text.delta", {**self._at(), "delta": text, "logprobs": []}
        )

    def _done(self, text: str, status: str) -> bytes:
        item = message_item(self._run, self._number, text, status)
        data = self.event("response.output_text.done", {**self._at(), "text": text, "logprobs": []})
        data += self.event("response.content_part.done", {**self._at(), "part": text_part(text)})
        data += self.event("response.output_item.done", {"output_index": self._open, "item": item})
        self._open = None
        self._sent.clear()
        return data

    def _at(self) -> JsonObject:
        item_id = message_item(self._run, self._number, "")["id"]
        return {"item_id": item_id, "output_index": self._open, "content_index": 0}

    def _start_item(self, call: ToolCall) -> bytes:
        index = self._indexes[call.id] = self._next()
        item = call_item(call, "in_progress")
        data = self.event("response.output_item.added", {"output_index": index, "item": item})
        return data + self.event(
            "response.function_call_arguments.done",
            {
                "item_id": item["id"],
                "output_index": index,
                "name": call.name,
                "arguments": item["arguments"],
            },
        )

    def _end_item(self, change: CallFinished) -> bytes:
        index = self._indexes.pop(change.call.id)
        data = self.event(
            "response.output_item.done", {"output_index": index, "item": call_item(change.call)}
        )
        data += self._at_once(result_item(change.result))
        if (picture := image_item(change.result)) is not None:
            data += self._at_once(with_image_data(picture))
        return data

    def _at_once(self, item: JsonObject) -> bytes:
        facts = {"output_index": self._next(), "item": item}
        data = self.event("response.output_item.added", facts)
        return data + self.event("response.output_item.done", facts)

    def _next(self) -> int:
        self._index += 1
        return self._index - 1
