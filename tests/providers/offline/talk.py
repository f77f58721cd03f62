"""A conversation with the offline assistant whose tools answer what the test wants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta

from hermes.codec.values import JsonObject, Value
from hermes.core.messages import (
    AssistantMessage,
    Denial,
    Message,
    Text,
    ToolCall,
    ToolMessage,
    ToolResult,
    user_says,
)
from hermes.core.prompt import Delta, Prompt, Reply, ToolSpec
from hermes.core.tools import Tool, ToolContext, ToolOutput, tool
from hermes.providers.offline.provider import OfflineAssistant


class Todo(Value):
    id: str
    content: str = ""
    status: str = ""


@tool()
async def read_file(ctx: ToolContext, path: str, offset: int = 1, limit: int = 500) -> ToolOutput:
    """Show a file."""
    raise NotImplementedError


@tool()
async def write_file(ctx: ToolContext, path: str, content: str) -> ToolOutput:
    """Write a file."""
    raise NotImplementedError


@tool()
async def patch(
    ctx: ToolContext,
    mode: Literal["replace", "patch"],
    path: str = "",
    old_string: str = "",
    new_string: str = "",
    replace_all: bool = False,
    patch: str = "",
) -> ToolOutput:
    """Change a file."""
    raise NotImplementedError


@tool()
async def search_files(
    ctx: ToolContext,
    pattern: str,
    target: Literal["content", "files"] = "content",
    path: str = ".",
    file_glob: str = "",
    limit: Annotated[int, Meta(ge=1)] = 50,
    offset: Annotated[int, Meta(ge=0)] = 0,
    output_mode: Literal["content", "files_only", "count"] = "content",
    context: Annotated[int, Meta(ge=0, le=20)] = 0,
) -> ToolOutput:
    """Search."""
    raise NotImplementedError


@tool()
async def terminal(
    ctx: ToolContext,
    command: str,
    background: bool = False,
    timeout: int | None = None,
    workdir: str = "",
    notify_on_complete: bool = False,
) -> ToolOutput:
    """Run a command."""
    raise NotImplementedError


@tool()
async def process(
    ctx: ToolContext,
    action: Literal["list", "poll", "log", "wait", "kill", "write", "submit", "close"],
    session_id: str = "",
    data: str = "",
) -> ToolOutput:
    """Background processes."""
    raise NotImplementedError


@tool()
async def todo(
    ctx: ToolContext, todos: list[Todo] | None = None, merge: bool = False
) -> ToolOutput:
    """The list of tasks."""
    raise NotImplementedError


@tool()
async def clarify(
    ctx: ToolContext,
    question: Annotated[str, Meta(min_length=1)],
    choices: Annotated[list[str], Meta(max_length=4)] | None = None,
) -> ToolOutput:
    """Ask the person."""
    raise NotImplementedError


TOOLS: dict[str, Tool] = {
    each.name: each
    for each in (read_file, write_file, patch, search_files, terminal, process, todo, clarify)
}
SPECS: tuple[ToolSpec, ...] = tuple(each.spec for each in TOOLS.values())


class Answer(Value):
    """What a tool says to the next call, whatever it is."""

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


class Turn(Value):
    """All that one request led to."""

    calls: tuple[tuple[str, JsonObject], ...]
    text: str


class Talk:
    """Drives the assistant as the loop does: every call is answered, then it is asked again."""

    def __init__(
        self,
        language: str = "en",
        *,
        tools: tuple[ToolSpec, ...] = SPECS,
        messages: tuple[Message, ...] = (),
    ) -> None:
        self.assistant = OfflineAssistant(language)
        self.tools = tools
        self.messages = messages

    async def say(self, text: str, *answers: Answer) -> Turn:
        """Say something; the answers are for the calls in their order. A call without an answer
        ends the turn there, as a crash would."""
        self.messages += (user_says(text),)
        return await self.go_on(*answers)

    async def go_on(self, *answers: Answer) -> Turn:
        waiting = list(answers)
        calls: list[tuple[str, JsonObject]] = []
        while True:
            reply = (await replied(self.assistant, self.prompt))[1]
            made = reply.message.calls
            calls += [(call.name, call.arguments) for call in made]
            if made and len(waiting) < len(made):
                return Turn(calls=tuple(calls), text=reply.message.text)
            self.messages += (reply.message,)
            if not made:
                return Turn(calls=tuple(calls), text=reply.message.text)
            results = tuple(waiting.pop(0).to(call) for call in made)
            self.messages += (ToolMessage(results=results),)

    @property
    def prompt(self) -> Prompt:
        return Prompt(system="You are Hermes.", messages=self.messages, tools=self.tools)


async def replied(assistant: OfflineAssistant, prompt: Prompt) -> tuple[list[Delta], Reply]:
    """What was streamed, and the reply that came last."""
    parts = [part async for part in assistant.reply(prompt)]
    *deltas, reply = parts
    assert isinstance(reply, Reply)
    return [delta for delta in deltas if not isinstance(delta, Reply)], reply


def ran(text: str = "", code: int = 0, **details: object) -> Answer:
    """A command that ended by itself."""
    shown = "\n".join(part for part in (text, f"[exit {code}]" if code else "") if part)
    facts: JsonObject = {"command": "", "exit_code": code, "cwd": "/work/here", **details}
    return Answer(text=shown or "[no output]", details=facts, failed=code != 0)


def shown(lines: Sequence[str], *, first: int = 1, total: int | None = None) -> Answer:
    """Part of a file as read_file shows it."""
    count = len(lines) if total is None else total
    body = "\n".join(f"{number}|{line}" for number, line in enumerate(lines, first))
    last = first + len(lines) - 1
    footer = f"\n[lines {first}-{last} of {count}; next_offset={last + 1}]" if last < count else ""
    return Answer(text=body + footer, details={"path": "/work/here/x", "total_lines": count})


def files(*names: str) -> Answer:
    """Files as search_files lists them: short in the text, whole in the details."""
    details: JsonObject = {
        "total_count": len(names),
        "files": [f"/work/here/{name}" for name in names],
        "truncated": False,
    }
    return Answer(text="\n".join(names) or "Nothing found.", details=details)


def matches(**lines: Sequence[str]) -> Answer:
    """Matching lines of files; the name of a file is given with _ for its dot."""
    names = [name.replace("_", ".") for name in lines]
    body: list[str] = []
    for name, found in zip(names, lines.values(), strict=True):
        body += [name, *(f"{number}: {line}" for number, line in enumerate(found, 1))]
    details: JsonObject = {
        "total_count": sum(len(found) for found in lines.values()),
        "files": [f"/work/here/{name}" for name in names],
        "truncated": False,
    }
    return Answer(text="\n".join(body) or "Nothing found.", details=details)


def todos(*items: tuple[str, str, str]) -> Answer:
    listed = [{"id": id, "content": content, "status": status} for id, content, status in items]
    return Answer(text="…", details={"todos": listed, "summary": {"total": len(items)}})


def refused(text: str = "Not allowed: the person said no. Do not retry or rephrase it.") -> Answer:
    return Answer(text=text, failed=True, denied="person")


def after(*exchanges: tuple[str, str, JsonObject, Answer]) -> tuple[Message, ...]:
    """An earlier conversation: what was said, the call that it led to, and its answer."""
    messages: tuple[Message, ...] = ()
    for number, (text, name, arguments, answer) in enumerate(exchanges):
        call = ToolCall(id=f"call_{number}_1", name=name, arguments=arguments)
        messages += (
            user_says(text),
            AssistantMessage(parts=(call,), stop="calls"),
            ToolMessage(results=(answer.to(call),)),
            AssistantMessage(parts=(Text(text="Done."),)),
        )
    return messages


# A conversation in which "it" is a.txt, "the second one" is b.txt and a process is running.
WARM = after(
    (
        "run `sleep 60` in the background",
        "terminal",
        {"command": "sleep 60", "background": True, "notify_on_complete": True},
        ran("Started proc_9.", session_id="proc_9"),
    ),
    (
        "find files named *.txt",
        "search_files",
        {"pattern": "*.txt", "target": "files", "path": ".", "limit": 50},
        files("a.txt", "b.txt", "c.txt"),
    ),
)
