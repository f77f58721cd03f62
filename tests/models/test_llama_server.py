"""A real llama.cpp server on this machine: found out about, and asked, as any user would."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.messages import user_says
from hermes.core.prompt import Prompt, Reply
from hermes.core.world import World
from hermes.models.models import Models
from tests.models.ledger import Ledger

WEIGHTS = Path(__file__).parents[2] / ".venv" / "weights" / "smollm2.gguf"
WINDOW = 2_048
SERVER = """
import sys, xllamacpp
params = xllamacpp.CommonParams()
params.model.path, params.n_ctx, params.port = sys.argv[1], int(sys.argv[2]), 0
server = xllamacpp.Server(params)
print("listening", server.listening_address, flush=True)
sys.stdin.read()
"""


@pytest.fixture
async def address() -> AsyncIterator[str]:
    if not (WEIGHTS.exists() and find_spec("xllamacpp")):
        pytest.skip("needs xllamacpp and the small weights")
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SERVER, str(WEIGHTS), str(WINDOW), stdin=pipe, stdout=pipe, stderr=-3
    )
    assert process.stdout is not None
    async with asyncio.timeout(60):
        async for line in process.stdout:
            if line.startswith(b"listening"):
                break
    yield line.split()[1].decode()
    process.kill()
    await process.wait()


@pytest.mark.slow
async def test_its_window_is_what_it_runs_with_and_it_answers(address: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(f"providers: {{box: {{base_url: '{address}/v1'}}}}\n")
    models = Models(load(Home(tmp_path), env={}), World(), env={})
    try:
        choice = await models.choose_explicit("box", "")
        assert models.window(choice.model, "box") == 32_768
        await models.learn_profile(choice.model, "box")
        assert models.window(choice.model, "box") == WINDOW
        ledger = Ledger()
        provider, _ = models.connect(choice.model, "box", ledger)
        prompt = Prompt(system="Be short.", messages=(user_says("Say hello."),), max_tokens=16)
        parts = [part async for part in provider.reply(prompt)]
    finally:
        await models.close()
    assert isinstance(parts[-1], Reply)
    assert parts[-1].message.text and parts[-1].usage.prompt > 5
    assert not parts[-1].usage.estimated
