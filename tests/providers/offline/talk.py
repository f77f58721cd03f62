"""A conversation with the offline assistant whose tools answer what the test wants."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.codec.values import JsonObject, Value
from hermes.core.messages import Denial, Message, Text, ToolCall, ToolMessage, ToolResult, user_says
from hermes.core.prompt import Delta, Prompt, Reply, ToolSpec
from hermes.providers.offline.provider import OfflineAssistant
from hermes.tools.catalogue import built_in_entries

NAMES = ("read_file", "write_file", "patch", "search_files", "terminal", "todo", "memory")
SPECS: tuple[ToolSpec, ...] = tuple(
    entry.spec for entry in built_in_entries() if entry.spec.name in (*NAMES, "session_search")
)


class Answer(Value):
    """The result of a call."""

    text: str
    details: JsonObject = {}
    failed: bool = False
    denied: Denial | None = None

    def to(self, call: ToolCall) -> ToolResult:
        return ToolResult(
            call_id=call.id,
            name=call.name,
            parts=(Text(text=self.text),),
            failed=self.failed,
            details=self.details,
            denied=self.denied,
        )


class Outcome(Value):
    """The calls and the answer of one request."""

    calls: tuple[tuple[str, JsonObject], ...]
    text: str

    @property
    def commands(self) -> list[str]:
        return [str(arguments["command"]) for name, arguments in self.calls if name == "terminal"]


class Talk:
    """Drives the assistant as the loop does: every call is answered, then it is asked again."""

    def __init__(self, *messages: Message, tools: tuple[ToolSpec, ...] = SPECS) -> None:
        self.tools = tools
        self.messages = messages

    async def say(self, text: str, *answers: Answer) -> Outcome:
        """Sends a request; the answers are for the calls in their order. A call without an answer
        ends the turn, as a crash would."""
        self.messages += (user_says(text),)
        return await self.go_on(*answers)

    async def go_on(self, *answers: Answer) -> Outcome:
        waiting = list(answers)
        calls: list[tuple[str, JsonObject]] = []
        while True:
            reply = (await replied(self.prompt))[1]
            made = reply.message.calls
            calls += [(call.name, call.arguments) for call in made]
            if made and not waiting:
                return Outcome(calls=tuple(calls), text=reply.message.text)
            self.messages += (reply.message,)
            if not made:
                return Outcome(calls=tuple(calls), text=reply.message.text)
            results = tuple(waiting.pop(0).to(call) for call in made)
            self.messages += (ToolMessage(results=results),)

    @property
    def prompt(self) -> Prompt:
        return Prompt(system="You are Hermes.", messages=self.messages, tools=self.tools)


async def replied(prompt: Prompt) -> tuple[list[Delta], Reply]:
    """The deltas, and the reply that came last."""
    *deltas, reply = [part async for part in OfflineAssistant().reply(prompt)]
    assert isinstance(reply, Reply)
    return [delta for delta in deltas if not isinstance(delta, Reply)], reply


def ran(text: str = "", code: int = 0) -> Answer:
    """A command that ended by itself."""
    shown = "\n".join(part for part in (text, f"[exit {code}]" if code else "") if part)
    facts: JsonObject = {"command": "", "exit_code": code, "cwd": "/work/here"}
    return Answer(text=shown or "[no output]", details=facts, failed=code != 0)


def shown(lines: Sequence[str], *, first: int = 1, total: int | None = None) -> Answer:
    """Part of a file as read_file shows it."""
    count = len(lines) if total is None else total
    body = "\n".join(f"{number}|{line}" for number, line in enumerate(lines, first))
    return Answer(text=body, details={"path": "/work/here/x", "total_lines": count})


def refused(text: str = "Not allowed: the user said no.") -> Answer:
    return Answer(text=text, failed=True, denied="person")
