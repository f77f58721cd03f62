"""Sends a conversation id and the initiator (user or agent) with each request."""

from __future__ import annotations

import hashlib

from hermes.codec.json import encode
from hermes.codec.values import JsonObject
from hermes.core.messages import Message, UserMessage
from hermes.core.prompt import Prompt
from hermes.providers.endpoint import Endpoint
from hermes.providers.profile import ModelProfile


class ConversationFields:
    """Sends nothing unless the profile names a field or header for it. Without a configured id, the
    id is a hash of the start of the conversation, so it is stable as long as prompt caches are."""

    def __init__(self, endpoint: Endpoint, profile: ModelProfile) -> None:
        self._model = endpoint.model
        self._profile = profile
        self._id = profile.conversation
        self._start: tuple[str, Message] | None = None
        self._initiator = ""

    def update(self, prompt: Prompt, messages: tuple[Message, ...]) -> None:
        """Updates id and initiator for a request; `messages` are the repaired messages of the
        prompt."""
        if self._profile.initiator:
            last = messages[-1]
            from_user = isinstance(last, UserMessage) and last.origin == "user"
            self._initiator = "user" if from_user else "agent"
        if self._profile.conversation_field or self._profile.conversation_header:
            self._set_id(prompt, messages[0])

    @property
    def fields(self) -> JsonObject:
        field = self._profile.conversation_field
        return {field: self._id} if field and self._id else {}

    @property
    def headers(self) -> dict[str, str]:
        named = {
            self._profile.conversation_header: self._id,
            self._profile.initiator: self._initiator,
        }
        return {name: value for name, value in named.items() if name and value}

    def _set_id(self, prompt: Prompt, first: Message) -> None:
        if self._profile.conversation:
            return
        start = self._start
        if start is not None and start[0] == prompt.system and start[1] is first:
            return
        self._start = (prompt.system, first)
        digest = hashlib.sha256(encode([self._model, prompt.system, first]))
        self._id = digest.hexdigest()[:32]
