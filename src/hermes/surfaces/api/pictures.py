"""Fetches images that a client names by URL, from addresses that the policy allows."""

from __future__ import annotations

import base64
import binascii

from hermes.app.build import App
from hermes.commands.pictures import MAX_IMAGE_BYTES
from hermes.core.effects import Allow, FetchUrl
from hermes.core.errors import EffectDenied, ToolError
from hermes.policy.rule_setup import rules_for
from hermes.surfaces.api.refusals import HttpError
from hermes.web.access import web_access

FETCH_SECONDS = 20.0


async def load_image(app: App, url: str, param: str) -> bytes:
    """The bytes of a `data:`, `http:` or `https:` URL; HttpError when they cannot be read."""
    if url.startswith("data:"):
        return _decode_data_url(url, param)
    if url.lower().startswith(("http://", "https://")):
        return await _fetch(app, url, param)
    words = "Send images as `data:image/…;base64,` or `https:` URLs."
    raise HttpError(400, "unsupported_content_type", words, param=param)


async def _fetch(app: App, url: str, param: str) -> bytes:
    """The policy for the agent's own unattended fetches applies, because a client could otherwise
    read private addresses that it cannot reach itself."""
    rules = rules_for(app.config, app.settings.terminal.cwd, "api")
    effect = FetchUrl(url=url)
    decision = rules.decide(effect, "owner", frozenset({"user"}))
    if not isinstance(decision, Allow):
        raise _fetch_error(url, decision.reason, param)
    try:
        found = await web_access(app.run, rules).fetch(
            effect, max_bytes=MAX_IMAGE_BYTES, timeout=FETCH_SECONDS
        )
    except (EffectDenied, ToolError) as error:
        raise _fetch_error(url, str(error), param) from error
    if found.status >= 300:
        raise _fetch_error(url, f"The server answered with status {found.status}.", param)
    if found.cut:
        raise _fetch_error(url, f"It has more than {MAX_IMAGE_BYTES // 1024 // 1024} MB.", param)
    return found.body


def _fetch_error(url: str, why: str, param: str) -> HttpError:
    words = f"{url[:200]} cannot be used: {why}"
    return HttpError(400, "image_not_fetched", words, param=param)


def _decode_data_url(url: str, param: str) -> bytes:
    head, _, body = url.partition(",")
    if not head.startswith("data:image/") or not head.endswith(";base64"):
        words = "Data URLs must be `data:image/…;base64,`."
        raise HttpError(400, "unsupported_content_type", words, param=param)
    try:
        return base64.b64decode(body, validate=True)
    except binascii.Error as error:
        raise HttpError(400, "invalid_image", f"The image is not base64: {error}.") from error
