"""Rewrites recorded events as if a skill had a different text."""

from __future__ import annotations

from collections.abc import Mapping

from hermes.codec.values import replace
from hermes.core.errors import UsageError
from hermes.core.events import DurableEvent, MessageReceived, SessionOpened, ToolFinished
from hermes.core.messages import Text, ToolResult, UserMessage
from hermes.skills.index import index_line
from hermes.skills.skill import MAIN, parse_skill

VIEW = "skill_view"
# Marks the end of a skill's text in the rendered output.
NOTES = "\n\n[Skill directory: "
HEAD = "# Skill {}\n\n"
GONE = "The skill {} has no file {!r}."


class Revision:
    """`new` holds the changed files; `old` the current ones, for the index line."""

    def __init__(self, name: str, old: Mapping[str, bytes], new: Mapping[str, bytes]) -> None:
        self.name = name
        self._new = new
        self._body = _skill_body(new)
        self._lines = (_skill_line(name, old), _skill_line(name, new))

    def loads(self, event: DurableEvent) -> bool:
        """Returns whether this event loaded the skill."""
        match event:
            case ToolFinished(result=result):
                return self._is_view(result)
            case MessageReceived(message=message):
                return HEAD.format(self.name) in message.text
            case _:
                return False

    def rewrite(self, event: DurableEvent) -> DurableEvent:
        """Returns the rewritten event, or the same one if nothing differs."""
        match event:
            case ToolFinished(result=result) if self._is_view(result):
                return replace(event, result=self._result(result))
            case MessageReceived(message=message) if self.loads(event):
                return replace(event, message=self._message(message))
            case SessionOpened(system=system):
                before, after = self._lines
                changed = before != after and before in system
                return replace(event, system=system.replace(before, after)) if changed else event
            case _:
                return event

    def _is_view(self, result: ToolResult) -> bool:
        return result.name == VIEW and not result.failed and result.details.get("name") == self.name

    def _result(self, result: ToolResult) -> ToolResult:
        text = result.text
        if file := str(result.details.get("file", "")):
            data = self._new.get(file)
            if data is None:
                words = GONE.format(self.name, file)
                return replace(result, parts=(Text(text=words),), failed=True)
            return replace(result, parts=(Text(text=data.decode("utf-8", "replace")),))
        _, found, notes = text.rpartition(NOTES)
        folder = notes.partition("]")[0] if found else ""
        body = self._body.replace("${HERMES_SKILL_DIR}", folder)
        return replace(result, parts=(Text(text=f"{body}{found}{notes}" if found else body),))

    def _message(self, message: UserMessage) -> UserMessage:
        """Replaces the text between the skill's heading and the note on its folder."""
        head = HEAD.format(self.name)
        before, _, rest = message.text.partition(head)
        _, found, notes = rest.partition(NOTES)
        folder = notes.partition("]")[0] if found else ""
        body = self._body.replace("${HERMES_SKILL_DIR}", folder)
        others = tuple(part for part in message.parts if not isinstance(part, Text))
        return replace(message, parts=(Text(text=f"{before}{head}{body}{found}{notes}"), *others))


class Introduction(Revision):
    """For a new skill: the first message of a task, as if the user had invoked the skill."""

    def __init__(self, name: str, new: Mapping[str, bytes], words: MessageReceived) -> None:
        super().__init__(name, {}, new)
        self._words = words

    def loads(self, event: DurableEvent) -> bool:
        return event == self._words

    def rewrite(self, event: DurableEvent) -> DurableEvent:
        return replace(event, message=self._with_skill()) if event == self._words else event

    def _with_skill(self) -> UserMessage:
        message = self._words.message
        others = tuple(part for part in message.parts if not isinstance(part, Text))
        text = f"{HEAD.format(self.name)}{self._body}{NOTES}{self.name}]\n\n{message.text}"
        return replace(message, parts=(Text(text=text), *others))


def _skill_body(tree: Mapping[str, bytes]) -> str:
    try:
        return parse_skill(tree[MAIN].decode("utf-8"))[1].strip()
    except (KeyError, UsageError, UnicodeDecodeError):
        return ""


def _skill_line(name: str, tree: Mapping[str, bytes]) -> str:
    """Returns the skill's line in the index."""
    try:
        description = parse_skill(tree[MAIN].decode("utf-8"))[0].description
    except (KeyError, UsageError, UnicodeDecodeError):
        return ""
    return index_line(name, description)
