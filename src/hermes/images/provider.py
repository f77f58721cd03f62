"""The interface of image providers, and helpers for their authors: sizes, answers, files."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hermes.codec.values import JsonObject
from hermes.core.concurrency import start_daemon_thread
from hermes.images.storage import MAX_BYTES, decode_base64
from hermes.images.studio import current_studio, run_sync

DEFAULT_ASPECT_RATIO = "landscape"
VALID_ASPECT_RATIOS = ("landscape", "square", "portrait")
# Besides these, the name of an exception class.
ERROR_TYPES = (
    "provider_error", "invalid_argument", "auth_required", "missing_dependency", "timeout",
    "rate_limited", "content_policy", "io_error", "api_error", "invalid_provider_response",
)  # fmt: skip


def resolve_aspect_ratio(value: object) -> str:
    """Return one of VALID_ASPECT_RATIOS; unknown values become the default."""
    word = value.strip().lower() if isinstance(value, str) else ""
    return word if word in VALID_ASPECT_RATIOS else DEFAULT_ASPECT_RATIO


def normalize_reference_images(value: object) -> list[str] | None:
    """Return a list of references without blanks, from one or several; None when none is left."""
    values: Iterable[object] = [value] if isinstance(value, str) else ()
    if isinstance(value, list | tuple):
        values = value
    kept = [each.strip() for each in values if isinstance(each, str) and each.strip()]
    return kept or None


def references_of(image_url: object, references: object) -> tuple[str, ...]:
    """Return the image to edit first, then the others, without duplicates."""
    first = normalize_reference_images(image_url) or []
    return tuple(dict.fromkeys((*first, *(normalize_reference_images(references) or []))))


def success_response(
    *,
    image: str | Path,
    model: str,
    prompt: str,
    aspect_ratio: str,
    provider: str,
    modality: str = "text",
    extra: JsonObject | None = None,
) -> JsonObject:
    """Build the answer of a success. `image` is a URL or an absolute path; `extra` cannot overwrite
    the rest."""
    return {
        **(extra or {}),
        "success": True,
        "image": str(image),
        "model": model,
        "prompt": prompt,
        "aspect_ratio": aspect_ratio,
        "modality": modality,
        "provider": provider,
    }


def error_response(
    *,
    error: str,
    error_type: str = "provider_error",
    provider: str = "",
    model: str = "",
    prompt: str = "",
    aspect_ratio: str = "",
) -> JsonObject:
    return {
        "success": False,
        "image": None,
        "error": error,
        "error_type": error_type,
        "model": model,
        "prompt": prompt,
        "aspect_ratio": aspect_ratio,
        "provider": provider,
    }


def save_b64_image(b64: str, *, prefix: str, extension: str = "png") -> Path:
    """Return the absolute path of the image in `cache/images`; raise ImageFault for invalid
    base64."""
    return current_studio().cache.keep(decode_base64(b64), prefix=prefix, extension=extension)


def save_url_image(
    url: str, *, prefix: str, timeout: float = 60, max_bytes: int = MAX_BYTES
) -> Path:
    """Save an image from the web. Raises ImageFault when the URL is refused or too slow, or returns
    nothing, too much, or no image; then no file is left."""
    return run_sync(asave_url_image(url, prefix=prefix, timeout=timeout, max_bytes=max_bytes))


async def asave_url_image(
    url: str, *, prefix: str, timeout: float = 60, max_bytes: int = MAX_BYTES
) -> Path:
    studio = current_studio()
    data = await studio.download(url, timeout=timeout, max_bytes=max_bytes)
    return await asyncio.to_thread(studio.cache.keep, data, prefix=prefix)


def load_source_image(ref: str) -> tuple[bytes, str]:
    """Return the bytes and a file name of an http(s) URL, a data URL or a path. The policy judges
    URLs and paths as for all tools; raise ImageFault."""
    return run_sync(current_studio().source(ref))


async def aload_source_image(ref: str) -> tuple[bytes, str]:
    return await current_studio().source(ref)


class ImageGenProvider(ABC):
    """A backend that generates images. Only `name` and `generate` are required."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Lower case, no spaces, permanent: the value of `image_gen.provider`."""

    @property
    def display_name(self) -> str:
        return self.name.title()

    def is_available(self) -> bool:
        """Return whether key and libraries are present. Makes no request and takes less than 50
        ms."""
        return True

    def list_models(self) -> list[JsonObject]:
        """Return the models as `{id, display, speed, strengths, price, modalities?}`; only `id` is
        required. A price such as "$0.04/image" is booked for each image."""
        return []

    def default_model(self) -> str | None:
        models = self.list_models()
        return str(models[0]["id"]) if models else None

    def get_setup_schema(self) -> JsonObject:
        """Return what `hermes tools` asks for: `env_vars` are `{key, prompt, url, secret}`."""
        return {"name": self.display_name, "badge": "", "tag": "", "env_vars": []}

    def capabilities(self) -> JsonObject:
        """Return the capabilities of the model that would be used now. `modalities` has "image"
        where images can be edited; `supports_upscale` and `max_prompt_chars` are optional."""
        return {"modalities": ["text"], "max_reference_images": 0}

    def host(self) -> str:
        """Return where prompts are sent, for approvals; "" for this machine."""
        return ""

    @abstractmethod
    def generate(
        self,
        prompt: str,
        aspect_ratio: str = DEFAULT_ASPECT_RATIO,
        *,
        image_url: str | None = None,
        reference_image_urls: list[str] | None = None,
        **kwargs: Any,
    ) -> JsonObject:
        """Return a `success_response` or `error_response`; may block, since it runs in a thread.
        With `image_url` or references, edit those. Unknown `kwargs` are ignored."""

    async def agenerate(
        self,
        prompt: str,
        aspect_ratio: str = DEFAULT_ASPECT_RATIO,
        *,
        image_url: str | None = None,
        reference_image_urls: list[str] | None = None,
        **kwargs: Any,
    ) -> JsonObject:
        arguments = {"image_url": image_url, "reference_image_urls": reference_image_urls, **kwargs}
        work = start_daemon_thread(lambda: self.generate(prompt, aspect_ratio, **arguments))
        return await asyncio.wrap_future(work)
