"""The same small request on each wire."""

from __future__ import annotations

from typing import Literal

from hermes.codec.values import JsonObject

WireName = Literal["chat", "responses", "messages"]
WIRES: tuple[WireName, ...] = ("chat", "responses", "messages")
USER = [{"role": "user", "content": "hi"}]
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
BODIES: dict[WireName, JsonObject] = {
    "chat": {"model": "m", "messages": USER},
    "responses": {"model": "m", "input": "hi"},
    "messages": {"model": "m", "messages": USER, "max_tokens": 9},
}
VERSION = {"anthropic-version": "2023-06-01"}
