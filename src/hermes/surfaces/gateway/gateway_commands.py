"""Slash commands that exist only in chats: approvals, access, platforms, and the sessions of the
chat."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from hermes.app.app import App
from hermes.app.side_questions import new_task_id
from hermes.commands.background import running_work
from hermes.commands.background import stop as stop_session
from hermes.commands.formatting import format_age, one_line, plural
from hermes.commands.history import status as session_status
from hermes.commands.registry import (
    CommandContext,
    CommandRegistry,
    Outcome,
    SendMessage,
    SlashCommand,
    SurfaceKind,
    SwitchSession,
)
from hermes.core.errors import NotFound
from hermes.core.events import ApprovalAsked
from hermes.core.session import Session
from hermes.surfaces.gateway.background_tasks import BACKGROUND
from hermes.surfaces.gateway.pending import Pending
from hermes.surfaces.gateway.questions import DENY, OpenQuestion
from hermes.surfaces.gateway.status import MOST_NAMED, describe_message

if TYPE_CHECKING:
    from hermes.surfaces.gateway.chat import Chat
    from hermes.surfaces.gateway.chat_commands import ChatCommands

GATEWAY: tuple[SurfaceKind, ...] = ("gateway",)
# What people other than the owner may run; the rest changes or shows what is the owner's.
MEMBER_COMMANDS = frozenset(
    (
        "agents", "approve", "background", "branch", "btw", "commands", "compress", "deny", "fast",
        "help", "model", "new", "personality", "queue", "reasoning", "resume", "retry", "sessions",
        "status", "steer", "stop", "title", "undo", "usage", "verbose", "version", "whoami",
    )
)  # fmt: skip
LEVELS = ("off", "new", "all", "verbose")
NO_CONTROL = "This gateway cannot do that from a chat; use `hermes gateway` on its machine."


class ChatContext:
    """The chat in which a command runs; a `CommandContext`."""

    def __init__(
        self, chat: Chat, pending: Pending, session: Session, commands: ChatCommands
    ) -> None:
        self.chat = chat
        self.pending = pending
        self.session = session
        self.commands = commands
        # Work in the background belongs to the chat and is answered there.
        self.background_work = None
        # The message of the command is answered later.
        self.is_handed_over = False

    @property
    def app(self) -> App:
        return self.chat.deps.app

    @property
    def registry(self) -> CommandRegistry:
        return self.commands.registry

    @property
    def is_owner(self) -> bool:
        return self.pending.access.principal == "owner"


ChatCommand = Callable[[ChatContext, str], Awaitable[Outcome | str | None]]


def _in_chat(run: ChatCommand) -> Callable[[CommandContext, str], Awaitable[Outcome | str | None]]:
    """A command that needs the chat."""

    async def run_here(here: CommandContext, argument: str) -> Outcome | str | None:
        assert isinstance(here, ChatContext)
        return await run(here, argument)

    return run_here


async def approve(here: ChatContext, argument: str) -> str:
    words = argument.split()
    scope = next((word for word in words if word in ("session", "always")), "once")
    return await _decide(here, scope, is_all="all" in words)


async def deny(here: ChatContext, argument: str) -> str:
    first, _, rest = argument.partition(" ")
    is_all = first == "all"
    return await _decide(here, DENY, is_all=is_all, reason=rest if is_all else argument)


async def _decide(here: ChatContext, choice: str, *, is_all: bool, reason: str = "") -> str:
    opened = here.chat.questions.approvals
    if not opened:
        return "Nothing waits for approval."
    if refusal := may_answer(here, opened[0]):
        return refusal
    chosen = opened if is_all else opened[:1]
    for each in chosen:
        assert isinstance(each.asked, ApprovalAsked)
        allowed = choice if choice in (*each.asked.scopes, DENY) else "once"
        await here.chat.questions.answer(each, allowed, here.pending.event.sender.id, reason)
    left = len(opened) - len(chosen)
    return f"{plural(left, 'approval')} still open." if left else ""


def may_answer(here: ChatContext, opened: OpenQuestion) -> str:
    """Why this person may not answer; "" when they may."""
    options = here.chat.deps.options
    if options.requester_only and opened.requester != here.pending.event.sender.id:
        return "Only the person who asked for it may answer."
    return ""


async def whoami(here: ChatContext, argument: str) -> str:
    event, access = here.pending.event, here.pending.access
    may_run = here.chat.deps.authorization.may_run
    names = [
        f"/{each.name}"
        for each in here.registry.commands
        if may_run(access, each.name, event.chat_type)
        and (here.is_owner or each.name in MEMBER_COMMANDS)
    ]
    role = f"{access.principal}{', admin' if access.is_admin else ''}"
    return (
        f"You are {one_line(event.sender.name, 60) or event.sender.id} ({event.sender.id}) on "
        f"{event.address.platform}: {role}.\nYou may use: {', '.join(names)}"
    )


async def sessions(here: ChatContext, argument: str) -> str:
    """The sessions of this chat."""
    ids = await _own_sessions(here)
    word = argument.removeprefix("search").strip().lower()
    lines = []
    for n, session_id in enumerate(ids, 1):
        try:
            info = await here.app.archive.info(session_id)
        except NotFound:
            continue
        name = one_line(info.title or info.preview, 60)
        if word in name.lower():
            age = format_age(here.app.context.world.clock.now() - info.last_at)
            lines.append(f"{n:3}  {session_id}  {name}  {age}")
    return "\n".join((*lines, "Use /resume with a number or an id.")) if lines else "None yet."


async def resume(here: ChatContext, argument: str) -> Outcome | str:
    if not argument:
        return await sessions(here, "")
    ids = await _own_sessions(here)
    if argument.isdecimal() and 1 <= int(argument) <= len(ids):
        argument = ids[int(argument) - 1]
    session_id = await here.app.archive.find(argument)
    if session_id not in ids and not (here.is_owner and here.pending.access.is_admin):
        return "That is not a session of this chat; /sessions lists those."
    if session_id == here.session.id:
        return "This session is already open."
    return SwitchSession(session_id=session_id)


async def _own_sessions(here: ChatContext) -> list[str]:
    route = await here.chat.deps.routes.find(here.chat.key)
    return [] if route is None else [route.session_id, *reversed(route.info.earlier)]


async def status(here: ChatContext, argument: str) -> str:
    """The session, and what this chat is owed."""
    lines = [str(await session_status(here, argument))]
    open_messages = await here.chat.deps.ledger.open_messages(here.pending.event.address.platform)
    owed = [
        row
        for row in open_messages
        if row.session_key == here.chat.key and row.key != here.pending.event.key
    ]
    doubts = here.chat.deps.outbox.doubts(here.pending.event.address)
    lines.append(f"Owed      {plural(len(owed), 'answer')}")
    lines += [f"          {describe_message(row)}" for row in owed[:MOST_NAMED]]
    if here.chat.questions.approvals:
        lines.append(f"Approvals {len(here.chat.questions.approvals)} open")
    if doubts:
        lines.append(f"Uncertain {plural(len(doubts), 'post')} may not have arrived")
    return "\n".join(lines)


async def agents(here: ChatContext, argument: str) -> str:
    chat = here.chat
    lines = []
    if chat.turn is not None:
        lines.append(f"This chat: {chat.turn.progress.doing}")
    lines += running_work(here.app, here.session)
    lines += [f"{each.id}  {each.title}" for each in chat.background.running]
    return "\n".join(lines) or "Nothing is running."


async def stop(here: ChatContext, argument: str) -> str:
    if argument:
        return await here.chat.background.stop(argument.strip())
    return await stop_session(here, "")


async def background(here: ChatContext, argument: str) -> str | None:
    if not argument:
        return None
    chat, pending, event = here.chat, here.pending, here.pending.event
    _, is_continued, task_id = pending.note.partition(f"{BACKGROUND}:")
    task_id = task_id or new_task_id(here.app.context.world)

    async def report(text: str) -> None:
        await chat.tell(pending, text)
        await chat.finish(pending)

    # The message stays open: after a restart, the task continues.
    note = f"{BACKGROUND}:{task_id}"
    await chat.deps.ledger.accept(event.address.platform, event.key, here.session.id, note)
    here.is_handed_over = True
    begun = chat.background.start(here.session, argument, report, task_id)
    if not is_continued:
        await chat.tell(pending, begun, "begun")
    return ""


async def queue(here: ChatContext, argument: str) -> Outcome | str:
    if not argument:
        waiting = [one_line(each.event.text, 80) for each in here.chat.inbox]
        return "\n".join(waiting) or "The queue is empty; /queue TEXT adds a message."
    return SendMessage(text=argument)


async def steer(here: ChatContext, argument: str) -> str | None:
    if not argument:
        return None
    here.is_handed_over = True
    await here.chat.add_with_mode(here.pending, "steer", argument)
    return ""


async def sethome(here: ChatContext, argument: str) -> str:
    control, event = here.commands.control, here.pending.event
    if control is None:
        return NO_CONTROL
    return await control.set_home(event.address, argument or event.chat_name or event.sender.name)


async def platform(here: ChatContext, argument: str) -> str | None:
    control = here.commands.control
    if control is None:
        return NO_CONTROL
    if not here.pending.access.is_admin:
        return "Only an admin may control platforms."
    verb, _, name = argument.partition(" ")
    if verb in ("", "list"):
        return "\n".join(f"{each}: {state}" for each, state in control.platforms())
    if verb not in ("pause", "resume") or not name:
        return None
    return await (control.pause(name) if verb == "pause" else control.resume(name))


async def restart(here: ChatContext, argument: str) -> str:
    control = here.commands.control
    if control is None:
        return NO_CONTROL
    if not here.pending.access.is_admin:
        return "Only an admin may restart the gateway."
    return await control.restart(here.pending.event.address)


async def verbose(here: ChatContext, argument: str) -> str | None:
    routes, event = here.chat.deps.routes, here.pending.event
    now = here.app.context.world.clock.now()
    route = await routes.open(here.chat.key, event, now)
    default = here.chat.deps.live(event.address.platform).options.display.tool_progress
    level = route.info.tool_progress or default
    chosen = argument or LEVELS[(LEVELS.index(level) + 1) % len(LEVELS) if level in LEVELS else 0]
    if chosen not in LEVELS:
        return None
    await routes.update(route, tool_progress=chosen)
    return f"Tool calls: {chosen}."


GATEWAY_COMMANDS = (
    SlashCommand(
        "approve [all] [session|always]",
        "Approve the oldest question, or all.",
        _in_chat(approve),
        surfaces=GATEWAY,
    ),
    SlashCommand(
        "deny [all] [REASON]",
        "Deny the oldest question, or all; the model gets the reason.",
        _in_chat(deny),
        surfaces=GATEWAY,
    ),
    SlashCommand(
        "whoami", "Show who you are here and what you may do.", _in_chat(whoami), surfaces=GATEWAY
    ),
    SlashCommand(
        "sessions [TEXT]", "List the sessions of this chat.", _in_chat(sessions), surfaces=GATEWAY
    ),
    SlashCommand(
        "resume [ID|TITLE|N]",
        "Continue another session of this chat.",
        _in_chat(resume),
        surfaces=GATEWAY,
    ),
    SlashCommand(
        "status",
        "Show this session and what is owed to this chat.",
        _in_chat(status),
        surfaces=GATEWAY,
    ),
    SlashCommand(
        "agents", "Show what is running for this chat.", _in_chat(agents), surfaces=GATEWAY
    ),
    SlashCommand(
        "stop [ID]",
        "Stop the running turn and its processes, or a background task.",
        _in_chat(stop),
        surfaces=GATEWAY,
    ),
    SlashCommand(
        "background TEXT",
        "Run a task in another session.",
        _in_chat(background),
        aliases=("bg",),
        surfaces=GATEWAY,
    ),
    SlashCommand(
        "queue [TEXT]",
        "Send a message after the running turn.",
        _in_chat(queue),
        aliases=("q",),
        surfaces=GATEWAY,
    ),
    SlashCommand(
        "steer TEXT",
        "Add text to the running turn, which reads it next.",
        _in_chat(steer),
        surfaces=GATEWAY,
    ),
    SlashCommand(
        "sethome [NAME]", "Make this chat the home channel.", _in_chat(sethome), surfaces=GATEWAY
    ),
    SlashCommand(
        "platform [list|pause NAME|resume NAME]",
        "Show and control platforms.",
        _in_chat(platform),
        surfaces=GATEWAY,
    ),
    SlashCommand(
        "restart",
        "Restart the gateway after the running turns.",
        _in_chat(restart),
        surfaces=GATEWAY,
    ),
    SlashCommand(
        "verbose [off|new|all|verbose]",
        "Set how tool calls are shown in this chat.",
        _in_chat(verbose),
        surfaces=GATEWAY,
    ),
)
