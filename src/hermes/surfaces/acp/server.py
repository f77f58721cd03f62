"""The agent that an editor talks to: every method of the protocol that Hermes fulfils."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any, cast

from acp import PROTOCOL_VERSION, RequestError
from acp.helpers import ContentBlock
from acp.interfaces import Client
from acp.schema import (
    AgentCapabilities,
    AuthenticateResponse,
    AuthMethodAgent,
    ClientCapabilities,
    CloseSessionResponse,
    ForkSessionResponse,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    McpCapabilities,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    ResumeSessionResponse,
    SessionCapabilities,
    SessionCloseCapabilities,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionForkCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionResumeCapabilities,
    SetSessionConfigOptionResponse,
    SetSessionModeResponse,
)

from hermes.app.build import App
from hermes.app.models.shelf import Shelf
from hermes.app.opening import Opening
from hermes.core.commands import SwitchModel
from hermes.core.errors import HermesError, NotFound, UsageError
from hermes.core.parts import Parts
from hermes.core.ports import Workspace
from hermes.surfaces.acp.buffers import EditorFiles
from hermes.surfaces.acp.manners import NAMES, Mannered, modes
from hermes.surfaces.acp.seat import Seat
from hermes.version import __version__

SOURCE = "acp"
PAGE = 50
MODEL = "model"
READY = AuthMethodAgent(
    id="configured", name="Configured provider", description="What `hermes model` has chosen."
)


class EditorAgent:
    """`acp.interfaces.Agent`. Sessions are those of the home, so `hermes sessions` and the chat
    know them too."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._client: Client | None = None
        self._able = ClientCapabilities()
        self._seats: dict[str, Seat] = {}

    def on_connect(self, conn: Client) -> None:
        self._client = conn

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: ClientCapabilities | None = None,
        client_info: Implementation | None = None,
        **_: Any,
    ) -> InitializeResponse:
        self._able = client_capabilities or ClientCapabilities()
        return InitializeResponse(
            protocol_version=min(protocol_version, PROTOCOL_VERSION),
            agent_info=Implementation(name="hermes-agent", title="Hermes", version=__version__),
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(
                    image=True, embedded_context=True, audio=False
                ),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(),
                    fork=SessionForkCapabilities(),
                    resume=SessionResumeCapabilities(),
                    close=SessionCloseCapabilities(),
                ),
                mcp_capabilities=McpCapabilities(http=False, sse=False),
            ),
            auth_methods=[READY],
        )

    async def authenticate(self, method_id: str, **_: Any) -> AuthenticateResponse:
        if method_id != READY.id:
            raise RequestError.invalid_params({"methodId": method_id})
        try:
            await self._app.models.choose()
        except HermesError as error:
            raise RequestError.auth_required({"reason": str(error)}) from error
        return AuthenticateResponse()

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        if not Path(cwd).is_absolute():
            raise RequestError.invalid_params({"cwd": "must be an absolute path"})
        seat = await self._sit(self._opening(cwd))
        self._soon(seat)
        return NewSessionResponse(
            session_id=seat.session.id,
            modes=modes(seat.policy.mode),
            config_options=[self._models(seat)],
        )

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> LoadSessionResponse:
        seat = await self._seated(session_id, cwd)
        await seat.tell_again()
        self._soon(seat)
        return LoadSessionResponse(
            modes=modes(seat.policy.mode), config_options=[self._models(seat)]
        )

    async def resume_session(self, session_id: str, cwd: str, **_: Any) -> ResumeSessionResponse:
        seat = await self._seated(session_id, cwd)
        self._soon(seat)
        return ResumeSessionResponse(
            modes=modes(seat.policy.mode), config_options=[self._models(seat)]
        )

    async def fork_session(self, session_id: str, cwd: str, **_: Any) -> ForkSessionResponse:
        try:
            forked = await self._app.library.fork(await self._app.library.find(session_id))
        except HermesError as error:
            raise _refusal(error) from error
        seat = await self._seated(forked, cwd)
        self._soon(seat)
        return ForkSessionResponse(
            session_id=forked, modes=modes(seat.policy.mode), config_options=[self._models(seat)]
        )

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_: Any
    ) -> ListSessionsResponse:
        start = int(cursor) if cursor and cursor.isdecimal() else 0
        rows = await self._app.library.recent(limit=start + PAGE + 1)
        rows = tuple(row for row in rows if cwd is None or row.cwd == cwd)
        page = rows[start : start + PAGE]
        return ListSessionsResponse(
            sessions=[
                SessionInfo(
                    session_id=row.id,
                    cwd=row.cwd,
                    title=row.title or row.preview[:80] or None,
                    updated_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(row.last_at)),
                )
                for row in page
            ],
            next_cursor=str(start + PAGE) if len(rows) > start + PAGE else None,
        )

    async def close_session(self, session_id: str, **_: Any) -> CloseSessionResponse:
        if seat := self._seats.pop(session_id, None):
            await self._app.leave(seat.session)
        return CloseSessionResponse()

    async def prompt(self, session_id: str, prompt: list[ContentBlock], **_: Any) -> PromptResponse:
        try:
            return await self._seat(session_id).prompt(prompt)
        except HermesError as error:
            raise _refusal(error) from error

    async def cancel(self, session_id: str, **_: Any) -> None:
        if session_id in self._seats:
            await self._seats[session_id].cancel()

    async def set_session_mode(
        self, session_id: str, mode_id: str, **_: Any
    ) -> SetSessionModeResponse:
        if mode_id not in NAMES:
            raise RequestError.invalid_params({"modeId": f"one of {', '.join(NAMES)}"})
        self._seat(session_id).policy.mode = mode_id
        return SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> SetSessionConfigOptionResponse:
        seat = self._seat(session_id)
        if config_id != MODEL or not isinstance(value, str):
            raise RequestError.invalid_params({"configId": config_id})
        try:
            found = await Shelf(self._app.models).find(
                value, current=seat.session.transcript.provider
            )
            card = found.card
            await seat.session.send(SwitchModel(model=card.model, provider=card.provider))
        except HermesError as error:
            raise _refusal(error) from error
        return SetSessionConfigOptionResponse(config_options=[self._models(seat)])

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        raise RequestError.method_not_found(method)

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        return

    def _opening(self, cwd: str, resume: str = "") -> Opening:
        return Opening(source=SOURCE, platform=SOURCE, attended=True, cwd=cwd, resume=resume)

    async def _seated(self, session_id: str, cwd: str) -> Seat:
        if session_id in self._seats:
            return self._seats[session_id]
        return await self._sit(self._opening(cwd, session_id))

    async def _sit(self, opening: Opening) -> Seat:
        assert self._client is not None
        client, policies = self._client, []

        def arrange(session_id: str, parts: Parts) -> None:
            policies.append(Mannered(parts.policy))
            parts.policy = policies[0]
            files = EditorFiles(parts.workspace, client, session_id, self._able)
            parts.workspace = cast(Workspace, files)

        try:
            session = await self._app.open(opening, arrange=arrange)
        except HermesError as error:
            raise _refusal(error) from error
        seat = Seat(self._app, session, client, policies[0])
        self._seats[session.id] = seat
        self._app.attend(session)
        return seat

    def _seat(self, session_id: str) -> Seat:
        if session_id not in self._seats:
            raise RequestError.resource_not_found(session_id)
        return self._seats[session_id]

    def _soon(self, seat: Seat) -> None:
        """After the answer, which editors wait for before they know the session."""
        asyncio.get_running_loop().call_later(0.05, lambda: asyncio.ensure_future(seat.greet()))

    def _models(self, seat: Seat) -> SessionConfigOptionSelect:
        transcript = seat.session.transcript
        current = f"{transcript.provider}:{transcript.model}"
        shelf = Shelf(self._app.models)
        names = [current]
        for row in shelf.providers():
            if row.usable:
                names += [f"{row.name}:{model}" for model in shelf.known(row.name)]
        return SessionConfigOptionSelect(
            type="select",
            id=MODEL,
            name="Model",
            category="model",
            current_value=current,
            options=[
                SessionConfigSelectOption(value=name, name=name) for name in dict.fromkeys(names)
            ],
        )


def _refusal(error: HermesError) -> RequestError:
    match error:
        case NotFound():
            return RequestError(-32002, str(error))
        case UsageError():
            return RequestError(-32602, str(error))
        case _:
            return RequestError(-32603, str(error))
