"""The facts of one run that many packages need: settings, home, environment, clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from hermes.config.load import Config
    from hermes.core.world import World


class TextRedactor(Protocol):
    """Removes secrets from text."""

    def text(self, text: str, channel: Literal["model", "log"] = "model") -> str: ...

    # For logs and exports.
    def line(self, text: str) -> str: ...

    # Masks configured values only.
    def redact_known(self, text: str) -> str: ...

    # Adds a secret.
    def know(self, *values: str) -> None: ...

    def values(self) -> Iterable[str]: ...

    # Messages with secrets, as a person typed them and as the journal holds them.
    typed: dict[str, str]

    # Returns start, end and replacement of each secret.
    def marks(self, text: str) -> list[tuple[int, int, str]]: ...


class RunContext:
    """The facts of one process that many packages need."""

    def __init__(
        self, config: Config, *, env: Mapping[str, str], world: World, redactor: TextRedactor
    ) -> None:
        self.config = config
        self.settings = config.settings
        self.home = config.home
        self.env = env
        self.world = world
        self.redactor = redactor
        # The user's home folder, and the resolved home of Hermes.
        self.user_home = str(Path.home())
        self.state_dir = str(config.home.root.resolve())
        # Surfaces show these once at the start and at the end.
        self.notices = [redactor.redact_known(finding.text) for finding in config.diagnostics]
        self.exit_notices: list[str] = []
        # Set during a replay: nothing may be contacted.
        self.offline = False
