"""The vendors' own clients, each asked in one way and heard in one form."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import anthropic
import openai
from anthropic.types import Message, ToolParam
from openai.types.chat import ChatCompletion, ChatCompletionFunctionToolParam
from openai.types.responses import FunctionToolParam, Response

KEY = "sk-test-0123456789"
SCHEMA: dict[str, object] = {"type": "object", "properties": {"at": {"type": "string"}}}
CHAT_TOOL: ChatCompletionFunctionToolParam = {
    "type": "function",
    "function": {"name": "look", "description": "Look.", "parameters": SCHEMA},
}
ITEM_TOOL: FunctionToolParam = {
    "type": "function",
    "name": "look",
    "description": "Look.",
    "parameters": SCHEMA,
    "strict": False,
}
BLOCK_TOOL: ToolParam = {"name": "look", "description": "Look.", "input_schema": SCHEMA}


class Heard(NamedTuple):
    """`usage` is the prompt, the part of it that was cached, and the answer."""

    text: str = ""
    thought: str = ""
    calls: tuple[tuple[str, Any], ...] = ()
    usage: tuple[int, int, int] = (0, 0, 0)
    stop: str = ""


Ask = Callable[[str], Awaitable[Heard]]


def openai_client(url: str) -> openai.OpenAI:
    plain = openai.DefaultHttpxClient(verify=False)
    return openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0, http_client=plain)


def openai_async(url: str) -> openai.AsyncOpenAI:
    plain = openai.DefaultAsyncHttpxClient(verify=False)
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0, http_client=plain)


def anthropic_client(url: str) -> anthropic.Anthropic:
    plain = anthropic.DefaultHttpxClient(verify=False)
    return anthropic.Anthropic(base_url=url, api_key=KEY, max_retries=0, http_client=plain)


def anthropic_async(url: str) -> anthropic.AsyncAnthropic:
    plain = anthropic.DefaultAsyncHttpxClient(verify=False)
    return anthropic.AsyncAnthropic(base_url=url, api_key=KEY, max_retries=0, http_client=plain)


CHAT: dict[str, Any] = {
    "model": "scripted",
    "messages": [{"role": "user", "content": "hi"}],
    "tools": [CHAT_TOOL],
}
CHAT_STREAMED = {**CHAT, "stream_options": {"include_usage": True}}
ITEMS: dict[str, Any] = {"model": "scripted", "input": "hi", "tools": [ITEM_TOOL], "store": False}
BLOCKS: dict[str, Any] = {
    "model": "scripted",
    "max_tokens": 4000,
    "messages": [{"role": "user", "content": "hi"}],
    "tools": [BLOCK_TOOL],
    "thinking": {"type": "enabled", "budget_tokens": 1024},
}


async def _chat_whole(url: str) -> Heard:
    def ask() -> Heard:
        with openai_client(url) as client:
            return of_chat(client.chat.completions.create(**CHAT))

    return await asyncio.to_thread(ask)


async def _chat_stream(url: str) -> Heard:
    def ask() -> Heard:
        client = openai_client(url)
        with client, client.chat.completions.stream(**CHAT_STREAMED) as stream:
            return of_chat(stream.get_final_completion())

    return await asyncio.to_thread(ask)


async def _chat_whole_async(url: str) -> Heard:
    async with openai_async(url) as client:
        return of_chat(await client.chat.completions.create(**CHAT))


async def _chat_stream_async(url: str) -> Heard:
    client = openai_async(url)
    async with client, client.chat.completions.stream(**CHAT_STREAMED) as stream:
        return of_chat(await stream.get_final_completion())


async def _items_whole(url: str) -> Heard:
    def ask() -> Heard:
        with openai_client(url) as client:
            return of_response(client.responses.create(**ITEMS))

    return await asyncio.to_thread(ask)


async def _items_stream(url: str) -> Heard:
    def ask() -> Heard:
        client = openai_client(url)
        with client, client.responses.stream(**ITEMS) as stream:
            return of_response(stream.get_final_response())

    return await asyncio.to_thread(ask)


async def _items_whole_async(url: str) -> Heard:
    async with openai_async(url) as client:
        return of_response(await client.responses.create(**ITEMS))


async def _items_stream_async(url: str) -> Heard:
    client = openai_async(url)
    async with client, client.responses.stream(**ITEMS) as stream:
        return of_response(await stream.get_final_response())


async def _blocks_whole(url: str) -> Heard:
    def ask() -> Heard:
        with anthropic_client(url) as client:
            return of_message(client.messages.create(**BLOCKS))

    return await asyncio.to_thread(ask)


async def _blocks_stream(url: str) -> Heard:
    def ask() -> Heard:
        client = anthropic_client(url)
        with client, client.messages.stream(**BLOCKS) as stream:
            return of_message(stream.get_final_message())

    return await asyncio.to_thread(ask)


async def _blocks_whole_async(url: str) -> Heard:
    async with anthropic_async(url) as client:
        return of_message(await client.messages.create(**BLOCKS))


async def _blocks_stream_async(url: str) -> Heard:
    client = anthropic_async(url)
    async with client, client.messages.stream(**BLOCKS) as stream:
        return of_message(await stream.get_final_message())


OPENAI_CHAT: dict[str, Ask] = {
    "chat whole": _chat_whole,
    "chat streamed": _chat_stream,
    "chat whole async": _chat_whole_async,
    "chat streamed async": _chat_stream_async,
}
OPENAI_RESPONSES: dict[str, Ask] = {
    "responses whole": _items_whole,
    "responses streamed": _items_stream,
    "responses whole async": _items_whole_async,
    "responses streamed async": _items_stream_async,
}
ANTHROPIC: dict[str, Ask] = {
    "messages whole": _blocks_whole,
    "messages streamed": _blocks_stream,
    "messages whole async": _blocks_whole_async,
    "messages streamed async": _blocks_stream_async,
}


def of_chat(completion: ChatCompletion) -> Heard:
    (choice,) = completion.choices
    message, usage = choice.message, completion.usage
    assert usage is not None and usage.prompt_tokens_details is not None
    return Heard(
        text=message.content or "",
        # No field of OpenAI's own; the library keeps what it does not know.
        thought=str(getattr(message, "reasoning_content", "")),
        calls=tuple(
            (call.function.name, json.loads(call.function.arguments))
            for call in message.tool_calls or ()
            if call.type == "function"
        ),
        usage=(
            usage.prompt_tokens,
            usage.prompt_tokens_details.cached_tokens or 0,
            usage.completion_tokens,
        ),
        stop=choice.finish_reason,
    )


def of_response(response: Response) -> Heard:
    usage = response.usage
    assert usage is not None
    summaries = [item.summary for item in response.output if item.type == "reasoning"]
    details = response.incomplete_details
    return Heard(
        text=response.output_text,
        thought="".join(part.text for summary in summaries for part in summary),
        calls=tuple(
            (item.name, json.loads(item.arguments))
            for item in response.output
            if item.type == "function_call"
        ),
        usage=(usage.input_tokens, usage.input_tokens_details.cached_tokens, usage.output_tokens),
        stop=str(details.reason if details else response.status),
    )


def of_message(message: Message) -> Heard:
    usage = message.usage
    cached = usage.cache_read_input_tokens or 0
    written = usage.cache_creation_input_tokens or 0
    blocks = message.content
    return Heard(
        text="".join(block.text for block in blocks if block.type == "text"),
        thought="".join(block.thinking for block in blocks if block.type == "thinking"),
        calls=tuple((block.name, block.input) for block in blocks if block.type == "tool_use"),
        usage=(usage.input_tokens + cached + written, cached, usage.output_tokens),
        stop=str(message.stop_reason),
    )
