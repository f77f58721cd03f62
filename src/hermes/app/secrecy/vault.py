"""The secrets of a home for one run: read from `.env` and the process, kept in `.env`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.config.child_environment import is_providers
from hermes.config.env_edit import set_variable
from hermes.config.secrets import read_env_file
from hermes.core.secret_store import SecretStore

if TYPE_CHECKING:
    from hermes.app.build import App


class HomeVault:
    def __init__(self, app: App) -> None:
        self._app = app
        self._secrets = app.config.secrets

    def get(self, name: str) -> str:
        """Also one that was given to `.env` by another process since."""
        known = self._secrets.get(name)
        if not known and (given := read_env_file(self._app.home).variables.get(name, "")):
            self._app.secrecy.know(given)
            self._secrets.add(name, given)
        return known or self._secrets.get(name)

    def names(self) -> tuple[str, ...]:
        return self._secrets.names()

    def keep(self, name: str, value: str) -> None:
        # Known before it is anywhere: from here on it is masked.
        self._app.secrecy.know(value)
        set_variable(self._app.home, name, value)
        self._secrets.add(name, value)

    def may_pass(self, name: str) -> bool:
        return not is_providers(name)


def store_of(app: App, session_id: str) -> SecretStore:
    """The one of this session: its workspace lends what the store lets pass."""
    if session_id not in app.secret_stores:
        app.secret_stores[session_id] = SecretStore(HomeVault(app), app.ask_secret)
    return app.secret_stores[session_id]
