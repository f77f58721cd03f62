"""Pictures on a ChatGPT plan: the Codex backend, asked for one call of its image tool."""

from __future__ import annotations

from contextlib import aclosing

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject
from hermes.core.errors import ProviderError
from hermes.images.client import (
    ImageServerClient,
    error_from_message,
    error_from_response,
    unreachable_error,
)
from hermes.images.hosted import GeneratedImage, HostedProvider, HostedRequest, source_urls
from hermes.images.registry import BundledContext
from hermes.images.storage import ImageFault, decode_base64
from hermes.net.http import HttpResponse
from hermes.net.sse import SseParser
from hermes.plugins.bundled.image_gen.openai import API_MODEL, SIZES, quality_of, rows

ACCOUNT = "openai-codex"
# It only passes the wish on to the tool.
HOST_MODEL = "gpt-5.4"
# A picture comes in one event.
MAX_EVENT_BYTES = 48 * 1024 * 1024
INSTRUCTIONS = "Call the image_generation tool once with what the person asks for."


class CodexProvider(HostedProvider):
    NAME = "openai-codex"
    LABEL = "OpenAI Codex"
    URL = "https://chatgpt.com/backend-api/codex"
    SIGNUP = "https://chatgpt.com"
    TAG = "gpt-image-2 on a ChatGPT plan; `hermes login openai-codex`"
    MODELS = tuple({**row, "price": "free"} for row in rows())
    MOST_SOURCES = 16

    def is_available(self) -> bool:
        return self.studio.login is not None and self.studio.logged_in(ACCOUNT)

    def get_setup_schema(self) -> JsonObject:
        return {**super().get_setup_schema(), "badge": "login"}

    def missing(self) -> ImageFault:
        return ImageFault(
            "OpenAI Codex needs a login; run `hermes login openai-codex`.", kind="auth_required"
        )

    async def headers(self) -> dict[str, str]:
        try:
            credential = await self.studio.login(ACCOUNT) if self.studio.login else None
        except ProviderError as error:
            raise ImageFault(f"{self.LABEL}: {error}", kind="auth_required") from error
        if credential is None or not credential.key:
            raise self.missing()
        return {
            "authorization": f"Bearer {credential.key}",
            "originator": "hermes-agent",
            "openai-beta": "responses=experimental",
            **credential.headers,
        }

    async def draw(self, order: HostedRequest, line: ImageServerClient) -> GeneratedImage:
        content: list[JsonObject] = [{"type": "input_text", "text": order.prompt}]
        for url in await source_urls(order):
            content.append({"type": "input_image", "image_url": url})
        tool: JsonObject = {
            "type": "image_generation",
            "model": API_MODEL,
            "size": SIZES[order.aspect],
            "quality": quality_of(order.model),
            "output_format": "png",
        }
        body: JsonObject = {
            "model": HOST_MODEL,
            "instructions": INSTRUCTIONS,
            "input": [{"type": "message", "role": "user", "content": content}],
            "tools": [tool],
            "tool_choice": {"type": "image_generation"},
            "stream": True,
            "store": False,
        }
        sent = {**line.headers, "content-type": "application/json", "accept": "text/event-stream"}
        try:
            async with line.http.post(
                f"{line.url}/responses", body=encode(body), headers=sent, timeouts=line.timeouts
            ) as answer:
                if answer.status >= 400:
                    hide = line.headers.get("authorization", "").partition(" ")[2]
                    said = await answer.read_error()
                    raise error_from_response(
                        self.LABEL, answer.status, said, answer.headers, hide=hide
                    )
                return await self._read_stream(answer)
        except ProviderError as error:
            raise unreachable_error(self.LABEL, error) from error

    async def _read_stream(self, answer: HttpResponse) -> GeneratedImage:
        reader = SseParser(MAX_EVENT_BYTES)
        async with aclosing(answer.chunks()) as chunks:
            async for chunk in chunks:
                for event in reader.feed(chunk):
                    if drawn := self._picture(event.data):
                        return drawn
        raise ImageFault(f"{self.LABEL} ended without a picture.", kind="api_error")

    def _picture(self, data: bytes) -> GeneratedImage | None:
        try:
            said = decode(JsonObject, data)
        except DecodeError:
            return None
        kind, item = said.get("type"), said.get("item") or {}
        if kind == "response.output_item.done" and item.get("type") == "image_generation_call":
            revised = item.get("revised_prompt")
            extra = {"revised_prompt": revised} if revised else {}
            return GeneratedImage(data=decode_base64(str(item.get("result") or "")), extra=extra)
        if kind in ("response.failed", "error"):
            response = said.get("response") or said
            raise error_from_message(self.LABEL, response.get("error") or response)
        return None


def register(ctx: BundledContext) -> None:
    ctx.register_image_gen_provider(CodexProvider(ctx.studio))
