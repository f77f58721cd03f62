"""Helper processes: started once per file, shared, ended, and spoken of when they fail."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from hermes.core.errors import ConfigError, ProviderError
from hermes.providers.embedded.engines import EnginePool, default_threads
from hermes.providers.embedded.model_file import describe_model_file
from tests.providers.embedded.conftest import Played
from tests.providers.embedded.gguf_files import write_model


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for_end(pid: int) -> None:
    deadline = time.monotonic() + 60
    while lives(pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)


async def test_callers_at_the_same_time_share_one_process(played: Played) -> None:
    weights = played.model([]).weights
    engines = played.engines
    found = await asyncio.gather(*(engines.start(weights, threads=3) for _ in range(5)))
    assert len({engine.pid for engine in found}) == 1
    assert await engines.start(weights) is found[0]
    assert played.starts() == [{"window": 8192, "threads": 3}]


async def test_closing_ends_the_process(played: Played) -> None:
    engine = await played.engines.start(played.model([]).weights)
    assert lives(engine.pid)
    await played.engines.close()
    assert not lives(engine.pid)


async def test_closing_while_a_model_loads_ends_it_at_once(played: Played) -> None:
    loading = asyncio.create_task(played.engines.start(played.model([]).weights))
    await asyncio.sleep(0)
    await played.engines.close()
    with pytest.raises(ProviderError):
        await loading


async def test_a_caller_that_gives_up_does_not_stop_the_loading(played: Played) -> None:
    weights = played.model([]).weights
    first = asyncio.create_task(played.engines.start(weights))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    await played.engines.start(weights)
    assert len(played.starts()) == 1


async def test_a_process_that_died_is_replaced(played: Played) -> None:
    weights = played.model([]).weights
    first = await played.engines.start(weights)
    os.kill(first.pid, signal.SIGKILL)
    assert first.describe_exit() == "was killed by the system, most likely for lack of memory"
    second = await played.engines.start(weights)
    assert second.pid != first.pid
    assert played.engines.find_running(weights) is second


async def test_the_process_ends_with_ours(played: Played, tmp_path: Path) -> None:
    """However we die: a helper that nobody can reach must not hold memory."""
    played.model([])
    code = (
        "import asyncio, os, signal\n"
        "from pathlib import Path\n"
        "from hermes.providers.embedded.engines import EnginePool\n"
        "from hermes.providers.embedded.model_file import describe_model_file\n"
        "async def main():\n"
        f"    file = describe_model_file(Path({str(tmp_path / 'model.gguf')!r}))\n"
        "    engine = await EnginePool().start(file)\n"
        "    print(engine.pid, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(main())\n"
    )
    source = Path(__file__).parents[3] / "src"
    path = os.pathsep.join((str(source), os.environ["PYTHONPATH"]))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE, env={"PYTHONPATH": path}
    )
    async with asyncio.timeout(120):
        out, _ = await process.communicate()
    await asyncio.to_thread(wait_for_end, int(out))


async def test_without_the_runtime_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "xllamacpp.py").write_text("raise ImportError('not here')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    engines = EnginePool()
    with pytest.raises(ConfigError, match=r"hermes extras add local"):
        await engines.start(describe_model_file(write_model(tmp_path / "m.gguf", parameters=9)))
    await engines.close()


async def test_what_the_runtime_says_about_a_bad_file_is_passed_on(played: Played) -> None:
    weights = played.model("refuse").weights
    with pytest.raises(ConfigError, match=r"^model\.gguf cannot be loaded: no such kind; choose"):
        await played.engines.start(weights)


async def test_a_runtime_that_dies_while_loading_is_no_riddle(played: Played) -> None:
    weights = played.model("abort").weights
    with pytest.raises(ProviderError, match="most likely for lack of memory"):
        await played.engines.start(weights)


def test_one_core_stays_free() -> None:
    assert default_threads() == max(1, len(os.sched_getaffinity(0)) - 1)
