"""One post on its way to a platform, and how it is found out whether an earlier attempt arrived."""

from __future__ import annotations

from typing import Literal, NamedTuple

from hermes.codec.values import Value, replace
from hermes.core.errors import PlatformUnreachable, PostRejected, PostUncertain
from hermes.surfaces.gateway.options import PlatformChatOptions
from hermes.surfaces.gateway.platform import Address, Manifest, Platform, Post

# The clock of a platform may differ from ours.
CLOCK_SKEW_SECONDS = 120.0


class PostOutcome(Value):
    """What became of a post."""

    state: Literal["confirmed", "waiting", "uncertain", "abandoned"]
    message_id: str = ""
    note: str = ""


class LivePlatform(NamedTuple):
    """A platform of the running gateway."""

    manifest: Manifest
    adapter: Platform
    options: PlatformChatOptions


class PostAttempt:
    """A post on its way. `is_resolved`: no earlier attempt may have succeeded. `at` is when it was
    stored."""

    def __init__(self, key: str, to: Address, post: Post, at: float, is_resolved: bool) -> None:
        self.key = key
        self.to = to
        self.post = post
        self.at = at
        self.is_resolved = is_resolved

    async def make(self, platform: LivePlatform) -> str:
        """Send the post, unless an earlier attempt did; returns the id of the message.
        PostUncertain when nobody can tell; other errors mean that it was not sent."""
        if self.post.reaction:
            return await self._react(platform)
        if not self.is_resolved and (found := await self._resolve(platform)):
            return found
        try:
            return await self._post(platform)
        except PostUncertain:
            self.is_resolved = False
        if found := await self._resolve(platform):
            return found
        try:
            return await self._post(platform)
        except PostUncertain as error:
            # The platform can tell, but not now.
            self.is_resolved = False
            raise PlatformUnreachable(str(error), retry_after=error.retry_after) from error

    async def _react(self, platform: LivePlatform) -> str:
        try:
            await platform.adapter.react(self.to, self.post.reply_to, self.post.reaction)
        except PostUncertain as error:
            # Setting it again does no harm.
            raise PlatformUnreachable(str(error)) from error
        return self.post.reply_to

    async def _post(self, platform: LivePlatform) -> str:
        try:
            return await platform.adapter.post(self.to, self.post, self.key)
        except PostRejected:
            if self.post.is_plain:
                raise
            self.post = replace(self.post, is_plain=True)
            return await platform.adapter.post(self.to, self.post, self.key)

    async def _resolve(self, platform: LivePlatform) -> str:
        """The id of the message if an earlier attempt sent it; "" if it can be sent now."""
        match platform.manifest.abilities.resolution:
            case "key":
                found = ""
            case "read_back":
                since = self.at - CLOCK_SKEW_SECONDS
                found = await platform.adapter.find_post(self.to, self.post, self.key, since)
            case "none":
                raise PostUncertain("The platform cannot tell whether the message was sent.")
        self.is_resolved = True
        return found
