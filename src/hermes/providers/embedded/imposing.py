"""Adds tool calls to a local model: constrains replies by a schema and parses calls from them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Protocol

from hermes.codec.values import JsonObject, replace
from hermes.core.errors import ProviderError
from hermes.core.messages import AssistantMessage, Message
from hermes.core.prompt import Delta, Notice, Prompt, Reply, Restarted, TextDelta
from hermes.providers.embedded.answer import ConstrainedReply
from hermes.providers.embedded.schema import answer_schema
from hermes.providers.embedded.wording import with_tools_as_text
from hermes.providers.grammar import fresh_id

UNCONSTRAINED = (
    "The format of tool calls cannot be enforced for this model, so some calls may fail."
)


class AskEngine(Protocol):
    """Sends a prompt without tools; the schema constrains the reply."""

    def __call__(
        self, prompt: Prompt, *, schema: JsonObject | None
    ) -> AsyncGenerator[Delta | Reply]: ...


class ConstrainedTools:
    """The runtime does not enforce tool calls, whatever the file's template says, so all files use
    a schema."""

    def __init__(self, ask: AskEngine) -> None:
        self._ask = ask
        self._unconstrained = False

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        rendered = with_tools_as_text(prompt)
        form: JsonObject | None = answer_schema(() if prompt.words_only else prompt.tools)
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
        async with aclosing(self._ask(asked, schema=schema)) as items:
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
                        message = answer.message(item.message, call_id=_new_id(prompt.messages))
                        yield replace(item, message=message)
                    case _:
                        yield item


def _new_id(messages: tuple[Message, ...]) -> str:
    """An unused id, stable for the same conversation."""
    replies = [message for message in messages if isinstance(message, AssistantMessage)]
    taken = {call.id for message in replies for call in message.calls}
    return fresh_id(f"call_{len(messages)}", taken)
