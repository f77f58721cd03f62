"""The facts of one run that many packages need: settings, home, environment, clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from hermes.config.load import Config
    from hermes.core.world import World


class TextRedactor(Protocol):
    """Removes secrets from text. `line` is for logs and exports, `redact_known` masks configured
    values only, `know` adds a secret, and `marks` returns start, end and replacement of each
    secret."""

    def text(self, text: str, channel: Literal["model", "log"] = "model") -> str: ...
    def line(self, text: str) -> str: ...
    def redact_known(self, text: str) -> str: ...
    def know(self, *values: str) -> None: ...
    def values(self) -> Iterable[str]: ...
    def marks(self, text: str) -> list[tuple[int, int, str]]: ...


class RunContext:
    """Surfaces show `notices` once at the start and `exit_notices` at the end. `user_home` is the
    user's home folder, `state_dir` the resolved Hermes home. `offline` is set during a replay:
    nothing may be contacted."""

    def __init__(
        self, config: Config, *, env: Mapping[str, str], world: World, redactor: TextRedactor
    ) -> None:
        self.config = config
        self.settings = config.settings
        self.home = config.home
        self.env = env
        self.world = world
        self.redactor = redactor
        self.user_home = str(Path.home())
        self.state_dir = str(config.home.root.resolve())
        self.notices = [redactor.redact_known(finding.text) for finding in config.diagnostics]
        self.exit_notices: list[str] = []
        self.offline = False
