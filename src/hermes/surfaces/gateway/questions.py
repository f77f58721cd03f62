"""Approvals and questions in a chat: as buttons or text, answered by people who may."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import NamedTuple

from hermes.codec.json import encode
from hermes.commands.formatting import escape_invisible, one_line
from hermes.core.commands import Answer
from hermes.core.effects import subject
from hermes.core.events import (
    ApprovalAnswered,
    ApprovalAsked,
    QuestionAnswered,
    QuestionAsked,
)
from hermes.hosting.run import Run
from hermes.surfaces.gateway.outbox import Outbox
from hermes.surfaces.gateway.platform import Address, Choice, ChoiceKind, Inbound, Post
from hermes.surfaces.gateway.post_attempt import LivePlatform

DENY = "deny"
LABELS = {
    "once": "Allow once",
    "session": "Allow for this session",
    "always": "Always allow",
    DENY: "Deny",
}
# What stands for an answer where reactions are buttons.
EMOJI = {"once": "✅", "session": "🔁", "always": "♾️", DENY: "❌"}
MAX_REACTION_CHOICES = 9
MAX_SUBJECT = 1_500
EXPIRED = "This question has expired."
SECRET_TEXT = "A secret cannot be entered in a chat; use `hermes` in a terminal for this step."

SendAnswer = Callable[[Run, Answer], Awaitable[None]]


class OpenQuestion(NamedTuple):
    """A question that waits for an answer. `requester` wrote the message of the turn."""

    asked: ApprovalAsked | QuestionAsked
    run: Run
    key: str
    to: Address
    requester: str


class ChatQuestions:
    """The open questions of one conversation, oldest first."""

    def __init__(self, outbox: Outbox, send_answer: SendAnswer) -> None:
        self._outbox = outbox
        self._send_answer = send_answer
        self._open: dict[str, OpenQuestion] = {}

    @property
    def approvals(self) -> tuple[OpenQuestion, ...]:
        found = self._open.values()
        return tuple(each for each in found if isinstance(each.asked, ApprovalAsked))

    @property
    def question(self) -> OpenQuestion | None:
        """The oldest question that is not an approval."""
        found = self._open.values()
        return next((each for each in found if isinstance(each.asked, QuestionAsked)), None)

    def find(self, ask_id: str) -> OpenQuestion | None:
        return self._open.get(ask_id)

    async def ask(
        self, asked: ApprovalAsked | QuestionAsked, run: Run, live: LivePlatform, event: Inbound
    ) -> None:
        """Show a question. One that an earlier process showed gets new buttons."""
        if isinstance(asked, QuestionAsked) and asked.secret:
            await self._outbox.post_unrecorded(event.address, Post(text=SECRET_TEXT))
            await self._send_answer(run, Answer(id=asked.id, text="", by=event.address.platform))
            return
        key, to = question_key(asked, run), event.address
        self._open[asked.id] = OpenQuestion(asked, run, key, to, event.sender.id)
        post = question_post(asked, live.manifest.abilities.choices)
        if message_id := await self._outbox.message_id(key):
            await self._outbox.edit(key, to, message_id, post)
        else:
            await self._outbox.send(key, to, post, session_id=run.session_id, patient=False)

    async def close(
        self, answered: ApprovalAnswered | QuestionAnswered, live: LivePlatform
    ) -> None:
        """Show the outcome in place of the buttons."""
        opened = self._open.pop(answered.id, None)
        if opened is None:
            return
        text = f"{question_post(opened.asked, 'buttons').text}\n\n{outcome_text(answered)}"
        message_id = await self._outbox.message_id(opened.key)
        if message_id and live.manifest.abilities.edits:
            await self._outbox.edit(opened.key, opened.to, message_id, Post(text=text))
        elif answered.by == "time":
            await self._outbox.post_unrecorded(opened.to, Post(text=outcome_text(answered)))

    async def answer(self, opened: OpenQuestion, text: str, by: str, reason: str = "") -> None:
        await self._send_answer(
            opened.run, Answer(id=opened.asked.id, text=text, by=by, reason=reason)
        )

    async def answer_text(self, opened: OpenQuestion, text: str, by: str) -> None:
        """Answer a question with a message; a number stands for a choice."""
        asked = opened.asked
        assert isinstance(asked, QuestionAsked)
        plain = text.strip().rstrip(".)")
        if plain.isdecimal() and 1 <= int(plain) <= len(asked.choices):
            text = asked.choices[int(plain) - 1]
        await self.answer(opened, text, by)

    async def find_reaction(self, to: Address, message_id: str, emoji: str) -> str:
        """The id of the choice that a reaction to a question stands for; "" for none."""
        for opened in tuple(self._open.values()):
            if opened.to.chat_id != to.chat_id or opened.to.platform != to.platform:
                continue
            if await self._outbox.message_id(opened.key) == message_id:
                choices = question_post(opened.asked, "reactions").choices
                return next((each.id for each in choices if _same(each.emoji, emoji)), "")
        return ""

    async def press(self, opened: OpenQuestion, choice: str, by: str) -> str:
        """Answer with a button; returns what the person is told."""
        asked = opened.asked
        if isinstance(asked, ApprovalAsked):
            if choice not in (*asked.scopes, DENY):
                return EXPIRED
            await self.answer(opened, choice, by)
            return LABELS.get(choice, choice)
        if not choice.isdecimal() or int(choice) >= len(asked.choices):
            return EXPIRED
        await self.answer(opened, asked.choices[int(choice)], by)
        return asked.choices[int(choice)]


def question_key(asked: ApprovalAsked | QuestionAsked, run: Run) -> str:
    """The same for the same question after a restart, when it is asked again."""
    about = encode(asked.effect) if isinstance(asked, ApprovalAsked) else asked.question.encode()
    digest = sha256(about).hexdigest()[:12]
    return f"{run.session_id}:{run.turn_id}:ask.{asked.call_id}.{digest}"


def question_post(asked: ApprovalAsked | QuestionAsked, buttons: ChoiceKind) -> Post:
    """A question as the platform shows it. Where reactions are buttons, the text explains them."""
    if isinstance(asked, ApprovalAsked):
        return _approval_post(asked, buttons)
    choices = tuple(
        Choice(id=f"{asked.id}:{n}", label=one_line(each, 60), emoji=_digit(n + 1))
        for n, each in enumerate(asked.choices)
    )
    lines = [asked.question]
    if buttons == "reactions" and len(choices) > MAX_REACTION_CHOICES:
        buttons = "none"
    if buttons == "none":
        lines += [f"{n}. {each}" for n, each in enumerate(asked.choices, 1)]
    return _with_choices(lines, choices, buttons)


def _with_choices(lines: list[str], choices: tuple[Choice, ...], buttons: ChoiceKind) -> Post:
    match buttons:
        case "buttons":
            return Post(text="\n".join(lines), choices=choices)
        case "reactions":
            legend = [f"{each.emoji} {each.label}" for each in choices]
            return Post(text="\n\n".join((*lines, *legend)), choices=choices)
        case "none":
            return Post(text="\n".join(lines))


def _digit(n: int) -> str:
    """The emoji of a number."""
    return f"{n}\ufe0f\u20e3"


def _same(emoji: str, other: str) -> bool:
    """Clients differ in whether they add the mark for a coloured picture."""
    return emoji.replace("\ufe0f", "") == other.replace("\ufe0f", "")


def _approval_post(asked: ApprovalAsked, buttons: ChoiceKind) -> Post:
    shown = escape_invisible(subject(asked.effect))
    if len(shown) > MAX_SUBJECT:
        shown = f"{shown[:MAX_SUBJECT]}… ({len(shown)} characters)"
    fence = "```" if "```" not in shown else "~~~~"
    lines = [f"**Approval needed.** {asked.reason}", f"{fence}\n{shown}\n{fence}", *asked.lasting]
    choices = tuple(
        Choice(
            id=f"{asked.id}:{scope}",
            label=LABELS.get(scope, scope),
            emoji=EMOJI.get(scope, ""),
            is_danger=scope != DENY,
        )
        for scope in (*asked.scopes, DENY)
    )
    if buttons == "none":
        more = "".join(f", /approve {scope}" for scope in asked.scopes if scope != "once")
        lines.append(f"Answer with /approve{more} or /deny.")
    return _with_choices(lines, choices, buttons)


def outcome_text(answered: ApprovalAnswered | QuestionAnswered) -> str:
    match answered:
        case ApprovalAnswered(by="time"):
            return "No answer in time: denied."
        case ApprovalAnswered(by="stop"):
            return "The turn was stopped: denied."
        case ApprovalAnswered(choice="deny", by=by, reason=reason):
            return f"Denied by {by}{f': {reason}' if reason else '.'}"
        case ApprovalAnswered(choice=choice, by=by):
            return f"{LABELS.get(choice, choice)}: {by}."
        case QuestionAnswered(text="", by="time"):
            return "No answer in time."
        case QuestionAnswered(text="", by="stop"):
            return "The turn was stopped."
        case QuestionAnswered(text=text):
            return f"Answer: {one_line(text, 200)}"
