"""Which texts of a conversation came from the person and which from tools."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from hermes.core.messages import AssistantMessage, Message, ToolMessage, UserMessage

PERSON = "user"
# Characters that continue a URL or a name, so that a part is not taken for the whole.
_MORE = r"[\w/?=&%#+~@-]"


class InView:
    """Reads the messages at the time of each question."""

    def __init__(self, messages: Callable[[], list[Message]]) -> None:
        self._messages = messages

    def said(self, text: str) -> bool:
        pattern = re.compile(rf"(?<![\w@.-]){re.escape(text)}(?![\w-]|\.\w)", re.IGNORECASE)
        return any(pattern.search(words) for words in self._of_the_person())

    def shown(self, text: str) -> bool:
        pattern = _whole_pattern(text)
        everything = (*self._of_the_person(), *self._of_others())
        return any(pattern.search(words) for words in everything)

    def found(self, text: str, origin: str = "") -> bool:
        return any(text in words for words in self._of_others(origin))

    def _of_the_person(self) -> Iterator[str]:
        for message in self._messages():
            if isinstance(message, UserMessage) and message.origin == PERSON:
                yield message.text

    def _of_others(self, origin: str = "") -> Iterator[str]:
        for message in self._messages():
            match message:
                case UserMessage() if message.origin != PERSON and origin in ("", message.origin):
                    yield message.text
                case ToolMessage(results=results):
                    yield from (r.text for r in results if origin in ("", r.origin))
                case UserMessage() | AssistantMessage():
                    continue


def _whole_pattern(text: str) -> re.Pattern[str]:
    """The text on its own, neither the beginning nor the end of something longer."""
    ending = rf"(?!{_MORE})(?!\.{_MORE})"
    return re.compile(rf"(?<!{_MORE})(?<!{_MORE}\.){re.escape(text)}{ending}", re.IGNORECASE)
