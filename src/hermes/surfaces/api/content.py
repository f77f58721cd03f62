"""Parses message content into text and image URLs, within limits and without truncation."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.app.build import App
from hermes.codec.values import JsonObject, Value
from hermes.commands.pictures import store_image
from hermes.core.errors import UsageError
from hermes.core.messages import AssistantMessage, Image, Message, Text, UserMessage
from hermes.surfaces.api.call import text_field
from hermes.surfaces.api.media import strip_images
from hermes.surfaces.api.pictures import load_image
from hermes.surfaces.api.refusals import HttpError

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
    """HttpError names the part that is not supported."""
    if content is None:
        return ClientMessage(role=role, text="")
    is_ours = role == "assistant"
    if isinstance(content, str):
        return ClientMessage(
            role=role, text=_check_text(strip_images(content) if is_ours else content, param)
        )
    if len(content) > MAX_PARTS:
        raise _too_large(f"A message may have at most {MAX_PARTS} parts.", param)
    words: list[str] = []
    urls: list[str] = []
    for part in content:
        kind = text_field(part, "type")
        if kind in TEXT_KINDS:
            text = text_field(part, "text")
            words.append(_check_text(strip_images(text) if is_ours else text, param))
        elif kind in IMAGE_KINDS:
            urls.append(_url(part, param))
        elif kind == "refusal":
            words.append(_check_text(text_field(part, "refusal"), param))
        else:
            words_ = f"Parts of type {kind!r} are not supported; send text and images."
            raise HttpError(400, "unsupported_content_type", words_, param=param)
    return ClientMessage(
        role=role, text="\n".join(word for word in words if word), urls=tuple(urls)
    )


async def store_images(app: App, urls: Sequence[str], param: str) -> tuple[Image, ...]:
    """Store the images where messages refer to them."""
    found: list[Image] = []
    for url in urls:
        try:
            found.append(await store_image(app, await load_image(app, url, param)))
        except UsageError as error:
            raise HttpError(400, "invalid_image", str(error), param=param) from error
    return tuple(found)


async def history_messages(
    app: App, said: Sequence[ClientMessage], param: str
) -> tuple[Message, ...]:
    """Convert a client's history into messages."""
    found: list[Message] = []
    for each in said:
        if each.role == "assistant":
            if each.text:
                found.append(AssistantMessage(parts=(Text(text=each.text),)))
            continue
        kept = await store_images(app, each.urls, param)
        if each.text or kept:
            origin = "user" if each.role == "user" else "client"
            found.append(UserMessage(parts=(Text(text=each.text), *kept), origin=origin))
    return tuple(found)


def _check_text(text: str, param: str) -> str:
    if len(text) > MAX_TEXT_CHARS:
        words = (
            f"A text part may have at most {MAX_TEXT_CHARS} characters; this one has {len(text)}."
        )
        raise _too_large(words, param)
    # JSON can contain lone surrogates, but they can be neither stored nor sent.
    return text.encode("utf-8", "replace").decode()


def _too_large(words: str, param: str) -> HttpError:
    return HttpError(400, "content_too_large", words, param=param)


def _url(part: JsonObject, param: str) -> str:
    held = part.get("image_url")
    url = held.get("url") if isinstance(held, dict) else held
    if not isinstance(url, str) or not url:
        raise HttpError(400, "invalid_image", "An image part needs an `image_url`.", param=param)
    return url
