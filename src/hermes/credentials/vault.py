"""The secrets of a home for one run: read from `.env` and the process, saved to `.env`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.config.child_environment import is_providers
from hermes.config.environment import read_env_file, set_variable

if TYPE_CHECKING:
    from hermes.config.run_context import RunContext


class HomeVault:
    def __init__(self, run: RunContext) -> None:
        self._run = run
        self._secrets = run.config.secrets

    def get(self, name: str) -> str:
        """Includes secrets that another process added to `.env` since the start."""
        value = self._secrets.get(name)
        if not value and (saved := read_env_file(self._run.home).variables.get(name, "")):
            self._run.redactor.know(saved)
            self._secrets.add(name, saved)
        return value or self._secrets.get(name)

    def names(self) -> tuple[str, ...]:
        return self._secrets.names()

    def keep(self, name: str, value: str) -> None:
        # Registered before it is stored, so that it is masked from the start.
        self._run.redactor.know(value)
        set_variable(self._run.home, name, value)
        self._secrets.add(name, value)

    def may_pass(self, name: str) -> bool:
        return not is_providers(name)
