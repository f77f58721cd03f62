"""What servers ask of our model, in our own words."""

from __future__ import annotations

from hermes.codec.values import JsonObject
from hermes.config.extension_settings import McpSamplingSettings
from hermes.core.messages import Image, Text, UserMessage
from hermes.mcp.server import McpServer
from hermes.mcp.server_requests import prompt_of, tool_rounds

SERVER = McpServer(name="little", command="x", sampling=McpSamplingSettings(max_tokens_cap=50))


def asked(*content: JsonObject) -> JsonObject:
    return {"messages": [{"role": "user", "content": list(content)}], "maxTokens": 1000}


def test_a_picture_comes_along_where_it_can_be_kept() -> None:
    words = {"type": "text", "text": "what is this?"}
    picture = {"type": "image", "data": "UElY", "mimeType": "image/png"}
    kept = prompt_of(SERVER, asked(words, picture), lambda data, kind: f"/cache/{data.decode()}")
    image = Image(file="/cache/PIX", media_type="image/png")
    parts = (Text(text="what is this?"), image)
    assert kept.messages == (UserMessage(parts=parts, origin="mcp:little"),)
    assert kept.max_tokens == 50


def test_a_picture_that_cannot_be_kept_or_read_is_named() -> None:
    good = {"type": "image", "data": "UElY", "mimeType": "image/png"}
    bad = {"type": "image", "data": "?", "mimeType": "image/png"}
    named = (UserMessage(parts=(Text(text="[image/png]"),), origin="mcp:little"),)
    assert prompt_of(SERVER, asked(good)).messages == named
    assert prompt_of(SERVER, asked(bad), lambda data, kind: "never").messages == named


def test_rounds_of_tools_are_counted_from_the_end() -> None:
    use = {"role": "assistant", "content": {"type": "tool_use", "id": "1", "name": "x"}}
    result = {"role": "user", "content": {"type": "tool_result", "toolUseId": "1", "content": []}}
    words = {"role": "user", "content": {"type": "text", "text": "and now?"}}
    assert tool_rounds({"messages": [use, result, use, result]}) == 2
    assert tool_rounds({"messages": [use, result, words]}) == 0
