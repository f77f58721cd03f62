"""What other rooms add to the system text of a new session: skills, memory, the user's profile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.app.opening import Opening
from hermes.context.files import Scan, unscanned
from hermes.context.system import Slots

if TYPE_CHECKING:
    from hermes.app.build import App


def slots_of(app: App, opening: Opening) -> Slots:
    """As things are now; they are frozen with the session. A room that has something to say adds
    its line here. Sizes are capped where the layers are made (`context.system.SLOT_CHARS`)."""
    return Slots()


def scan_of(app: App) -> Scan:
    """What files pass before they are shown to a model."""
    return unscanned
