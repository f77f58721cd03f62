"""The ACP agent: implements the protocol methods that editors call."""

from __future__ import annotations

import asyncio
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from acp import PROTOCOL_VERSION, RequestError
from acp.helpers import ContentBlock
from acp.interfaces import Client
from acp.schema import (
    AgentCapabilities,
    AuthenticateResponse,
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
    SessionForkCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SessionResumeCapabilities,
    SetSessionConfigOptionResponse,
    SetSessionModeResponse,
)
from pydantic import BaseModel

from hermes.app.app import App
from hermes.app.session_environment import add_layer
from hermes.codec.values import JsonObject, replace
from hermes.core.commands import SwitchModel
from hermes.core.errors import HermesError, NotFound, SessionBusy, UsageError
from hermes.core.ports import Workspace
from hermes.core.session_deps import SessionDeps
from hermes.core.session_request import SessionRequest
from hermes.hosting.session_pool import SessionPool, SessionSlot
from hermes.journal.listing import SessionFilter
from hermes.mcp.run_servers import SessionServers
from hermes.models.browser import ModelBrowser
from hermes.surfaces.acp.editor_session import EditorSession
from hermes.surfaces.acp.editor_workspace import EditorFiles
from hermes.surfaces.acp.modes import MODE_NAMES, ModePolicy, load_mode, mode_state, save_mode
from hermes.surfaces.acp.session_options import (
    CONFIGURED_AUTH,
    MODEL,
    SETUP_AUTH,
    EditorServers,
    auth_methods,
    editor_mcp_servers,
    model_options,
    model_state,
)
from hermes.surfaces.acp.transport import SET_MODEL
from hermes.version import __version__

SOURCE = "acp"
PAGE = 50
MCP = find_spec("mcp") is not None
# Sources of sessions without a person.
WORKERS = ("subagent", "cron")
SKIP = "HERMES_ACP_SKIP_CONFIGURED_MCP"


class EditorAgent:
    """Implements `acp.interfaces.Agent`. Its sessions are those of the home, so `hermes sessions`
    and the chat show them too."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._client: Client | None = None
        self._capabilities = ClientCapabilities()
        self._pool = SessionPool(app, with_tasks=True)
        self._sessions: dict[str, EditorSession] = {}
        app.mcp.enabled = app.context.env.get(SKIP, "") not in ("1", "true")

    def on_connect(self, conn: Client) -> None:
        self._client = conn

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: ClientCapabilities | None = None,
        client_info: Implementation | None = None,
        **_: Any,
    ) -> InitializeResponse:
        self._capabilities = client_capabilities or ClientCapabilities()
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
                mcp_capabilities=McpCapabilities(http=MCP, sse=MCP),
            ),
            auth_methods=auth_methods(self._capabilities),
        )

    async def authenticate(self, method_id: str, **_: Any) -> AuthenticateResponse:
        if method_id not in (CONFIGURED_AUTH.id, SETUP_AUTH.id):
            raise RequestError.invalid_params({"methodId": method_id})
        try:
            await self._app.models.choose()
        except HermesError as error:
            raise RequestError.auth_required({"reason": str(error)}) from error
        return AuthenticateResponse()

    async def new_session(
        self, cwd: str, mcp_servers: EditorServers | None = None, **_: Any
    ) -> JsonObject:
        if not Path(cwd).is_absolute():
            raise RequestError.invalid_params({"cwd": "must be an absolute path"})
        editor = await self._open_session(self._opening(cwd), mcp_servers)
        return self._with_models(
            NewSessionResponse(session_id=editor.id, **self._greet(editor)), editor
        )

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: EditorServers | None = None, **_: Any
    ) -> JsonObject:
        editor = await self._open_or_fork(session_id, cwd, mcp_servers)
        await editor.replay_history()
        return self._with_models(LoadSessionResponse(**self._greet(editor)), editor)

    async def resume_session(
        self, session_id: str, cwd: str, mcp_servers: EditorServers | None = None, **_: Any
    ) -> JsonObject:
        editor = await self._open_or_fork(session_id, cwd, mcp_servers)
        return self._with_models(ResumeSessionResponse(**self._greet(editor)), editor)

    async def fork_session(
        self, session_id: str, cwd: str, mcp_servers: EditorServers | None = None, **_: Any
    ) -> JsonObject:
        try:
            source = await self._app.archive.find(session_id)
            forked = await self._app.archive.fork(source)
        except HermesError as error:
            raise _request_error(error) from error
        await save_mode(
            self._app.context.home, forked, await load_mode(self._app.context.home, source)
        )
        editor = await self._open_or_fork(forked, cwd, mcp_servers)
        return self._with_models(
            ForkSessionResponse(session_id=forked, **self._greet(editor)), editor
        )

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_: Any
    ) -> ListSessionsResponse:
        if cursor and not (cursor.isascii() and cursor.isdecimal() and len(cursor) <= 9):
            raise RequestError.invalid_params({"cursor": "is not a valid cursor"})
        start = int(cursor) if cursor else 0
        # The filter matches parts of paths, so other folders must be excluded.
        wanted = SessionFilter(cwd=cwd, exclude_sources=WORKERS)
        rows = await self._app.archive.recent(wanted, limit=None)
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
        if editor := self._sessions.pop(session_id, None):
            await editor.close()
        return CloseSessionResponse()

    async def close(self) -> None:
        """Close all sessions after the connection has ended."""
        for session_id in tuple(self._sessions):
            await self.close_session(session_id)

    async def prompt(self, session_id: str, prompt: list[ContentBlock], **_: Any) -> PromptResponse:
        try:
            return await self._session(session_id).prompt(prompt)
        except HermesError as error:
            raise _request_error(error) from error

    async def cancel(self, session_id: str, **_: Any) -> None:
        if session_id in self._sessions:
            await self._sessions[session_id].cancel()

    async def set_session_mode(
        self, session_id: str, mode_id: str, **_: Any
    ) -> SetSessionModeResponse:
        if mode_id not in MODE_NAMES:
            raise RequestError.invalid_params({"modeId": f"one of {', '.join(MODE_NAMES)}"})
        editor = self._session(session_id)
        editor.policy.mode = mode_id
        await save_mode(self._app.context.home, editor.session.id, mode_id)
        await editor.send_mode()
        return SetSessionModeResponse()

    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> SetSessionConfigOptionResponse:
        editor = self._session(session_id)
        if config_id != MODEL or not isinstance(value, str):
            raise RequestError.invalid_params({"configId": config_id})
        await self._switch_model(editor, value)
        options = model_options(self._app.models, editor.session)
        return SetSessionConfigOptionResponse(config_options=[options])

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method != SET_MODEL:
            raise RequestError.method_not_found(method)
        model = params.get("modelId")
        if not isinstance(model, str) or not model:
            raise RequestError.invalid_params({"modelId": "must be the name of a model"})
        await self._switch_model(self._session(str(params.get("sessionId"))), model)
        return {}

    async def _switch_model(self, editor: EditorSession, name: str) -> None:
        browser, current = ModelBrowser(self._app.models), editor.session.transcript.provider
        try:
            card = (await browser.find(name, current=current)).card
            await editor.session.send(SwitchModel(model=card.model, provider=card.provider))
        except HermesError as error:
            raise _request_error(error) from error

    def _with_models(self, response: BaseModel, editor: EditorSession) -> JsonObject:
        """The response with the models, for editors that switch them by `session/set_model`."""
        fields = response.model_dump(
            mode="json", by_alias=True, exclude_none=True, exclude_unset=True
        )
        return fields | {"models": model_state(self._app.models, editor.session)}

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        return

    def _opening(self, cwd: str, resume: str = "") -> SessionRequest:
        return SessionRequest(source=SOURCE, platform=SOURCE, attended=True, cwd=cwd, resume=resume)

    async def _open_or_fork(
        self, session_id: str, cwd: str, mcp_servers: EditorServers | None
    ) -> EditorSession:
        """Open a session, or a fork of it while another process has it open."""
        if session_id in self._sessions:
            return self._sessions[session_id]
        try:
            return await self._open_session(self._opening(cwd, session_id), mcp_servers)
        except SessionBusy:
            copy = await self._app.archive.fork(await self._app.archive.find(session_id))
            opening = self._opening(cwd, copy)
            editor = await self._open_session(opening, mcp_servers, known_as=session_id)
            editor.notices.append(
                f"This session is open in another process; you continue in a copy, {copy}."
            )
            return editor

    async def _open_session(
        self, opening: SessionRequest, mcp_servers: EditorServers | None, *, known_as: str = ""
    ) -> EditorSession:
        """Open a session with the MCP servers of the editor; raise SessionBusy. `known_as` is the
        id for the editor if it differs."""
        session_id = opening.resume or self._app.context.world.new_session_id()
        if not opening.resume:
            opening = replace(opening, session_id=session_id)
        slot, opened = self._pool.acquire(session_id), None
        try:
            async with slot.open_lock:
                # A concurrent request of the editor may have opened it.
                if (known := self._sessions.get(known_as or session_id)) is not None:
                    return known
                opened = await self._open_slot(slot, opening, mcp_servers, known_as)
                return opened
        except SessionBusy:
            raise
        except HermesError as error:
            raise _request_error(error) from error
        finally:
            if opened is None:
                await self._pool.release(slot)

    async def _open_slot(
        self,
        slot: SessionSlot,
        opening: SessionRequest,
        mcp_servers: EditorServers | None,
        known_as: str,
    ) -> EditorSession:
        assert self._client is not None
        client, policies = self._client, []
        wanted = editor_mcp_servers(mcp_servers or ())
        servers = SessionServers(self._app.context, wanted, opening.cwd) if wanted else None
        faults = await servers.connect() if servers else ()

        def adapt(session_id: str, deps: SessionDeps) -> None:
            session_id = known_as or session_id
            policies.append(ModePolicy(deps.policy))
            deps.policy = policies[0]

            def use_editor(inner: Workspace) -> Workspace:
                able, settings = self._capabilities, self._app.context.settings.acp
                runs_commands = settings.use_client_terminal and bool(able.terminal)
                return EditorFiles(inner, client, session_id, able, runs_commands=runs_commands)

            deps.workspace = add_layer(deps.workspace, use_editor)
            if servers is not None:
                servers.join(deps)

        try:
            session = await self._pool.open(
                slot, replace(opening, brings_tools=servers is not None), adapt=adapt
            )
        except BaseException:
            if servers is not None:
                await servers.close()
            raise

        async def close() -> None:
            try:
                await self._pool.release(slot)
            finally:
                if servers is not None:
                    await servers.close()

        editor = EditorSession(self._app, session, client, policies[0], close, known_as=known_as)
        editor.policy.mode = await load_mode(self._app.context.home, session.id)
        editor.notices += faults
        self._sessions[editor.id] = editor
        return editor

    def _session(self, session_id: str) -> EditorSession:
        if session_id not in self._sessions:
            raise RequestError.resource_not_found(session_id)
        return self._sessions[session_id]

    def _greet(self, editor: EditorSession) -> dict[str, Any]:
        """The fields of a response that opens a session. Its commands and notices follow after the
        response, because editors know the session only then."""
        asyncio.get_running_loop().call_later(
            0.05, lambda: asyncio.ensure_future(editor.announce())
        )
        modes = mode_state(editor.policy.mode)
        return {"modes": modes, "config_options": [model_options(self._app.models, editor.session)]}


def _request_error(error: HermesError) -> RequestError:
    match error:
        case NotFound():
            return RequestError(-32002, str(error))
        case UsageError():
            return RequestError(-32602, str(error))
        case _:
            return RequestError(-32603, str(error))
