"""Slash commands in a chat: who may run them, when they run, and what their outcomes do here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, assert_never

from hermes.commands.catalogue import COMMANDS, DYNAMIC_COMMANDS
from hermes.commands.registry import (
    AttachImage,
    CommandRegistry,
    CopyText,
    OpenEditor,
    Outcome,
    Quit,
    Reload,
    SendMessage,
    ShowText,
    StartWork,
    SwitchSession,
    split_line,
)
from hermes.surfaces.gateway.background_tasks import BACKGROUND
from hermes.surfaces.gateway.gateway_commands import GATEWAY_COMMANDS, MEMBER_COMMANDS, ChatContext
from hermes.surfaces.gateway.pending import GatewayControl, Pending

if TYPE_CHECKING:
    from hermes.surfaces.gateway.chat import Chat

# Commands that run while a turn runs. Others wait for its end.
URGENT = frozenset(
    (
        "agents", "approve", "background", "btw", "commands", "cost", "deny", "help", "insights",
        "new", "permission", "platform", "profile", "queue", "restart", "sessions", "sethome",
        "status", "steer", "stop", "title", "usage", "version", "verbose", "whoami",
    )
)  # fmt: skip
ALWAYS = frozenset(("help", "whoami"))
TERMINAL_ONLY = "That works in the terminal only."
# Those of the shared commands that this surface replaces by its own.
_REPLACED = frozenset(command.name for command in GATEWAY_COMMANDS)
_COMMAND = re.compile(r"/([A-Za-z][\w.-]*)(?:@(\w+))?(?=\s|$)")


class ChatCommands:
    """The commands of all chats. `account` is the name of the bot on a platform, for commands that
    are addressed to one of several bots."""

    def __init__(self) -> None:
        shared = tuple(each for each in COMMANDS if each.name not in _REPLACED)
        self.registry = CommandRegistry(
            (*GATEWAY_COMMANDS, *shared), "gateway", extra=DYNAMIC_COMMANDS
        )
        self.control: GatewayControl | None = None
        self.accounts: dict[str, str] = {}
        # What a command may begin with, by platform.
        self.prefixes: dict[str, tuple[str, ...]] = {}

    def line(self, pending: Pending) -> str:
        """The command of a message, beginning with a slash; "" for a message that is none."""
        event = pending.event
        text, platform = event.text.strip(), event.address.platform
        if pending.is_internal or event.files or not pending.wants_answer:
            return ""
        if text.startswith("!"):
            name = split_line("/" + text[1:])[0]
            is_ours = "!" in self.prefixes.get(platform, ()) and self.registry.find(name)
            return "/" + text[1:] if is_ours else ""
        found = _COMMAND.match(text)
        if found is None:
            return ""
        account = self.accounts.get(platform, "")
        if found[2] and account and found[2].lower() != account.lower():
            return ""
        return f"/{found[1]}{text[found.end() :]}"

    def is_command(self, pending: Pending) -> bool:
        return bool(self.line(pending))

    def is_urgent(self, pending: Pending) -> bool:
        line = self.line(pending)
        command = self.registry.find(split_line(line)[0]) if line else None
        return command is not None and command.name in URGENT

    def menu(self, most: int) -> tuple[tuple[str, str], ...]:
        """Names and descriptions for the command menu of a platform."""
        found = ((each.name.replace("-", "_"), each.help) for each in self.registry.commands)
        return tuple((name[:32], about) for name, about in found)[:most]

    async def run(self, chat: Chat, pending: Pending) -> None:
        """Run the command of a message and do what follows from it."""
        if pending.session_id and not pending.note.startswith(BACKGROUND):
            # It ran before a crash, and its output is in the outbox.
            await chat.finish(pending)
            return
        line = self.line(pending)
        if refusal := self._refusal(chat, pending, line):
            await chat.tell(pending, refusal)
            await chat.finish(pending)
            return
        deps, event = chat.deps, pending.event
        now = deps.app.context.world.clock.now()
        route = await deps.routes.open(chat.key, event, now)
        request = chat.builder.request(pending, route, text="")
        async with deps.executor.session(request) as session:
            here = ChatContext(chat, pending, session, self)
            outcome = await self.registry.run(line, here)
            await self._carry_out(here, outcome)

    def _refusal(self, chat: Chat, pending: Pending, line: str) -> str:
        name = split_line(line)[0]
        command = self.registry.find(name)
        known = command.name if command else name
        access, chat_type = pending.access, pending.event.chat_type
        if known in ALWAYS:
            return ""
        if not chat.deps.authorization.may_run(access, known, chat_type):
            return f"You may not use /{known} here; /whoami shows what you may do."
        is_shared = command is not None
        if access.principal != "owner" and is_shared and known not in MEMBER_COMMANDS:
            return f"Only the owner may use /{known}; /whoami shows what you may do."
        if access.principal != "owner" and not is_shared and self._is_quick(chat, name):
            return f"Only the owner may use /{known}; /whoami shows what you may do."
        return ""

    def _is_quick(self, chat: Chat, name: str) -> bool:
        return name in chat.deps.app.context.settings.quick_commands

    async def _carry_out(self, here: ChatContext, outcome: Outcome) -> None:
        chat, pending = here.chat, here.pending
        if here.is_handed_over:
            return
        match outcome:
            case ShowText(text=text):
                await self._show(here, text)
            case SendMessage(text=text):
                # `answer` finishes the message.
                await self._send_message(here, text)
                return
            case SwitchSession():
                await self._switch(here, outcome)
            case StartWork(work=work, text=text):
                if text:
                    await chat.tell(pending, text, "begun")

                async def finish_work() -> None:
                    await chat.tell(pending, await work())
                    await chat.finish(pending)

                chat.spawn(finish_work())
                return
            case Reload():
                await self._show(here, "Use /restart to read settings, keys and skills again.")
            case Quit() | AttachImage() | CopyText() | OpenEditor():
                await self._show(here, TERMINAL_ONLY)
            case unknown:
                assert_never(unknown)
        await chat.finish(pending)

    async def _show(self, here: ChatContext, text: str) -> None:
        if text.strip():
            await here.chat.tell(here.pending, text)

    async def _send_message(self, here: ChatContext, text: str) -> None:
        chat = here.chat
        if chat.turn is not None:
            await chat.add_with_mode(here.pending, "queue", text)
        else:
            await chat.answer(here.pending, text)

    async def _switch(self, here: ChatContext, switch: SwitchSession) -> None:
        chat, pending = here.chat, here.pending
        deps, now = chat.deps, here.app.context.world.clock.now()
        route = await deps.routes.open(chat.key, pending.event, now)
        if chat.turn is not None:
            await deps.executor.stop(chat.turn.run)
        if switch.session_id:
            await deps.routes.switch(route, switch.session_id, now)
            await self._show(here, switch.text or f"This is session {switch.session_id}.")
            return
        new = await deps.routes.renew(route, now)
        chat.spawn(chat.resets.flush(route, pending, "new"))
        await chat.resets.announce(route, new, "user")
        await self._show(here, switch.text or "This is a new session.")
