"""Opens the session of a chat. It imports everything a session needs, so it is loaded after the
prompt is shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes.app.start import start
from hermes.codec.values import replace
from hermes.skills.library import with_skills
from hermes.surfaces.cli.chat.chat_state import ChatState
from hermes.surfaces.cli.chat.conversation import ChatController
from hermes.surfaces.cli.chat.screen import ChatScreen
from hermes.surfaces.cli.oneshot import session_request


async def run_session(options: Mapping[str, Any], state: ChatState, screen: ChatScreen) -> str:
    """The text to print when the user has quit."""
    before: ChatController | None = None
    request = session_request(options, attended=True)
    while True:
        async with start(options) as app:
            # Fail now rather than when the first message cannot be saved.
            app.run.home.ensure_folder(app.run.home.root)
            if options.get("skills") and before is None:
                request = await with_skills(
                    app.skills(app.cwd(request)), request, options["skills"]
                )
            controller = ChatController(app, state, screen, request, before)
            await controller.run()
            if not controller.reload.is_set():
                return "\n".join((controller.farewell(), *app.run.exit_notices)).strip()
        # The same session if it has begun, else a new one.
        resume = controller.session.id if controller.has_begun else ""
        request, before = replace(request, resume=resume, newest=None), controller
