"""The offline assistant: a provider without a model, for plain requests in free wording."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator

from hermes.codec.json import encode
from hermes.codec.tokens import tokens_of_size
from hermes.core.messages import AssistantMessage, Text, ToolCall, Usage
from hermes.core.prompt import CallNamed, Delta, Prompt, Reply, TextDelta
from hermes.providers.offline.language import DEFAULT, load_language
from hermes.providers.offline.plan import CallRequests, StepOutcome
from hermes.providers.offline.requests import read_request
from hermes.providers.offline.suggestions import not_understood
from hermes.providers.offline.transcript import DialogueTurn, dialogue_turns, is_notice
from hermes.providers.offline.voice import Phrasebook, inline_code
from hermes.providers.offline.work import RequestContext, replay_plan, run_request

MODEL = "offline-assistant"
PROVIDER = "offline"


_PIECE = re.compile(r"\s*\S+\s?|\s+")
_CALL_ID = re.compile(r"call_(\d+)_\d+")


class OfflineAssistant:
    """Not a language model. Deterministic: the same prompt gives the same reply, and it remembers
    only what the prompt contains."""

    def __init__(self, language: str = DEFAULT) -> None:
        self._language = language

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        step = _next_step(self._language, prompt)
        message = _message(step, prompt)
        for piece in _PIECE.findall(message.text):
            yield TextDelta(text=piece)
        for made in message.calls:
            yield CallNamed(name=made.name)
        yield Reply(message=message, usage=_usage(prompt, message), model=MODEL, provider=PROVIDER)


def _next_step(language: str, prompt: Prompt) -> CallRequests | StepOutcome:
    talk = dialogue_turns(prompt.messages)
    if not talk:
        return StepOutcome(text=Phrasebook(load_language(language))("greeting"))
    now = talk[-1]
    news = _news(Phrasebook(load_language(language)), now)
    if not now.request:
        return StepOutcome(text=news or Phrasebook(load_language(language))("nothing_said"))
    request = read_request(language, talk)
    voice = Phrasebook(load_language(request.language))
    if not request.steps:
        return StepOutcome(text=_join(news, not_understood(voice, request.text)))
    scene = RequestContext(voice, prompt.tools, talk[:-1])
    found = replay_plan(run_request(request, scene), now.rounds, scene)
    if isinstance(found, StepOutcome):
        return StepOutcome(text=_join(news, found.text))
    if prompt.words_only:
        return StepOutcome(
            text=_join(news, voice("no_more_calls", request=inline_code(request.text)))
        )
    return found


def _news(voice: Phrasebook, now: DialogueTurn) -> str:
    """Reports of background processes, and a note about images."""
    notices = [message.text.strip() for message in now.user_messages if is_notice(message)]
    parts = [f"{voice('notice')}\n\n{voice.block(text.splitlines())}" for text in notices]
    if any(not isinstance(part, Text) for message in now.user_messages for part in message.parts):
        parts.append(voice("no_eyes"))
    return "\n\n".join(parts)


def _join(*texts: str) -> str:
    return "\n\n".join(text for text in texts if text)


def _message(step: CallRequests | StepOutcome, prompt: Prompt) -> AssistantMessage:
    if isinstance(step, StepOutcome):
        return AssistantMessage(parts=(Text(text=step.text),))
    number = _call_number(prompt)
    calls = tuple(
        ToolCall(id=f"call_{number}_{place}", name=wish.name, arguments=wish.arguments)
        for place, wish in enumerate(step, 1)
    )
    return AssistantMessage(parts=calls, stop="calls")


def _call_number(prompt: Prompt) -> int:
    """The number of messages, or one more than the newest call if compaction removed messages.
    Numbers only grow, so the newest call has the highest."""
    for message in reversed(prompt.messages):
        if isinstance(message, AssistantMessage):
            for made in message.calls:
                if found := _CALL_ID.fullmatch(made.id):
                    return max(len(prompt.messages), int(found[1]) + 1)
    return len(prompt.messages)


def _usage(prompt: Prompt, message: AssistantMessage) -> Usage:
    return Usage(
        input=tokens_of_size(len(encode(prompt))),
        output=tokens_of_size(len(encode(message))),
        requests=1,
        cost=0.0,
        estimated=True,
    )
