"""Approval and question prompts: their layout, and the answer that a key or word means."""

from __future__ import annotations

from hermes.commands.formatting import (
    escape_invisible,
    format_elapsed,
    one_line,
    sanitize,
    short_path,
)
from hermes.commands.language import ENGLISH, Translator
from hermes.core import effects
from hermes.core.events import ApprovalAnswered, ApprovalAsked, QuestionAnswered, QuestionAsked
from hermes.surfaces.cli.chat.cells import cells, wrap
from hermes.surfaces.cli.chat.screen import Paint
from hermes.surfaces.cli.chat.skin import Skin

DENY = "deny"
LABELS = {"session": "this session"}
MOST_LINES = 400

_TITLES: dict[type[effects.Effect], str] = {
    effects.RunCommand: "Run this command?",
    effects.SignalProcess: "Act on this process?",
    effects.ReadPath: "Read this file?",
    effects.WritePath: "Write this file?",
    effects.DeletePath: "Delete this file?",
    effects.FetchUrl: "Fetch this URL?",
    effects.ReadHistory: "Read past sessions?",
    effects.Remember: "Remember this?",
    effects.ChangeSkill: "Change this skill?",
    effects.Schedule: "Change the scheduled jobs?",
    effects.UseSecret: "Use this secret?",
    effects.CallServer: "Call this MCP tool?",
    effects.Draw: "Generate this image?",
    effects.UseTool: "Use this tool?",
}


class OpenQuestion:
    """One open question. A `free` one accepts any text. Keys before `deaf_until` were meant for
    the question before it and are ignored."""

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
        self.deaf_until = now
        self._expires_at = now + asked.expires_seconds

    def symbol(self, skin: Skin) -> str:
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

    def parse_answer(self, text: str) -> str | None:
        """The answer that a typed line means; None when it is not an answer."""
        if self.secret:
            return text or None
        answer = text.strip()
        if not answer:
            return None if self.chosen is None else self.values[self.chosen]
        if answer.isdecimal() and 1 <= int(answer) <= len(self.values):
            return self.values[int(answer) - 1]
        if self.free:
            return answer
        wanted = answer.lower()
        wanted = "once" if wanted in self._say.yes else DENY if wanted in self._say.no else wanted
        found = [each for each in self.values if wanted in (each, self.label(each).lower())]
        return found[0] if found else None

    def rows(self, paint: Paint, width: int, now: float) -> list[str]:
        """The choices and the remaining time."""
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
        if cells(row) <= width:
            return [row]
        return [*(f"  {label}" for label in labels), f"  {clock}"]

    def label(self, value: str) -> str:
        return value if self.free else self._say(LABELS.get(value, value))


def panel(asked: ApprovalAsked | QuestionAsked, paint: Paint, width: int) -> str:
    """A question; or the whole effect to approve, with nothing hidden, and the reason."""
    say = paint.say
    if isinstance(asked, QuestionAsked):
        sign = say("question:") if paint.skin.words else "? "
        lines = sanitize(asked.question).split("\n")
        rows = [row for line in lines for row in wrap(f"{sign} {line}", width, hang="   ")]
        return "\n".join(paint(row, "accent") for row in rows)
    title = say(_TITLES[type(asked.effect)])
    sign = say("question:") if paint.skin.words else "⚠ "
    head = f"{sign} {title} — {sanitize(asked.reason)}"
    facts = [say("category {category}", category=sanitize(asked.category))]
    if isinstance(asked.effect, effects.RunCommand):
        facts.insert(0, say("cwd {folder}", folder=short_path(escape_invisible(asked.effect.cwd))))
        facts += [say("in the background")] if asked.effect.background else []
    lines = escape_invisible(effects.subject(asked.effect)).split("\n")
    hidden = len(lines) - MOST_LINES
    more = [say("… {count} more lines that are not shown", count=hidden)] if hidden > 0 else []
    irreversible = [
        row for each in asked.lasting for row in wrap(f"! {sanitize(each)}", width - 3, hang="  ")
    ]
    return "\n".join(
        (
            *(paint(row, "warn") for row in wrap(head, width, hang="   ")),
            paint(f"   {' · '.join(facts)}", "dim"),
            *(f"   {line}" for line in lines[:MOST_LINES]),
            *(paint(f"   {line}", "error") for line in more),
            *(paint(f"   {row}", "warn") for row in irreversible),
        )
    )


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
    answer = say("denied ({reason})", reason=say(reason)) if reason else say("denied")
    return paint(f" {sign} {answer}", "error")
