"""What `hermes setup` finds on a machine, and what it recommends there."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from hermes.config.home import Home
from hermes.config.load import load
from hermes.core.world import World
from hermes.models.detection import Detection, detect_models
from hermes.models.machine import GB, Machine, find_gguf_files, parse_ollama_host
from hermes.models.models import Models
from hermes.providers import local_discovery as probe
from hermes.providers.local_discovery import LocalPort
from hermes.testing.server import ScriptedServer
from hermes.testing.steps import says
from tests.providers.embedded.gguf_files import write_model
from tests.surfaces.cli.program import Program

TAGS = {"models": [{"name": "qwen3:0.6b", "size": GB // 2}, {"name": "qwen3:8b", "size": 5 * GB}]}
BIG = Machine(memory=64 * GB, cores=9)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_CONNECT_SECONDS", 30)
    monkeypatch.setattr(probe, "_ANSWER_SECONDS", 30)


@pytest.fixture
async def models(tmp_path: Path) -> AsyncIterator[Models]:
    config = load(Home(tmp_path / "home"), env={})
    made = Models(config, World(), env={})
    yield made
    await made.close()


def port_of(server: ScriptedServer) -> int:
    return urlsplit(server.url).port or 0


async def found_at(
    models: Models, folder: Path, *ports: LocalPort, machine: Machine = BIG
) -> Detection:
    env = {"HOME": str(folder)}
    return await detect_models(models, env, folder=folder, machine=machine, ports=ports)


async def test_every_kind_of_server_is_found_with_its_models(
    models: Models, tmp_path: Path
) -> None:
    kinds = ("LM Studio", "llama.cpp", "vLLM")
    async with (
        ScriptedServer(pages={"/api/tags": TAGS}) as ollama,
        ScriptedServer(models=["mystery-7b"]) as other,
    ):
        ports = (
            LocalPort("Ollama", port_of(ollama), "/api/tags", "ollama"),
            *(LocalPort(kind, port_of(other), "/v1/models") for kind in kinds),
        )
        found = await found_at(models, tmp_path, *ports)
    rows = [(row.found.partition(" at ")[0], row.model) for row in found.models]
    assert rows == [
        ("Ollama", "qwen3:8b"),
        *((kind, "mystery-7b") for kind in kinds),
        ("Ollama", "qwen3:0.6b"),
    ]
    best, tiny = found.models[0], found.models[-1]
    assert best.recommended
    assert (best.bytes, best.tokens_per_second) == (5 * GB, 8.0)
    assert tiny.problem == "has less than 1B parameters, too few for tools"


async def test_a_file_is_recommended_if_it_fits_and_is_fast_enough(
    models: Models, tmp_path: Path
) -> None:
    (tmp_path / "models" / "sub").mkdir(parents=True)
    write_model(tmp_path / "tiny.gguf", parameters=135_000_000)
    small = write_model(tmp_path / "models" / "small.gguf", parameters=3 * GB)
    large = write_model(tmp_path / "models" / "sub" / "large.gguf", parameters=8 * GB)
    with large.open("ab") as file:
        file.truncate(5 * GB)
    found = await found_at(models, tmp_path)
    assert [Path(row.model).name for row in found.models] == [
        "large.gguf",
        "small.gguf",
        "tiny.gguf",
    ]
    narrow = await found_at(models, tmp_path, machine=Machine(memory=4 * GB, cores=2))
    assert Path(narrow.models[0].model) == small
    assert narrow.models[0].recommended
    told = {Path(row.model).name: row.problem for row in narrow.models}
    assert told["large.gguf"] == "needs more memory than this machine has"
    slow = await found_at(models, tmp_path, machine=Machine(memory=16 * GB, cores=2))
    assert Path(slow.models[0].model) == small, "1 token/s is too slow to recommend"


async def test_nothing_below_1b_is_recommended(models: Models, tmp_path: Path) -> None:
    write_model(tmp_path / "tiny.gguf", parameters=135_000_000)
    found = await found_at(models, tmp_path)
    assert [row.recommended for row in found.models] == [False]


def test_files_of_other_programs_are_found(tmp_path: Path) -> None:
    hub = tmp_path / ".cache/huggingface/hub/models--a--b/snapshots/1"
    lmstudio = tmp_path / ".lmstudio/models/a/b"
    ollama = tmp_path / ".ollama/models"
    for folder in (hub, lmstudio, ollama / "blobs"):
        folder.mkdir(parents=True)
    expected = [
        write_model(lmstudio / "a.gguf", parameters=3 * GB),
        write_model(hub / "b-00001-of-00002.gguf", parameters=3 * GB),
    ]
    (hub / "b-00002-of-00002.gguf").write_bytes(b"")
    digest = hashlib.sha256(b"x").hexdigest()
    expected.append(write_model(ollama / "blobs" / f"sha256-{digest}", parameters=3 * GB))
    manifest = ollama / "manifests/registry.ollama.ai/library/qwen3/8b"
    manifest.parent.mkdir(parents=True)
    kind = "application/vnd.ollama.image.model"
    manifest.write_text(json.dumps({"layers": [{"mediaType": kind, "digest": f"sha256:{digest}"}]}))
    (manifest.parent / "bad").write_text("[]")
    assert find_gguf_files({"HOME": str(tmp_path)}) == expected


@pytest.mark.parametrize(
    ("text", "port"),
    [("127.0.0.1:4000", 4000), (":4000", 4000), ("http://localhost:4000/", 4000), ("box:4000", 0)],
)
def test_only_an_ollama_of_this_machine_is_asked(text: str, port: int) -> None:
    assert parse_ollama_host(text) == port


def test_the_advice_follows_the_machine() -> None:
    assert "a model of 14B parameters (7.9 GB at 4 bits)" in BIG.advice()
    assert "too little memory" in Machine(memory=GB, cores=1).advice()
    assert "3B parameters" in Machine(memory=24 * GB, cores=2).advice()


@pytest.fixture
def program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Program:
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("HERMES_HOME", str(home))
    for name in ("OPENROUTER_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    return Program(home, work, capsys)


@pytest.fixture
def ollama(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    names = ("qwen3:0.6b", "qwen3:8b")
    pages = {"/api/tags": TAGS}
    with ScriptedServer.in_thread([says("hello")], pages=pages, models=names) as running:
        monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{port_of(running)}")
        yield running


def test_the_recommended_command_leads_to_an_answer(
    program: Program, ollama: ScriptedServer
) -> None:
    found = program("setup", "--detect", "--json").json
    best = next(row for row in found["models"] if row["recommended"])
    assert best["model"] == "qwen3:8b"
    assert best["tokens_per_second"] > 0
    assert not program.home.exists(), "looking changes nothing"
    told = program("setup", "--detect").out
    assert best["command"] in told
    assert found["advice"] in told
    done = program(*shlex.split(best["command"])[1:])
    assert done.code == 0, done.err
    assert program("-z", "hi").out == "hello\n"
    assert ollama.requests[0].body["model"] == "qwen3:8b"


def test_a_key_in_the_environment_comes_first(
    program: Program, ollama: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", key := "sk-ant-0123456789")
    result = program("setup", "--detect", "--json")
    first = result.json["models"][0]
    assert (first["kind"], first["provider"], first["recommended"]) == ("key", "anthropic", True)
    assert first["found"] == "ANTHROPIC_API_KEY in the environment"
    assert key not in result.out


def test_json_without_detect_is_refused(program: Program) -> None:
    result = program("setup", "--json")
    assert result.code == 2
    assert "--json needs --detect" in result.err
