"""The real program in a real terminal, with a model that does what a script says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step
from tests.surfaces.cli.chat.pane import TMUX, Pane

NewPane = Callable[..., Pane]


@pytest.fixture(scope="session")
def bytecode(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiled modules, so that every start after the first is a quick one."""
    return tmp_path_factory.mktemp("bytecode")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "notes.txt").write_text("remember the milk\n")
    return folder


@pytest.fixture
def new_pane(tmp_path: Path, project: Path, bytecode: Path) -> Iterator[NewPane]:
    """Makes terminals that share a home. Given steps, a scripted model answers (`-m test` names
    it); without any, the offline assistant does. Settings go into config.yaml."""
    if TMUX is None:
        pytest.skip("tmux is not installed")
    home = tmp_path / "home"
    with ExitStack() as stack:

        def make(*steps: Step, settings: str = "", columns: int = 100, rows: int = 30) -> Pane:
            # A person of its own: shells read what lies in the real person's folder.
            env = {"HERMES_HOME": str(home), "HOME": str(tmp_path)}
            env |= {"PYTHONPYCACHEPREFIX": str(bytecode)}
            if steps:
                server = stack.enter_context(ScriptedServer.in_thread(steps))
                env |= {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "test-key"}
                env |= {"HERMES_MODEL": "test"}
            else:
                env |= {"HERMES_INFERENCE_PROVIDER": "offline"}
            if steps or settings:
                # A script has no step for a title.
                untitled = "auxiliary: {title_generation: {provider: none}}\n"
                home.mkdir(mode=0o700, exist_ok=True)
                (home / "config.yaml").write_text(untitled + settings)
                (home / "config.yaml").chmod(0o600)
            pane = Pane(project, env, columns=columns, rows=rows)
            stack.callback(pane.close)
            return pane

        yield make
