"""The offline assistant: a provider that answers a fixed list of requests without a model."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence

from hermes.codec.json import encode
from hermes.codec.tokens import tokens_of_size
from hermes.codec.values import Value
from hermes.core.messages import (
    AssistantMessage,
    Message,
    Text,
    ToolCall,
    ToolMessage,
    ToolResult,
    Usage,
    UserMessage,
)
from hermes.core.prompt import CallNamed, Delta, Prompt, Reply, TextDelta
from hermes.providers.offline.steps import CallRequest, StepFailed, Steps, block, inline
from hermes.providers.offline.table import GREETING, REFUSAL, MatchedStep, match_request

MODEL = "offline-assistant"
PROVIDER = "offline"

_PIECE = re.compile(r"\s*\S+\s?|\s+")
_CALL_ID = re.compile(r"call_(\d+)_\d+")


class OfflineAssistant:
    """Answers a fixed set of requests without a language model. The same prompt gives the same
    reply: it knows only what the prompt contains."""

    async def reply(self, prompt: Prompt) -> AsyncGenerator[Delta | Reply]:
        step = _next_step(prompt)
        if isinstance(step, str):
            message = AssistantMessage(parts=(Text(text=step),))
        else:
            id = f"call_{_call_number(prompt)}_1"
            call = ToolCall(id=id, name=step.name, arguments=step.arguments)
            message = AssistantMessage(parts=(call,), stop="calls")
        for piece in _PIECE.findall(message.text):
            yield TextDelta(text=piece)
        for made in message.calls:
            yield CallNamed(name=made.name)
        usage = Usage(
            input=tokens_of_size(len(encode(prompt))),
            output=tokens_of_size(len(encode(message))),
            requests=1,
            cost=0.0,
            estimated=True,
        )
        yield Reply(message=message, usage=usage, model=MODEL, provider=PROVIDER)


class _Turn(Value):
    """The newest user messages and the tool calls since."""

    user_messages: tuple[UserMessage, ...]
    calls: tuple[tuple[ToolCall, ToolResult], ...]

    @property
    def request(self) -> str:
        """The user's words, without reports of processes and what memory and hooks add."""
        own = [message for message in self.user_messages if not _is_notice(message)]
        return "\n".join("".join(_own_texts(message)) for message in own).strip()

    @property
    def news(self) -> str:
        """Reports of background processes, and a note about images."""
        notices = [each.text.strip() for each in self.user_messages if _is_notice(each)]
        parts = [f"A background process reports:\n\n{block(text)}" for text in notices]
        if any(not isinstance(part, Text) for each in self.user_messages for part in each.parts):
            parts.append("I cannot see images; that needs a model with vision.")
        return "\n\n".join(parts)


def _next_step(prompt: Prompt) -> str | CallRequest:
    """Return the next tool call, or the answer."""
    turn = _newest_turn(prompt.messages)
    if not turn.request:
        return turn.news or GREETING
    steps = match_request(turn.request)
    found = _replay(steps, turn, prompt) if steps else REFUSAL
    if isinstance(found, CallRequest):
        if not prompt.text_only:
            return found
        found = f"The limit of tool calls is reached; this is not finished: {inline(turn.request)}"
    return f"{turn.news}\n\n{found}" if turn.news else found


def _replay(steps: tuple[MatchedStep, ...], turn: _Turn, prompt: Prompt) -> str | CallRequest:
    """Run the steps over the results in the transcript, up to the first call without one."""
    tools = {tool.name for tool in prompt.tools}
    running = _run_all(steps)
    finished = iter(turn.calls)
    try:
        wanted = next(running)
        while True:
            if wanted.name not in tools:
                text = f"The tool `{wanted.name}` is not available in this session."
                wanted = running.throw(StepFailed(text))
                continue
            done = next(finished, None)
            if done is None:
                return wanted
            call, result = done
            if (call.name, call.arguments) != wanted:
                return "Another model began this turn; please send the request again."
            wanted = running.send(_with_content(call, result, prompt.messages))
    except StopIteration as end:
        answer: str = end.value
        return answer


def _run_all(steps: tuple[MatchedStep, ...]) -> Steps:
    """Run all steps in order. A failed step ends the request."""
    answers: list[str] = []
    for number, (request, slots) in enumerate(steps, 1):
        try:
            answers.append((yield from request.action(slots)))
        except StepFailed as error:
            answers.append(str(error))
            if left := [later.title for later, _ in steps[number:]]:
                answers.append(f"Not carried out because of this: {'; '.join(left)}.")
            break
    return "\n\n".join(answers)


def _newest_turn(messages: Sequence[Message]) -> _Turn:
    """Return the newest turn. Messages of Hermes itself are not requests."""
    user_messages: list[UserMessage] = []
    asked: tuple[ToolCall, ...] = ()
    done: list[tuple[ToolCall, ToolResult]] = []
    answered = False
    for message in messages:
        match message:
            case UserMessage(origin="hermes"):
                continue
            case UserMessage():
                if answered:
                    user_messages, done, answered = [], [], False
                user_messages.append(message)
            case AssistantMessage():
                asked, answered = message.calls, True
            case ToolMessage(results=results):
                done += zip(asked, results, strict=False)
    return _Turn(user_messages=tuple(user_messages), calls=tuple(done))


def _with_content(call: ToolCall, result: ToolResult, messages: Sequence[Message]) -> ToolResult:
    """Return the earlier result for a file that read_file reports as unchanged since then."""
    if not result.details.get("dedup"):
        return result
    calls = [
        each.id
        for message in messages
        if isinstance(message, AssistantMessage)
        for each in message.calls
        if (each.name, each.arguments) == (call.name, call.arguments)
    ]
    shown = [
        each
        for message in messages
        if isinstance(message, ToolMessage)
        for each in message.results
        if each.call_id in calls and not each.failed and not each.details.get("dedup")
    ]
    return shown[-1] if shown else result


def _own_texts(message: UserMessage) -> list[str]:
    """Return the texts of the user. Memory and hooks add parts that begin with an empty line."""
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    return [text for n, text in enumerate(texts) if not n or not text.startswith("\n\n")]


def _is_notice(message: UserMessage) -> bool:
    return message.origin.startswith("process")


def _call_number(prompt: Prompt) -> int:
    """Return the number of messages, or one more than the newest call if compaction removed
    messages."""
    for message in reversed(prompt.messages):
        if isinstance(message, AssistantMessage):
            for made in message.calls:
                if found := _CALL_ID.fullmatch(made.id):
                    return max(len(prompt.messages), int(found[1]) + 1)
    return len(prompt.messages)
