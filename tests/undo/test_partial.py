"""An undo that fails in part says so, and the rest can be undone later."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.undo.conftest import Agent

FILES = {"small": "s", "large": "L" * 900_000, "src/large": "M" * 900_000, "src/x": "x"}


@contextmanager
def files_limited_to(size: int) -> Iterator[None]:
    """Larger files cannot be written, as on a disk that is almost full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_what_failed_is_named_and_restored_by_the_next_undo(tmp_path: Path) -> None:
    agent = Agent(tmp_path)
    agent.fill(FILES)
    before = agent.picture()
    await agent.did("rm -rf small large src; echo new > new")
    await agent.close()
    with files_limited_to(600_000):
        done = agent.undo()
    assert done.is_partial
    assert len(done.lost) == 2 and all("could not be restored" in each for each in done.lost)
    assert (agent.root / "small").read_text() == "s"
    assert not [name for name in agent.names() if name.endswith(".undo")]
    again = agent.undo()
    assert (again.is_partial, again.lost) == (False, ())
    assert agent.picture() == before
    await agent.close()
