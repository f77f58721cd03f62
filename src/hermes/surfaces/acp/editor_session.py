"""One open session of an editor: prompts, questions and cancellation."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import assert_never
from urllib.parse import unquote, urlsplit

from acp import RequestError
from acp.helpers import (
    ContentBlock,
    SessionUpdate,
    update_agent_message_text,
    update_available_commands,
)
from acp.interfaces import Client
from acp.schema import (
    AllowedOutcome,
    AudioContentBlock,
    AvailableCommand,
    AvailableCommandInput,
    Cost,
    CurrentModeUpdate,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    PermissionOption,
    PromptResponse,
    ResourceContentBlock,
    StopReason,
    TextContentBlock,
    TextResourceContents,
    ToolCallUpdate,
    UnstructuredCommandInput,
    UsageUpdate,
)
from acp.schema import Usage as Tokens

from hermes.app.app import App
from hermes.commands.catalogue import COMMANDS, DYNAMIC_COMMANDS
from hermes.commands.input import store_image
from hermes.commands.registry import (
    AttachImage,
    CommandRegistry,
    CopyText,
    OpenEditor,
    Quit,
    Reload,
    SendMessage,
    ShowText,
    StartWork,
    SwitchSession,
)
from hermes.config.run_context import RunContext
from hermes.core.commands import Answer, Interrupt, Say
from hermes.core.effects import Effect, ReadPath, WritePath
from hermes.core.errors import UsageError
from hermes.core.events import ApprovalAsked, EndReason, QuestionAsked, TurnEnded
from hermes.core.messages import AssistantMessage, Image
from hermes.core.session import Session
from hermes.hosting.request import is_urgent
from hermes.surfaces.acp.modes import ModePolicy
from hermes.surfaces.acp.updates import (
    UpdateEncoder,
    call_id,
    edit_diff,
    history_updates,
    kind_of,
    title_of,
)

MAX_INLINE_CHARS = 512 * 1024
DENY = "deny"
BY = "editor"
STOPS: dict[EndReason, StopReason] = {"interrupted": "cancelled", "budget": "max_turn_requests"}
REPLY_STOPS: dict[str, StopReason] = {"length": "max_tokens", "filtered": "refusal"}
OPTIONS = {
    "once": PermissionOption(option_id="allow_once", name="Allow once", kind="allow_once"),
    "session": PermissionOption(
        option_id="allow_session", name="Allow for this session", kind="allow_always"
    ),
    "folder": PermissionOption(
        option_id="allow_folder", name="Allow in this folder", kind="allow_always"
    ),
    "always": PermissionOption(option_id="allow_always", name="Always allow", kind="allow_always"),
    DENY: PermissionOption(option_id="deny", name="Deny", kind="reject_once"),
}
CHOICES = {option.option_id: scope for scope, option in OPTIONS.items()}
# Commands that switch sessions, which editors do themselves.
SESSION_COMMANDS = frozenset(("branch", "clear", "new", "resume"))


def _option(scope: str, effect: Effect) -> PermissionOption:
    """Return the option for a scope. That for a folder says what is allowed in which folder."""
    option = OPTIONS[scope]
    if scope == "folder" and isinstance(effect, ReadPath | WritePath):
        verb = "writing" if isinstance(effect, WritePath) else "reading"
        folder = effect.path.rpartition("/")[0]
        return option.model_copy(update={"name": f"Allow {verb} in {folder} for this session"})
    return option


class EditorSession:
    """One session of an editor. `policy` applies the mode that the editor has chosen. `close`
    closes the session and the MCP servers of the editor. `notices` are shown once."""

    def __init__(
        self,
        app: App,
        session: Session,
        client: Client,
        policy: ModePolicy,
        close: Callable[[], Awaitable[None]],
        *,
        known_as: str = "",
    ) -> None:
        self.session = session
        self.id = known_as or session.id
        self.notices: list[str] = []
        self.policy = policy
        self.app = app
        self.registry = CommandRegistry(COMMANDS, "editor", extra=DYNAMIC_COMMANDS)
        self.background_work = None
        opened = session.transcript.opened
        self.cwd = opened.cwd if opened is not None else ""
        self._client = client
        self.close = close
        self._updates = UpdateEncoder(self.cwd)
        self._turn = asyncio.Lock()
        self._questions: set[asyncio.Task[None]] = set()

    async def announce(self) -> None:
        commands = [
            _available(command.name, command.help, command.arguments)
            for command in self.registry.commands
            if command.name not in SESSION_COMMANDS
        ]
        known = {command.name for command in commands} | SESSION_COMMANDS
        commands += [
            _available(extra.text, extra.description, "[request]")
            for extra in await self.registry.extra_names(self)
            if extra.text not in known
        ]
        await self._send_update(update_available_commands(commands))
        notices, self.notices = self.notices, []
        for notice in notices:
            await self._send_text(f"{notice}\n\n")

    async def send_mode(self) -> None:
        mode = self.policy.mode
        await self._send_update(
            CurrentModeUpdate(session_update="current_mode_update", current_mode_id=mode)
        )

    async def replay_history(self) -> None:
        messages, redact = self.session.transcript.messages, self.app.context.redactor.text
        for update in history_updates(messages, self._updates, redact):
            await self._send_update(update)

    async def prompt(self, blocks: Sequence[ContentBlock]) -> PromptResponse:
        """Run a turn after earlier prompts; returns when it has ended."""
        text, images = await parse_prompt(self.app.context, blocks)
        if self.session.busy and is_urgent(text):
            await self._command(text)
            return PromptResponse(stop_reason="end_turn")
        async with self._turn:
            say: Say | None = Say(text=text, images=images)
            if self.registry.is_command(text) and not images:
                say = await self._command(text)
            if say is None:
                return PromptResponse(stop_reason="end_turn")
            try:
                return await self._follow(say)
            finally:
                for task in tuple(self._questions):
                    task.cancel()

    async def cancel(self) -> None:
        await self.session.send(Interrupt())

    async def _follow(self, say: Say) -> PromptResponse:
        ended: TurnEnded | None = None
        async with aclosing(self.session.ask(say)) as records:
            async for record in records:
                for update in self._updates.encode(record.event):
                    await self._send_update(update)
                if isinstance(record.event, ApprovalAsked):
                    self._ask(self._approval(record.event))
                elif isinstance(record.event, QuestionAsked):
                    self._ask(self._question(record.event))
                ended = record.event if isinstance(record.event, TurnEnded) else None
        if ended is None:
            return PromptResponse(stop_reason="cancelled")
        return await self._finish_prompt(ended)

    def _ask(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._questions.add(task)
        task.add_done_callback(self._questions.discard)

    async def _approval(self, asked: ApprovalAsked) -> None:
        call = self._updates.call(asked.call_id)
        about = ToolCallUpdate(
            tool_call_id=call_id(asked.call_id),
            title=f"{title_of(call)} — {asked.reason}" if call else asked.reason,
            kind=kind_of(call.name) if call else "other",
            status="pending",
            content=edit_diff(call, self.cwd) or None if call else None,
            raw_input=call.arguments if call else None,
        )
        options = [_option(scope, asked.effect) for scope in (*asked.scopes, DENY)]
        chosen = await self._request_choice(about, options, asked.expires_seconds)
        answer = CHOICES.get(chosen, DENY)
        await self.session.send(Answer(id=asked.id, text=answer, by=BY))

    async def _question(self, asked: QuestionAsked) -> None:
        """Offer the choices as options. A question without choices is shown as text, and the next
        prompt answers it."""
        if not asked.choices:
            await self._send_text(f"\n\n{asked.question}\n")
            await self.session.send(Answer(id=asked.id, text="", by=BY))
            return
        options = [
            PermissionOption(option_id=str(n), name=choice, kind="allow_once")
            for n, choice in enumerate(asked.choices)
        ]
        about = ToolCallUpdate(tool_call_id=call_id(asked.call_id), title=asked.question)
        chosen = await self._request_choice(about, options, asked.expires_seconds)
        known = chosen.isdecimal() and int(chosen) < len(asked.choices)
        text = asked.choices[int(chosen)] if known else ""
        await self.session.send(Answer(id=asked.id, text=text, by=BY))

    async def _request_choice(
        self, about: ToolCallUpdate, options: list[PermissionOption], seconds: float
    ) -> str:
        """The id of the chosen option; "" when the editor chooses none."""
        try:
            async with asyncio.timeout(seconds):
                answer = await self._client.request_permission(self.id, about, options)
        except (RequestError, TimeoutError, ConnectionError):
            return ""
        outcome = answer.outcome
        return outcome.option_id if isinstance(outcome, AllowedOutcome) else ""

    async def _finish_prompt(self, ended: TurnEnded) -> PromptResponse:
        transcript, usage = self.session.transcript, ended.usage
        cost = transcript.usage.cost
        update = UsageUpdate(
            session_update="usage_update",
            used=transcript.last_prompt,
            size=self.app.models.window(transcript.model, transcript.provider),
            cost=Cost(amount=cost, currency="USD") if cost is not None else None,
        )
        await self._send_update(update)
        if ended.reason == "failed":
            raise RequestError(-32603, ended.error or "The turn failed.", {"detail": ended.detail})
        if ended.error:
            await self._send_text(f"\n\n{ended.error}\n")
        last = transcript.messages[-1:]
        reply_stop = last[0].stop if last and isinstance(last[0], AssistantMessage) else ""
        stop = STOPS.get(ended.reason) or REPLY_STOPS.get(reply_stop, "end_turn")
        tokens = Tokens(
            total_tokens=usage.prompt + usage.output,
            input_tokens=usage.prompt,
            output_tokens=usage.output,
            thought_tokens=usage.reasoning or None,
            cached_read_tokens=usage.cache_read or None,
            cached_write_tokens=usage.cache_write or None,
        )
        return PromptResponse(stop_reason=stop, usage=tokens)

    async def _command(self, line: str) -> Say | None:
        """Run a slash command; returns the message to send, if any."""
        match await self.registry.run_known(line, self):
            case None:
                return Say(text=line)
            case SendMessage(text=text, origin=origin, calls=calls):
                return Say(text=text, origin=origin, calls=calls)
            case ShowText(text=text):
                await self._send_text(text)
            case SwitchSession():
                await self._send_text("Open another session in the editor.")
            case StartWork(work=work):
                await self._send_text(await work())
            case Reload():
                message = "Restart the agent in the editor to read settings, keys and skills again."
                await self._send_text(message)
            case Quit() | AttachImage() | CopyText() | OpenEditor():
                await self._send_text("That works in the terminal only.")
            case unknown:
                assert_never(unknown)
        return None

    async def _send_text(self, text: str) -> None:
        await self._send_update(update_agent_message_text(text))

    async def _send_update(self, update: SessionUpdate | UsageUpdate | CurrentModeUpdate) -> None:
        await self._client.session_update(self.id, update)


def _available(name: str, description: str, arguments: str) -> AvailableCommand:
    hint = UnstructuredCommandInput(hint=arguments) if arguments else None
    return AvailableCommand(
        name=name,
        description=description,
        input=AvailableCommandInput(root=hint) if hint is not None else None,
    )


async def parse_prompt(
    context: RunContext, blocks: Sequence[ContentBlock]
) -> tuple[str, tuple[Image, ...]]:
    """The text and images of a message; raises UsageError for unsupported content. Secrets in
    attached files are masked, because they are not the person's own words."""
    texts: list[str] = []
    images: list[Image] = []
    for block in blocks:
        match block:
            case TextContentBlock(text=text):
                texts.append(text)
            case ImageContentBlock(data=data):
                try:
                    image = base64.b64decode(data, validate=True)
                except binascii.Error as error:
                    raise UsageError(f"An image is not valid base64: {error}.") from error
                images.append(await store_image(context.home, image))
            case ResourceContentBlock(uri=uri, name=name):
                # A local file becomes a reference, any other resource a link.
                path = _local_path(uri)
                texts.append(f"@file:{Path(path)}" if path else f"[{name}]({uri})")
            case EmbeddedResourceContentBlock(resource=TextResourceContents(uri=uri, text=text)):
                name = _local_path(uri) or uri
                if len(text) > MAX_INLINE_CHARS:
                    texts.append(f"[{name} is too long to include: {len(text)} characters]")
                else:
                    clean = context.redactor.text(text)
                    texts.append(f"<file path={name!r}>\n{clean}\n</file>")
            case EmbeddedResourceContentBlock(resource=resource):
                texts.append(f"[{resource.uri}: not text, omitted]")
            case AudioContentBlock():
                raise UsageError("Audio is not supported; send text instead.")
    return "\n".join(word for word in texts if word), tuple(images)


def _local_path(uri: str) -> str:
    """The path of a `file:` URI, "" for any other."""
    url = urlsplit(uri)
    return unquote(url.path) if url.scheme == "file" else ""
