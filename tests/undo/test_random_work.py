"""Whatever an agent and a person do in turns: going back to any turn gives what a simple model
says, and going forward again gives back what was there."""

from __future__ import annotations

import asyncio
import random
import shlex
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.undo.conftest import Agent, Picture

FOLDERS = ("d0", "d1", "d0/d2", "d1/d3")
FILES = ("f0", "f1", "d0/f2", "d0/f3", "d1/f4", "d0/d2/f5", "d1/d3/f6")
OWN = ("u0", "d0/u1", "d1/u2", "d0/d2/u3")
Moment = tuple[str, Picture, Picture]


def agent_script(chance: random.Random) -> str:
    """One thing that an agent may run; whether it works out does not matter."""
    one, two = (shlex.quote(each) for each in chance.sample((*FILES, *FOLDERS), 2))
    text = f"text {chance.randint(0, 5)}"
    return chance.choice(
        (
            f"rm -rf {one}",
            f"mv {one} {two}",
            f"echo {text} > {one}",
            f"echo {text} >> {one}",
            f"mkdir -p {one}",
            f"rm -rf {one}; mkdir {one}; echo {text} > {one}/inner",
            f"ln -sfn {two} {one}",
            f"chmod {chance.choice(('600', '644', '755', '700'))} {one}",
            f"cp -r {one} {two}",
            f"sed -i s/text/word/ {one}",
            f"truncate -s 3 {one}",
            f"mv {one} t; mv {two} {one}; mv t {two}",
            f"python3 -c 'import shutil; shutil.rmtree(\"{one}\", ignore_errors=True)'",
            f'python3 -c \'open("{one}", "w").write("{text}")\'',
            "rm -rf * ; mkdir d0 d1",
        )
    )


async def agent_works(agent: Agent, chance: random.Random) -> None:
    if chance.random() < 0.3:
        name = chance.choice(FILES)
        path = agent.root / name
        if chance.random() < 0.3 and path.is_file() and not path.is_symlink():
            await agent.delete(name)
        elif not path.is_dir() and all(_is_plain(parent) for parent in path.parents):
            await agent.write(name, f"written {chance.randint(0, 5)}\n")
        return
    await agent.run(agent_script(chance))


def _is_plain(folder: Path) -> bool:
    return not folder.is_symlink() and (folder.is_dir() or not folder.exists())


def person_works(agent: Agent, chance: random.Random) -> None:
    """Edits, makes and removes files in folders that are there."""
    name = chance.choice((*FILES, *OWN))
    path = agent.root / name
    if not path.parent.is_dir() or path.is_symlink() or path.is_dir():
        return
    if any(parent.is_symlink() for parent in path.parents):
        return
    if path.exists() and chance.random() < 0.2:
        path.unlink()
    elif path.exists() or name in OWN:
        path.write_text(f"mine {chance.randint(0, 9)}\n")


def expected(moments: list[Moment], now: Picture, first: int) -> Picture:
    """From the present back to moment `first`, path by path, until the person had a hand in it."""
    found = dict(now)
    for path in {path for _, before, after in moments[first:] for path in (*before, *after)}:
        state = now.get(path)
        for who, before, after in reversed(moments[first:]):
            if before.get(path) == after.get(path):
                continue
            if who == "person":
                break
            state = before.get(path)
        if state is None:
            found.pop(path, None)
        else:
            found[path] = state
    return supported(found, now)


def supported(found: Picture, now: Picture) -> Picture:
    """A folder that holds something stays a folder."""
    for path in sorted(found, reverse=True):
        for parent in list(Path(path).parents)[:-1]:
            name = str(parent)
            if found.get(name, ("",))[0] != "folder":
                found[name] = now[name]
    return found


async def one_story(seed: int, folder: Path) -> None:
    chance = random.Random(seed)
    agent = Agent(folder)
    agent.fill({name: f"{name} at first\n" for name in FILES})
    moments: list[Moment] = []
    starts: list[int] = []
    for turn in range(chance.randint(2, 5)):
        agent.turn = f"turn_{turn}"
        starts.append(len(moments))
        for _ in range(chance.randint(1, 3)):
            before = agent.picture(times=False)
            who = "agent" if chance.random() < 0.65 else "person"
            if who == "agent":
                await agent_works(agent, chance)
            else:
                person_works(agent, chance)
            moments.append((who, before, agent.picture(times=False)))
    now = agent.picture(times=False)
    listed = {each.turn for each in agent.checkpoints()}
    turn = chance.randrange(len(starts))
    later = [f"turn_{n}" for n in range(turn, len(starts)) if f"turn_{n}" in listed]
    if later:
        agent.undo(turn=later[0])
        assert plain(agent.picture(times=False)) == plain(expected(moments, now, starts[turn]))
        if agent.checkpoints()[0].kind == "undo":
            agent.undo(number=1)
            assert plain(agent.picture(times=False)) == plain(now)
    await agent.close()


def plain(picture: Picture) -> Picture:
    """Without which names share a file: copies of a story need not share."""
    return {name: seen[:5] for name, seen in picture.items()}


@given(seed=st.integers(0, 10**9))
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_going_back_to_any_turn_is_what_a_simple_model_says(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(one_story(seed, Path(folder)))


@pytest.mark.slow
@given(seed=st.integers(0, 10**9))
@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
def test_going_back_to_any_turn_many_times(seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(one_story(seed, Path(folder)))
