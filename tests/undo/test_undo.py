"""Taking back what an agent did to files, turn by turn."""

from __future__ import annotations

from tests.undo.conftest import Agent

FILES = {"a.txt": "alpha\n", "src/main.c": "int main(){}\n", "src/deep/x/y.txt": "y\n", "b": "b"}


async def test_a_written_file_gets_its_old_content_back(agent: Agent) -> None:
    agent.fill(FILES)
    before = agent.picture()
    await agent.write("a.txt", "other")
    await agent.write("new/sub/n.txt", "n")
    done = agent.undo()
    assert agent.picture() == before
    assert len(done.restored) == 1
    assert sorted(done.deleted) == sorted(
        str(agent.root / each) for each in ("new", "new/sub", "new/sub/n.txt")
    )


async def test_a_deleted_tree_comes_back(agent: Agent) -> None:
    agent.fill(FILES)
    before = agent.picture()
    await agent.did("rm -rf src a.txt")
    assert not (agent.root / "src").exists()
    agent.undo()
    assert agent.picture() == before


async def test_an_undo_can_be_undone(agent: Agent) -> None:
    agent.fill(FILES)
    before = agent.picture()
    await agent.did("rm -rf src; echo more >> a.txt; mkdir empty; ln -s a.txt link")
    after = agent.picture()
    agent.undo()
    assert agent.picture() == before
    agent.undo(number=1)
    assert agent.picture() == after
    agent.undo()
    assert agent.picture() == before


async def test_undo_again_goes_one_turn_further_back(agent: Agent) -> None:
    agent.fill(FILES)
    pictures = []
    for turn in range(4):
        pictures.append(agent.picture())
        agent.turn = f"turn_{turn}"
        await agent.did(f"echo {turn} >> a.txt; echo {turn} > n{turn}")
    for picture in reversed(pictures):
        agent.undo()
        assert agent.picture() == picture


async def test_undo_to_a_turn_takes_back_all_from_there(agent: Agent) -> None:
    agent.fill(FILES)
    pictures = []
    for turn in range(4):
        pictures.append(agent.picture())
        agent.turn = f"turn_{turn}"
        await agent.did(f"echo {turn} >> a.txt; rm -rf src; mkdir -p src/{turn}")
    agent.undo(turn="turn_2")
    assert agent.picture() == pictures[2]
    agent.undo(turn="turn_0")
    assert agent.picture() == pictures[0]


async def test_a_later_edit_of_the_person_stays(agent: Agent) -> None:
    agent.fill(FILES)
    await agent.did("echo agent >> a.txt; echo agent >> b")
    agent.fill({"a.txt": "mine\n"})
    done = agent.undo()
    assert (agent.root / "a.txt").read_text() == "mine\n"
    assert (agent.root / "b").read_text() == "b"
    assert [kept.path for kept in done.kept] == [str(agent.root / "a.txt")]


async def test_an_edit_between_two_turns_stays(agent: Agent) -> None:
    agent.fill(FILES)
    await agent.did("echo one >> a.txt")
    agent.fill({"a.txt": "mine\n"})
    agent.turn = "turn_2"
    await agent.did("echo two >> a.txt")
    done = agent.undo(turn="turn_1")
    assert (agent.root / "a.txt").read_text() == "mine\n"
    assert [kept.path for kept in done.kept] == [str(agent.root / "a.txt")]


async def test_renames_and_swaps_go_back(agent: Agent) -> None:
    agent.fill(FILES)
    before = agent.picture()
    await agent.did("mv a.txt t && mv b a.txt && mv t b && mv src lib && mv lib/main.c .")
    agent.undo()
    assert agent.picture() == before
