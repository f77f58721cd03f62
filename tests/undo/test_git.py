"""Repositories: what the agent did to them goes back, what the person did with them stays whole."""

from __future__ import annotations

from tests.undo.conftest import Agent
from tests.undo.project import git

COMMIT = "git -c user.name=a -c user.email=a@a commit -qam agent"


def start(agent: Agent) -> None:
    agent.fill({"a": "one\n", "b": "b\n"})
    git(agent.root, "init", "-q")
    git(agent.root, "add", ".")
    git(agent.root, "commit", "-qm", "first")
    agent.fill({"a": "not committed\n"})


async def test_keeping_and_going_back_uses_no_git_of_the_person(agent: Agent) -> None:
    start(agent)
    before = agent.picture()
    await agent.did("rm -rf b; echo x > a")
    agent.undo()
    assert agent.picture() == before


async def test_a_commit_of_the_agent_is_gone_without_a_trace(agent: Agent) -> None:
    start(agent)
    before = agent.picture()
    await agent.did(COMMIT)
    agent.undo()
    assert agent.picture() == before
    assert git(agent.root, "log", "--format=%s").split() == ["first"]
    assert git(agent.root, "status", "--porcelain") == " M a\n"


async def test_looking_at_the_repository_is_not_using_it(agent: Agent) -> None:
    start(agent)
    await agent.did("git reset -q --hard")
    git(agent.root, "status")
    done = agent.undo()
    assert (agent.root / "a").read_text() == "not committed\n"
    assert git(agent.root, "status", "--porcelain") == " M a\n"
    assert [kept.path for kept in done.kept if not kept.path.endswith("/index")] == []


async def test_a_commit_of_the_person_on_top_stays_whole(agent: Agent) -> None:
    start(agent)
    await agent.did(f"{COMMIT}; rm b")
    agent.fill({"c": "c\n"})
    git(agent.root, "add", "c")
    git(agent.root, "commit", "-qm", "person")
    done = agent.undo()
    assert git(agent.root, "log", "--format=%s").split() == ["person", "agent", "first"]
    assert "missing" not in git(agent.root, "fsck", "--full")
    assert (agent.root / "b").exists()
    assert f"{agent.root}/.git" in [kept.path for kept in done.kept]


async def test_a_commit_of_the_person_that_uses_folders_of_the_agent_stays_whole(
    agent: Agent,
) -> None:
    start(agent)
    await agent.did(COMMIT)
    agent.fill({"c": "c\n"})
    git(agent.root, "add", "c")
    git(agent.root, "commit", "-qm", "person")
    for folder in (agent.root / ".git/objects").iterdir():
        # As if the last object of the commit had come to lie in it.
        (folder / "new").touch()
        (folder / "new").unlink()
    agent.undo()
    assert git(agent.root, "log", "--format=%s").split() == ["person", "agent", "first"]
