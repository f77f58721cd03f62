"""Normalises token counts of the three wire formats, and estimates them when missing."""

from __future__ import annotations

import math

from hermes.codec.json import encode
from hermes.codec.tokens import IMAGE_TOKENS, estimate_tokens, tokens_of_size
from hermes.codec.values import JsonObject, JsonValue
from hermes.core.messages import AssistantMessage, Message, ToolMessage, Usage, UserMessage
from hermes.core.prompt import Prompt
from hermes.providers.wire.events import count_of, object_of
from hermes.providers.wire.format import images_in


def openai_usage(raw: JsonValue, input: str, output: str) -> Usage | None:
    """Read the usage of an OpenAI reply. `input` and `output` are the names of the two counts:
    "prompt" and "completion" in the chat completions API, "input" and "output" in the responses
    API."""
    usage = object_of(raw)
    if not (f"{input}_tokens" in usage or f"{output}_tokens" in usage):
        return None
    details = object_of(usage.get(f"{input}_tokens_details"))
    prompt = count_of(usage.get(f"{input}_tokens"))
    read = count_of(details.get("cached_tokens")) or count_of(usage.get("prompt_cache_hit_tokens"))
    read = min(read, prompt)
    written = min(count_of(details.get("cache_write_tokens")), prompt - read)
    thought = object_of(usage.get(f"{output}_tokens_details"))
    return Usage(
        input=prompt - read - written,
        output=count_of(usage.get(f"{output}_tokens")),
        cache_read=read,
        cache_write=written,
        reasoning=count_of(thought.get("reasoning_tokens")),
        requests=1,
        cost=_cost(usage),
    )


def messages_usage(raw: JsonObject) -> Usage | None:
    """Read the merged usage objects of a reply; in this format `input` excludes cached tokens."""
    if not ("input_tokens" in raw or "output_tokens" in raw):
        return None
    thought = object_of(raw.get("output_tokens_details"))
    return Usage(
        input=count_of(raw.get("input_tokens")),
        output=count_of(raw.get("output_tokens")),
        cache_read=count_of(raw.get("cache_read_input_tokens")),
        cache_write=count_of(raw.get("cache_creation_input_tokens")),
        reasoning=count_of(thought.get("thinking_tokens")),
        requests=1,
        cost=_cost(raw),
    )


def estimate_usage(prompt: Prompt, reply: AssistantMessage) -> Usage:
    """Estimate the usage for servers that report none."""
    output = _tokens(reply) + estimate_tokens(reply.reasoning)
    return Usage(input=estimate_prompt_tokens(prompt), output=output, requests=1, estimated=True)


def estimate_prompt_tokens(prompt: Prompt) -> int:
    tools = tokens_of_size(sum(len(encode(tool)) for tool in prompt.tools))
    images = sum(1 for _ in images_in(prompt.messages)) * IMAGE_TOKENS
    return estimate_tokens(prompt.system) + tools + images + sum(map(_tokens, prompt.messages))


def _tokens(message: Message) -> int:
    """Estimate the tokens of a message without images, which would count as their file names."""
    match message:
        case UserMessage(text=text):
            return estimate_tokens(text)
        case AssistantMessage(text=text, calls=calls):
            size = sum(len(call.name) + len(encode(call.arguments)) for call in calls)
            return estimate_tokens(text) + tokens_of_size(size)
        case ToolMessage(results=results):
            return sum(estimate_tokens(result.text) for result in results)


def _cost(usage: JsonObject) -> float | None:
    """Return the cost as reported, plausible or not."""
    cost = usage.get("cost")
    if isinstance(cost, bool) or not isinstance(cost, int | float):
        return None
    try:
        return float(cost)
    except OverflowError:
        return math.inf
