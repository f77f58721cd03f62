"""Generates images on a ChatGPT plan: asks the Codex backend for one call of its image tool."""

from __future__ import annotations

from contextlib import aclosing

from hermes.codec.json import DecodeError, decode, encode
from hermes.codec.values import JsonObject
from hermes.core.errors import ProviderError
from hermes.images.client import ImageServerClient, error_from_message, unreachable_error
from hermes.images.hosted import GeneratedImage, HostedProvider, HostedRequest, source_urls
from hermes.images.storage import ImageFault, decode_base64
from hermes.net.http import HttpResponse
from hermes.net.sse import SseParser
from hermes.plugins.bundled.image_gen.openai import API_MODEL, SIZES, quality_of, rows

ACCOUNT = "openai-codex"
# It only passes the request on to the tool.
HOST_MODEL = "gpt-5.4"
# An image arrives in one event.
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

    async def draw(self, request: HostedRequest, client: ImageServerClient) -> GeneratedImage:
        content: list[JsonObject] = [{"type": "input_text", "text": request.prompt}]
        for url in await source_urls(request):
            content.append({"type": "input_image", "image_url": url})
        tool: JsonObject = {
            "type": "image_generation",
            "model": API_MODEL,
            "size": SIZES[request.aspect],
            "quality": quality_of(request.model),
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
        sent = {**client.headers, "content-type": "application/json", "accept": "text/event-stream"}
        try:
            async with client.http.post(
                f"{client.url}/responses", body=encode(body), headers=sent, timeouts=client.timeouts
            ) as answer:
                if answer.status >= 400:
                    raise await client.error_for(answer)
                return await self._read_stream(answer)
        except ProviderError as error:
            raise unreachable_error(self.LABEL, error) from error

    async def _read_stream(self, answer: HttpResponse) -> GeneratedImage:
        reader = SseParser(MAX_EVENT_BYTES)
        async with aclosing(answer.chunks()) as chunks:
            async for chunk in chunks:
                for event in reader.feed(chunk):
                    if drawn := self._parse_event(event.data):
                        return drawn
        raise ImageFault(f"{self.LABEL} returned no image.", kind="api_error")

    def _parse_event(self, data: bytes) -> GeneratedImage | None:
        try:
            event = decode(JsonObject, data)
        except DecodeError:
            return None
        kind, item = event.get("type"), event.get("item") or {}
        if kind == "response.output_item.done" and item.get("type") == "image_generation_call":
            revised = item.get("revised_prompt")
            extra = {"revised_prompt": revised} if revised else {}
            return GeneratedImage(data=decode_base64(str(item.get("result") or "")), extra=extra)
        if kind in ("response.failed", "error"):
            response = event.get("response") or event
            raise error_from_message(self.LABEL, response.get("error") or response)
        return None
