"""What requests of one conversation tell about it: its id, and who is waiting for the answer."""

from __future__ import annotations

import hashlib

from hermes.codec.json import encode
from hermes.codec.values import JsonObject
from hermes.core.messages import Message, UserMessage
from hermes.core.prompt import Prompt
from hermes.providers.endpoint import Endpoint
from hermes.providers.profile import ModelProfile


class Conversation:
    """Says nothing unless the profile names a field or header for it. An id that nobody gave is
    made of how the conversation begins, so it stays the same as long as caches can be of use."""

    def __init__(self, endpoint: Endpoint, profile: ModelProfile) -> None:
        self._model = endpoint.model
        self._profile = profile
        self._id = profile.conversation
        self._began: tuple[str, Message] | None = None
        self._initiator = ""

    def goes_on(self, prompt: Prompt, messages: tuple[Message, ...]) -> None:
        """A request is being made; `messages` are those of the prompt, made valid."""
        if self._profile.initiator:
            last = messages[-1]
            mine = isinstance(last, UserMessage) and last.origin == "user"
            self._initiator = "user" if mine else "agent"
        if self._profile.conversation_field or self._profile.conversation_header:
            self._name(prompt, messages[0])

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

    def _name(self, prompt: Prompt, first: Message) -> None:
        if self._profile.conversation:
            return
        began = self._began
        if began is not None and began[0] == prompt.system and began[1] is first:
            return
        self._began = (prompt.system, first)
        digest = hashlib.sha256(encode([self._model, prompt.system, first]))
        self._id = digest.hexdigest()[:32]
