"""What sessions may spend: the caps as the settings have them at that moment."""

from __future__ import annotations

from collections.abc import Mapping

from hermes.codec.json import convert, plain
from hermes.config.load import Config, load
from hermes.config.provider_settings import BudgetSettings
from hermes.core.caps import Caps
from hermes.core.events import SessionOpened
from hermes.core.metering import CHAT, Budgeting

CRON = "cron"
SUB_SESSION = "sub-session"


class SpendingLimits:
    """A person raises a cap while work waits for it, so the file is read again when it changed."""

    def __init__(self, config: Config, env: Mapping[str, str]) -> None:
        self._home = config.home
        self._env = env
        self._stamp = self._file_stamp()
        self._settings = config.settings.budget
        self._caps = _caps(self._settings)

    @property
    def caps(self) -> Caps:
        self._refresh()
        return self._caps

    def of(self, opened: SessionOpened) -> Budgeting:
        self._refresh()
        return Budgeting(
            caps=self._caps, cause=_cause(opened), ask_seconds=self._settings.ask_seconds
        )

    def _refresh(self) -> None:
        stamp = self._file_stamp()
        if stamp != self._stamp:
            self._stamp = stamp
            self._settings = load(self._home, env=self._env).settings.budget
            self._caps = _caps(self._settings)

    def _file_stamp(self) -> tuple[int, int]:
        try:
            found = self._home.config.stat()
        except OSError:
            return (0, 0)
        return (found.st_mtime_ns, found.st_size)


def _caps(settings: BudgetSettings) -> Caps:
    return convert(Caps, plain(settings))


def _cause(opened: SessionOpened) -> str:
    if opened.source == CRON:
        return CRON
    is_part = bool(opened.parent) and not opened.parent_n
    return SUB_SESSION if is_part else CHAT
