"""What tools need from other rooms, made for one session when a tool first asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.core.events import SessionOpened
from hermes.core.ports import Workspace
from hermes.core.turn import Furnish

if TYPE_CHECKING:
    from hermes.app.build import App


def furnishing(app: App, session_id: str, opened: SessionOpened, workspace: Workspace) -> Furnish:
    """By the module of the kind, so that nothing is loaded that no tool has loaded already."""

    def furnish(kind: type) -> object:
        match kind.__module__:
            case "hermes.recall.tools":
                return _recall(app, session_id, opened)
            case "hermes.skills.tools":
                from hermes.app.skilled import session_skills

                return session_skills(app, session_id, opened, workspace)
            case _:
                return kind()

    return furnish


def _recall(app: App, session_id: str, opened: SessionOpened) -> object:
    from hermes.journal.index.search import SearchIndex
    from hermes.journal.index.source import JournalFile
    from hermes.recall.archive import Archive
    from hermes.recall.tools import Recall

    # Unlike `hermes sessions search`, a turn does not wait until old sessions are all taken in.
    index = SearchIndex(app.home.index, JournalFile(app.home.journal))
    archive = Archive(app.journal, index, session_id=session_id, principal=opened.principal)
    return Recall(archive, app.world.clock)
