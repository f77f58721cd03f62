"""What is said about a model file before it is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.core.errors import ConfigError
from hermes.providers.embedded.model_file import (
    ModelFile,
    describe_model_file,
    find_model_file,
    format_parameters,
    format_size,
)
from tests.providers.embedded.gguf_files import LLAMA, gguf, write_model

GIGABYTE = 2**30


def test_a_file_is_described_by_its_header(tmp_path: Path) -> None:
    path = write_model(tmp_path / "big.gguf", parameters=8_030_261_312)
    assert describe_model_file(path, memory=16 * GIGABYTE) == ModelFile(
        path=path,
        size=path.stat().st_size,
        parameters=8_030_261_312,
        window=8192,
        trained=8192,
        architecture="llama",
        name="Tiny",
        licence="mit",
    )


def test_without_a_count_the_tensors_are_summed(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(gguf(tensors=((1000, 1000), (500,))))
    assert describe_model_file(path).parameters == 1_000_500


def test_a_model_in_parts_is_one_model(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        part = tmp_path / f"m-0000{number}-of-00003.gguf"
        part.write_bytes(gguf(LLAMA if number == 1 else {}, ((1000, number),)))
    first = tmp_path / "m-00001-of-00003.gguf"
    sizes = sum(part.stat().st_size for part in tmp_path.iterdir())
    assert (describe_model_file(first).parameters, describe_model_file(first).size) == (6000, sizes)
    with pytest.raises(ConfigError, match=r"use its first part, m-00001-of-00003\.gguf"):
        describe_model_file(tmp_path / "m-00002-of-00003.gguf")
    (tmp_path / "m-00003-of-00003.gguf").unlink()
    with pytest.raises(ConfigError, match=r"m-00003-of-00003\.gguf cannot be read"):
        describe_model_file(first)


def test_small_models_are_told_to_be_reduced_and_large_ones_are_not(tmp_path: Path) -> None:
    small = describe_model_file(write_model(tmp_path / "s.gguf", parameters=999_999_999))
    large = describe_model_file(write_model(tmp_path / "l.gguf", parameters=1_000_000_000))
    assert (small.small, large.small) == (True, False)
    assert "Reduced mode: no tools" in small.summary
    assert large.summary == "l.gguf (1B parameters) runs on this machine; nothing leaves it."


def test_a_base_model_is_pointed_out(tmp_path: Path) -> None:
    path = write_model(tmp_path / "b.gguf", parameters=2**31, tokenizer__chat_template="")
    assert "no chat template" in describe_model_file(path).summary


@pytest.mark.parametrize(
    ("parameters", "trained", "memory", "window"),
    [
        (8_000_000_000, 131_072, 64 * GIGABYTE, 32_768),
        (8_000_000_000, 131_072, 4 * GIGABYTE, 8_192),
        (8_000_000_000, 131_072, GIGABYTE // 4, 2_048),
        (8_000_000_000, 1_024, 64 * GIGABYTE, 1_024),
        (135_000_000, 8_192, 64 * GIGABYTE, 4_096),
    ],
)
def test_the_window_is_what_the_model_knows_and_the_machine_can_hold(
    tmp_path: Path, parameters: int, trained: int, memory: int, window: int
) -> None:
    path = write_model(
        tmp_path / "m.gguf",
        parameters=parameters,
        llama__context_length=trained,
        llama__block_count=32,
        llama__embedding_length=4096,
        llama__attention__head_count=32,
        llama__attention__head_count_kv=8,
    )
    assert describe_model_file(path, memory=memory).window == window


@pytest.mark.parametrize(
    "more",
    [
        {"general__architecture": "clip"},
        {"general__architecture": "nomic-bert"},
        {"general__type": "adapter"},
    ],
)
def test_files_that_hold_no_model_to_talk_to_are_refused(
    tmp_path: Path, more: dict[str, str]
) -> None:
    path = write_model(tmp_path / "m.gguf", parameters=2**31, **more)
    with pytest.raises(ConfigError, match="is not a chat model"):
        describe_model_file(path)


def test_a_file_that_is_missing_or_broken_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.gguf cannot be read \(no such file"):
        describe_model_file(tmp_path / "none.gguf")
    (tmp_path / "text.gguf").write_text("hello")
    with pytest.raises(ConfigError, match=r"cannot be used as a model \(not a GGUF file\)"):
        describe_model_file(tmp_path / "text.gguf")
    with pytest.raises(ConfigError, match="is a directory"):
        describe_model_file(tmp_path)


def test_a_model_is_found_by_its_path_or_its_installed_name(tmp_path: Path) -> None:
    write_model(tmp_path / "tiny.gguf", parameters=10)
    assert find_model_file("tiny", tmp_path) == tmp_path / "tiny.gguf"
    assert find_model_file("elsewhere/m.gguf", tmp_path) == Path("elsewhere/m.gguf")
    assert find_model_file("~/m.gguf", tmp_path) == Path.home() / "m.gguf"
    with pytest.raises(ConfigError, match="No model named 'huge' is installed; available: tiny"):
        find_model_file("huge", tmp_path)


def test_numbers_read_well() -> None:
    counts = (950, 134_515_008, 1_000_000_000, 1_235_814_432, 8_030_261_312, 70_553_706_496)
    assert [format_parameters(n) for n in counts] == ["950", "135M", "1B", "1.2B", "8B", "71B"]
    assert [format_size(n) for n in (1, 98_362_432, 4_700_000_000)] == ["1 MB", "98 MB", "4.7 GB"]
