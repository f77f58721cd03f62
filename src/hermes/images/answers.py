"""Validates the answers of image providers, and looks up prices."""

from __future__ import annotations

import re
from pathlib import Path

from hermes.codec.json import encode
from hermes.codec.values import JsonObject, Value
from hermes.images.pictures import media_type
from hermes.images.provider import error_response

_PRICE = re.compile(r"\$\s*(\d+(?:\.\d+)?)\s*(?:/|per)?\s*(image|picture|mp|megapixel)?\s*$", re.I)
_TEXTS = ("model", "prompt", "aspect_ratio", "provider")
# Sizes charged by the megapixel are rounded up, and no preset has more than two.
_MOST_MEGAPIXELS = 2


class ImagePrice(Value):
    """In dollars per image. An `estimated` price is the maximum."""

    usd: float
    estimated: bool = False


def validate_answer(answer: object, *, provider: str, prompt: str, aspect_ratio: str) -> JsonObject:
    """Return the answer in the agreed form, with missing fields filled in; else an error that says
    what is wrong with it."""
    known = {"provider": provider, "prompt": prompt, "aspect_ratio": aspect_ratio, "model": ""}
    if fault := _find_fault(answer):
        return error_response(
            error=f"{provider} returned an invalid answer: {fault}.",
            error_type="invalid_provider_response",
            provider=provider,
            prompt=prompt,
            aspect_ratio=aspect_ratio,
        )
    assert isinstance(answer, dict)
    if answer["success"]:
        return {"modality": "text", **known, **answer}
    return {"error_type": "provider_error", **known, **answer, "image": None}


def _find_fault(answer: object) -> str:
    if not isinstance(answer, dict):
        return "it is not a dict"
    if not all(isinstance(key, str) for key in answer):
        return "its keys are not all text"
    if not isinstance(answer.get("success"), bool):
        return "`success` is neither true nor false"
    if any(not isinstance(answer.get(key, ""), str) for key in _TEXTS):
        return f"one of {', '.join(_TEXTS)} is not text"
    try:
        encode(answer)
    except TypeError:
        return "it cannot be written as JSON"
    return _find_image_fault(answer) if answer["success"] else _find_error_fault(answer)


def _find_image_fault(answer: JsonObject) -> str:
    image = answer.get("image")
    if not isinstance(image, str) or not image:
        return "`image` is neither a URL nor a path"
    if image.startswith(("http://", "https://")):
        return ""
    if not Path(image).is_absolute():
        return "`image` is not an absolute path"
    try:
        with Path(image).open("rb") as file:
            return "" if media_type(file.read(16)) else "the file of `image` is not an image"
    except OSError:
        return "the file of `image` does not exist"


def _find_error_fault(answer: JsonObject) -> str:
    if not isinstance(answer.get("error"), str) or not answer["error"]:
        return "`error` says nothing"
    return "" if isinstance(answer.get("error_type", ""), str) else "`error_type` is not text"


def price_of(models: list[JsonObject], model: str) -> ImagePrice | None:
    """Return the price of an image of this model; None when its list does not say exactly."""
    row = next((each for each in models if each.get("id") == model), {})
    given = row.get("price")
    if isinstance(given, int | float) and not isinstance(given, bool) and given >= 0:
        return ImagePrice(usd=float(given))
    found = _PRICE.match(given.strip()) if isinstance(given, str) else None
    if found is None:
        return ImagePrice(usd=0.0) if given == "free" else None
    usd, unit = float(found[1]), (found[2] or "image").lower()
    if unit in ("image", "picture"):
        return ImagePrice(usd=usd)
    return ImagePrice(usd=usd * _MOST_MEGAPIXELS, estimated=True)
