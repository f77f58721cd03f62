"""Approval and question prompts: the choices, and the answer that a key or word means."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hermes.commands.formatting import format_elapsed, one_line
from hermes.commands.language import ENGLISH, Translator
from hermes.core.events import ApprovalAnswered, ApprovalAsked, QuestionAnswered, QuestionAsked
from hermes.surfaces.cli.chat.cells import cells, cut
from hermes.surfaces.cli.chat.screen import Paint
from hermes.surfaces.cli.chat.skin import Skin

DENY = "deny"
LABELS = {"session": "this session", "folder": "in this folder"}
HINT = "↑↓ Enter choose · Tab denies with a reason · ? shows details"


class ParsedAnswer(NamedTuple):
    """A choice or text, and the reason of a denial."""

    text: str
    reason: str = ""


class OpenQuestion:
    """One open question. A `free` one accepts any text. Keys before `deaf_until` were meant for
    the question before it and are ignored. While `wants_reason`, the user types why they deny."""

    def __init__(
        self, asked: ApprovalAsked | QuestionAsked, now: float, say: Translator = ENGLISH
    ) -> None:
        self.id = asked.id
        self._say = say
        self.free = isinstance(asked, QuestionAsked)
        self.secret = isinstance(asked, QuestionAsked) and asked.secret
        offered = asked.choices if isinstance(asked, QuestionAsked) else (*asked.scopes, DENY)
        self.values = tuple(dict.fromkeys(offered))
        self.chosen: int | None = None
        self.answered = False
        self.wants_reason = False
        # The text of the details, for an approval.
        self.details: Callable[[], str] | None = None
        self.deaf_until = now
        self._expires_at = now + asked.expires_seconds

    def symbol(self, skin: Skin) -> str:
        if self.wants_reason:
            return f"{self._say('reason')} {skin.branding.prompt_symbol}"
        if skin.words:
            kind = "password" if self.secret else "answer" if self.free else "allow?"
            return f"{self._say(kind)} {skin.branding.prompt_symbol}"
        if self.secret:
            return "🔐 ❯"
        return "? ❯" if self.free else "⚠ ❯"

    def move(self, step: int) -> None:
        if self.values:
            first = 0 if step > 0 else -1
            moved = first if self.chosen is None else self.chosen + step
            self.chosen = moved % len(self.values)

    def parse_answer(self, text: str) -> ParsedAnswer | None:
        """The answer that a typed line means; None when it is not an answer."""
        if self.secret:
            return ParsedAnswer(text) if text else None
        answer = text.strip()
        if self.wants_reason:
            return ParsedAnswer(DENY, answer)
        if not answer:
            return None if self.chosen is None else ParsedAnswer(self.values[self.chosen])
        if answer.isdecimal() and 1 <= int(answer) <= len(self.values):
            return ParsedAnswer(self.values[int(answer) - 1])
        return ParsedAnswer(answer) if self.free else self._parse_approval(answer)

    def _parse_approval(self, answer: str) -> ParsedAnswer | None:
        """A choice by its name, yes or no; what follows a no is the reason."""
        wanted = answer.lower()
        wanted = "once" if wanted in self._say.yes else wanted
        found = [each for each in self.values if wanted in (each, self.label(each).lower())]
        if found:
            return ParsedAnswer(found[0])
        word, _, reason = answer.partition(" ")
        denies = word.lower().rstrip(",:") in (*self._say.no, DENY, self.label(DENY).lower())
        return ParsedAnswer(DENY, reason.strip()) if denies else None

    def rows(self, paint: Paint, width: int, now: float) -> list[str]:
        """The choices and the remaining time."""
        if self.wants_reason:
            hint = self._say("Enter denies and tells the model why · Esc goes back")
            return [paint(cut(f"  {hint}", width), "dim")]
        left = max(0, int(self._expires_at - now + 0.999))
        outcome = self._say("no answer" if self.free else DENY)
        clock = paint(f"({format_elapsed(left)} → {outcome})", "dim")
        labels = [f"[{n}] {one_line(self.label(value))}" for n, value in enumerate(self.values, 1)]
        if self.chosen is not None:
            label = labels[self.chosen]
            labels[self.chosen] = paint(label, "chosen") if paint.colours else f">{label}"
        if self.secret:
            labels.append(paint(self._say("Type it, or press Esc to decline"), "dim"))
        elif self.free:
            hint = "or type your answer" if labels else "Type your answer"
            labels.append(paint(self._say(hint), "dim"))
        row = "  " + "   ".join(labels) + "    " + clock
        hints = [] if self.free else [paint(cut(f"  {self._say(HINT)}", width), "dim")]
        if cells(row) <= width:
            return [row, *hints]
        return [*(f"  {label}" for label in labels), f"  {clock}", *hints]

    def label(self, value: str) -> str:
        return value if self.free else self._say(LABELS.get(value, value))


def outcome(answered: ApprovalAnswered | QuestionAnswered, paint: Paint) -> str:
    """The answer, in one line."""
    say = paint.say
    sign = say("answer:") if paint.skin.words else "  →"
    if isinstance(answered, QuestionAnswered):
        answer = one_line(answered.text)
        return f" {sign} {answer}" if answer else paint(f" {sign} {say('no answer')}", "dim")
    if answered.choice != DENY:
        label = say(LABELS.get(answered.choice, answered.choice))
        return paint(f" {sign} {say('allowed: {label}', label=label)}", "ok")
    why = {"time": "no answer in time", "stop": "interrupted", "restart": "Hermes was restarted"}
    reason = why.get(answered.by)
    reason = say(reason) if reason else one_line(answered.reason)
    answer = say("denied ({reason})", reason=reason) if reason else say("denied")
    return paint(f" {sign} {answer}", "error")
