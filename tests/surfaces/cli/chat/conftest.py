"""The real program in a real terminal, with a model that does what a script says."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from hermes.surfaces.cli.chat.prompt import EARLY_SECONDS
from hermes.testing.request import Request
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import Step
from tests.surfaces.cli.chat.held_clock import HeldClock
from tests.surfaces.cli.chat.pane import TMUX, Pane

NewPane = Callable[..., Pane]
# A script has no step for a title.
UNTITLED = "auxiliary: {title_generation: {provider: none}}\n"


def make_home(home: Path, settings: str = "") -> None:
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "config.yaml").write_text(UNTITLED + settings)
    (home / "config.yaml").chmod(0o600)


def make_project(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "notes.txt").write_text("remember the milk\n")


def env_of(home: Path, server: ScriptedServer | None) -> dict[str, str]:
    # A person of its own: shells read what lies in the real person's folder.
    env = {"HERMES_HOME": str(home), "HOME": str(home.parent)}
    if server is None:
        return env | {"HERMES_INFERENCE_PROVIDER": "offline"}
    env |= {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "test-key"}
    return env | {"HERMES_MODEL": "test"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    make_project(folder)
    return folder


@pytest.fixture
def new_pane(tmp_path: Path, project: Path) -> Iterator[NewPane]:
    """Makes terminals that share a home. Given steps, a scripted model answers (`-m test` names
    it), with `clock` if wanted; without any, the offline assistant does. Settings go into
    config.yaml."""
    if TMUX is None:
        pytest.skip("tmux is not installed")
    home = tmp_path / "home"
    with ExitStack() as stack:

        def make(
            *steps: Step,
            settings: str = "",
            columns: int = 100,
            rows: int = 30,
            clock: HeldClock | None = None,
        ) -> Pane:
            server = None
            if steps:
                server = stack.enter_context(ScriptedServer.in_thread(steps, clock=clock))
            if steps or settings:
                make_home(home, settings)
            pane = Pane(project, env_of(home, server), columns=columns, rows=rows)
            stack.callback(pane.close)
            return pane

        yield make


class Talk:
    """A chat that goes on from test to test, in a new session each time: starting the program takes
    longer than most of what is shown here. For tests that change no setting and leave it open."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        self.clock = HeldClock()
        self._home = folder / "home"
        self._steps: list[Step] = []
        # What the model was asked, newest last.
        self.requests: list[Request] = []
        self._stack = ExitStack()
        self._pane: Pane | None = None
        make_home(self._home)

    def __call__(self, *steps: Step) -> Pane:
        """The terminal with an empty screen and a session in which nothing was said."""
        self.clock.release()
        if self._pane is None or not _is_idle(self._pane.screen()):
            return self._begin(list(steps))
        self._steps[:] = steps
        for path in self.project.iterdir():
            path.unlink()
        (self.project / "notes.txt").write_text("remember the milk\n")
        if not _is_empty(self._pane.screen()):
            self._pane.keys("C-c")
        self._pane.say("/clear")
        self._pane.wait(lambda text: re.fullmatch(r"\s*⚕ test │ 0/.*\n❯\s*", text) is not None)
        self._pane.forget()
        return self._pane

    def close(self) -> None:
        self._stack.close()

    def _begin(self, steps: list[Step]) -> Pane:
        """With a model of its own: a program that is just ending may ask the old one once more."""
        self.close()
        self._steps = steps

        def next_step(request: Request) -> Step:
            self.requests.append(request)
            return steps.pop(0)

        make_project(self.project)
        server = self._stack.enter_context(ScriptedServer.in_thread(next_step, clock=self.clock))
        self._pane = Pane(self.project, env_of(self._home, server))
        self._stack.callback(self._pane.close)
        self._pane.hermes()
        # A key after this pause was not pressed before the prompt appeared; nor is any later one.
        time.sleep(2 * EARLY_SECONDS)
        self._pane.type("x")
        self._pane.wait_for("❯ x")
        self._pane.keys("BSpace")
        self._pane.wait(_is_empty)
        return self._pane


def _is_empty(screen: str) -> bool:
    return screen.rstrip().endswith("❯")


def _is_idle(screen: str) -> bool:
    return screen.rstrip().rpartition("\n")[2].startswith("❯")


@pytest.fixture(scope="session")
def chat(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Talk]:
    if TMUX is None:
        pytest.skip("tmux is not installed")
    talk = Talk(tmp_path_factory.mktemp("talk"))
    yield talk
    talk.close()
