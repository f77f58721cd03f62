"""Request bodies, and the messages, images and instructions in them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from msgspec import Meta

from hermes.codec.json import encode
from hermes.codec.values import JsonObject, Value, replace
from hermes.commands.input import MAX_IMAGE_BYTES, store_image
from hermes.config.run_context import RunContext
from hermes.config.schema import Effort
from hermes.core.effects import Allow, FetchUrl
from hermes.core.errors import EffectDenied, ToolError, UsageError
from hermes.core.messages import AssistantMessage, Image, Message, Text, UserMessage
from hermes.policy.rule_setup import policy_for
from hermes.surfaces.api.encoding import strip_images
from hermes.surfaces.api.http import HttpError, invalid_value, text_field
from hermes.web.access import web_access

Name = Annotated[str, Meta(min_length=1, max_length=128)]
ModelName = Annotated[str, Meta(max_length=256)]
Title = Annotated[str, Meta(max_length=200)]
Tier = Annotated[str, Meta(max_length=32, pattern="^[a-z_-]*$")]


class EmptyBody(Value):
    """A body without required fields."""


class StreamOptions(Value):
    include_usage: bool = False


class ModelOptions(Value):
    reasoning_effort: Effort | None = None
    service_tier: Tier | None = None


class ReasoningOptions(Value):
    effort: Effort | None = None


class ChatMessage(Value):
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[JsonObject] | None = None
    tool_calls: list[JsonObject] | None = None


class ChatBody(Value):
    messages: list[ChatMessage]
    model: ModelName | None = None
    provider: ModelName | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    reasoning_effort: Effort | None = None
    service_tier: Tier | None = None
    model_options: ModelOptions | None = None
    n: int | None = None
    tools: list[JsonObject] | None = None
    functions: list[JsonObject] | None = None


class ConversationName(Value):
    id: Name


class ResponsesBody(Value):
    input: str | list[JsonObject]
    model: ModelName | None = None
    provider: ModelName | None = None
    instructions: str | None = None
    reasoning: ReasoningOptions | None = None
    service_tier: Tier | None = None
    previous_response_id: Name | None = None
    conversation: Name | ConversationName | None = None
    store: bool | None = None
    stream: bool | None = None
    metadata: dict[str, str] | None = None
    tools: list[JsonObject] | None = None
    background: bool | None = None
    conversation_history: list[ChatMessage] | None = None


class RunBody(Value):
    input: str | list[JsonObject]
    session_id: Name | None = None
    instructions: str | None = None
    conversation_history: list[ChatMessage] | None = None
    previous_response_id: Name | None = None
    model: ModelName | None = None
    provider: ModelName | None = None
    model_options: ModelOptions | None = None
    toolsets: Annotated[list[Name], Meta(min_length=1, max_length=100)] | None = None


class ApprovalBody(Value):
    decision: Literal["once", "session", "always", "deny"]
    approval_id: Name | None = None
    reason: Annotated[str, Meta(max_length=1_000)] | None = None


class AnswerBody(Value):
    text: Annotated[str, Meta(max_length=65_536)]
    question_id: Name | None = None


class SteerBody(Value):
    text: Annotated[str, Meta(min_length=1, max_length=65_536)]


class SessionBody(Value):
    id: Name | None = None


class SessionPatch(Value):
    title: Title | None = None
    archived: bool | None = None


class ForkBody(Value):
    title: Title | None = None
    at_message: Annotated[int, Meta(ge=1, le=1_000_000_000)] | None = None


class SessionChatBody(Value):
    input: str | list[JsonObject]
    images: Annotated[list[str], Meta(max_length=100)] | None = None
    model: ModelName | None = None
    provider: ModelName | None = None


Prompt = Annotated[str, Meta(min_length=1, max_length=5_000)]
ScheduleText = Annotated[str, Meta(min_length=1, max_length=200)]
Skills = Annotated[list[Title], Meta(max_length=50)]
Times = Annotated[int, Meta(ge=0, le=1_000_000)]


class JobOptions(Value, forbid_unknown_fields=True):
    name: Title | None = None
    deliver: Title | None = None
    skills: Skills | None = None
    repeat: Times | None = None
    model: Title | None = None
    provider: Title | None = None


class JobBody(JobOptions, kw_only=True):
    schedule: ScheduleText
    prompt: Prompt | None = None
    script: Title | None = None
    no_agent: bool | None = None
    paused: bool | None = None


class JobPatch(JobOptions):
    prompt: Prompt | None = None
    schedule: ScheduleText | None = None
    enabled: bool | None = None


class PauseBody(Value):
    reason: Title | None = None


FETCH_SECONDS = 20.0


async def load_image(run: RunContext, url: str, param: str) -> bytes:
    """The bytes of a `data:`, `http:` or `https:` URL; HttpError when they cannot be read."""
    if url.startswith("data:"):
        head, _, body = url.partition(",")
        if not head.startswith("data:image/") or not head.endswith(";base64"):
            message = "Data URLs must be `data:image/…;base64,`."
            raise HttpError(400, "unsupported_content_type", message, param=param)
        try:
            return base64.b64decode(body, validate=True)
        except binascii.Error as error:
            raise HttpError(400, "invalid_image", f"The image is not base64: {error}.") from error
    if url.lower().startswith(("http://", "https://")):
        return await _fetch(run, url, param)
    message = "Send images as `data:image/…;base64,` or `https:` URLs."
    raise HttpError(400, "unsupported_content_type", message, param=param)


async def _fetch(run: RunContext, url: str, param: str) -> bytes:
    """The policy for the agent's own unattended fetches applies, because a client could otherwise
    read private addresses that it cannot reach itself."""
    rules = policy_for(run.config, run.settings.terminal.cwd, "api")
    effect = FetchUrl(url=url)
    decision = rules.decide(effect, "owner", frozenset({"user"}))
    if not isinstance(decision, Allow):
        raise _fetch_error(url, decision.reason, param)
    try:
        response = await web_access(run, rules).fetch(
            effect, max_bytes=MAX_IMAGE_BYTES, timeout=FETCH_SECONDS
        )
    except (EffectDenied, ToolError) as error:
        raise _fetch_error(url, str(error), param) from error
    if response.status >= 300:
        raise _fetch_error(url, f"The server answered with status {response.status}.", param)
    if response.cut:
        raise _fetch_error(url, f"It has more than {MAX_IMAGE_BYTES // 1024 // 1024} MB.", param)
    return response.body


def _fetch_error(url: str, why: str, param: str) -> HttpError:
    message = f"{url[:200]} cannot be used: {why}"
    return HttpError(400, "image_not_fetched", message, param=param)


MAX_PARTS = 1_000
MAX_TEXT_CHARS = 65_536
TEXT_KINDS = ("text", "input_text", "output_text")
IMAGE_KINDS = ("image_url", "input_image")
Content = str | list[JsonObject] | None


class ClientMessage(Value):
    """One client message. `urls` are its images as sent."""

    role: str
    text: str
    urls: tuple[str, ...] = ()


def parse_message(role: str, content: Content, param: str) -> ClientMessage:
    """Decode a message. Raises HttpError that names a part that is not supported."""
    is_ours = role == "assistant"
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
    if len(parts) > MAX_PARTS:
        problem = f"A message may have at most {MAX_PARTS} parts."
        raise HttpError(400, "content_too_large", problem, param=param)
    texts: list[str] = []
    urls: list[str] = []
    for part in parts:
        kind = text_field(part, "type")
        if kind in TEXT_KINDS:
            text = text_field(part, "text")
            texts.append(_check_text(strip_images(text) if is_ours else text, param))
        elif kind in IMAGE_KINDS:
            image_url = part.get("image_url")
            url = image_url.get("url") if isinstance(image_url, dict) else image_url
            if not isinstance(url, str) or not url:
                problem = "An image part needs an `image_url`."
                raise HttpError(400, "invalid_image", problem, param=param)
            urls.append(url)
        elif kind == "refusal":
            texts.append(_check_text(text_field(part, "refusal"), param))
        else:
            problem = f"Parts of type {kind!r} are not supported; send text and images."
            raise HttpError(400, "unsupported_content_type", problem, param=param)
    return ClientMessage(
        role=role, text="\n".join(word for word in texts if word), urls=tuple(urls)
    )


async def store_images(run: RunContext, urls: Sequence[str], param: str) -> tuple[Image, ...]:
    """Store the images where messages refer to them."""
    found: list[Image] = []
    for url in urls:
        try:
            found.append(await store_image(run.home, await load_image(run, url, param)))
        except UsageError as error:
            raise HttpError(400, "invalid_image", str(error), param=param) from error
    return tuple(found)


async def history_messages(
    run: RunContext, messages: Sequence[ClientMessage], param: str
) -> tuple[Message, ...]:
    """Convert a client's history into messages."""
    history: list[Message] = []
    for each in messages:
        if each.role == "assistant":
            if each.text:
                history.append(AssistantMessage(parts=(Text(text=each.text),)))
            continue
        images = await store_images(run, each.urls, param)
        if each.text or images:
            origin = "user" if each.role == "user" else "client"
            history.append(UserMessage(parts=(Text(text=each.text), *images), origin=origin))
    return tuple(history)


def _check_text(text: str, param: str) -> str:
    if len(text) > MAX_TEXT_CHARS:
        message = (
            f"A text part may have at most {MAX_TEXT_CHARS} characters; this one has {len(text)}."
        )
        raise HttpError(400, "content_too_large", message, param=param)
    # JSON can contain lone surrogates, but they can be neither stored nor sent.
    return text.encode("utf-8", "replace").decode()


SYSTEM = ("system", "developer")
ROLES = (*SYSTEM, "user", "assistant", "tool")


class ParsedInput(Value):
    """The conversation that a client sent."""

    # The message to answer.
    now: ClientMessage
    # The conversation so far.
    before: tuple[ClientMessage, ...] = ()
    system: str = ""


def split_input(messages: Iterable[ClientMessage], param: str, *, system: str = "") -> ParsedInput:
    """Separate the message to answer. Raises HttpError unless the user sent the last one."""
    all_messages = list(messages)
    texts = [system, *(each.text for each in all_messages if each.role in SYSTEM)]
    rest = [each for each in all_messages if each.role not in SYSTEM]
    if not rest or rest[-1].role != "user":
        raise invalid_value("The last message must have the role `user`.", param)
    if not rest[-1].text.strip() and not rest[-1].urls:
        raise invalid_value("The last message is empty.", param)
    return ParsedInput(
        now=rest[-1], before=tuple(rest[:-1]), system="\n\n".join(word for word in texts if word)
    )


def chat_messages(messages: Iterable[ChatMessage], param: str) -> list[ClientMessage]:
    found = []
    for message in messages:
        each = parse_message(message.role, message.content, param)
        for call in message.tool_calls or ():
            function = call.get("function")
            each = _with_call(each, function if isinstance(function, dict) else {})
        found.append(_result(each) if message.role in ("tool", "function") else each)
    return found


def input_items(value: str | list[JsonObject], param: str = "input") -> list[ClientMessage]:
    """The input items of a response or run. Tool calls and outputs become text: they ran elsewhere,
    or in a turn that the session already has."""
    if isinstance(value, str):
        return [parse_message("user", value, param)]
    messages: list[ClientMessage] = []
    for item in value:
        match text_field(item, "type") or "message":
            case "message":
                messages.append(_message(item, param))
            case "function_call":
                messages.append(_with_call(ClientMessage(role="assistant", text=""), item))
            case "function_call_output":
                output = item.get("output", "")
                text = output if isinstance(output, str) else encode(output).decode()
                messages.append(_result(parse_message("tool", text, param)))
            case "reasoning" | "image_generation_call":
                continue
            case kind:
                message = f"Items of type {kind!r} are not supported."
                raise HttpError(400, "unsupported_content_type", message, param=param)
    return messages


def _message(item: JsonObject, param: str) -> ClientMessage:
    role = text_field(item, "role")
    if role not in ROLES:
        raise invalid_value(f"A message needs a role: {', '.join(ROLES)}.", param)
    content = item.get("content")
    if not isinstance(content, str | list) or (
        isinstance(content, list) and not all(isinstance(part, dict) for part in content)
    ):
        raise invalid_value("The content of a message is text or a list of parts.", param)
    return parse_message(role, content, param)


def _with_call(message: ClientMessage, call: JsonObject) -> ClientMessage:
    summary = f"[called {text_field(call, 'name')} with {text_field(call, 'arguments')}]"
    return replace(message, text=f"{message.text}\n{summary}".strip()[:MAX_TEXT_CHARS])


def _result(message: ClientMessage) -> ClientMessage:
    return ClientMessage(role="tool", text=f"[result: {message.text}]", urls=message.urls)
