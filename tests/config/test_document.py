"""The decoded copy of config.yaml: used when fresh, never when not, never for secrets."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.config.document import COPY_NAME, read_document
from hermes.config.home import Home

TEXT = "agent:\n  max_turns: 5\n"
OLD_NS = 1_600_000_000_000_000_000


def write(home: Home, text: str, *, at: int = OLD_NS) -> None:
    home.ensure_folder(home.root)
    home.config.write_text(text)
    os.utime(home.config, ns=(at, at))


def test_the_copy_is_private_and_gives_the_same_data(home: Home) -> None:
    write(home, TEXT)
    first = read_document(home)
    copy = home.cache / COPY_NAME
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert stat.S_IMODE(home.cache.stat().st_mode) == 0o700
    assert read_document(home) == first
    assert first.data == {"agent": {"max_turns": 5}}


def loaded_modules(home: Path) -> set[str]:
    code = (
        "import sys\n"
        "from hermes.config.home import Home\n"
        "from hermes.config.load import load\n"
        "from pathlib import Path\n"
        f"print(load(Home(Path({str(home)!r}))).settings.agent.max_turns, *sys.modules)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return set(run.stdout.split())


def test_only_the_first_start_after_a_change_loads_the_yaml_library(home: Home) -> None:
    assert "ruamel.yaml" not in loaded_modules(home.root)
    write(home, TEXT)
    first, second = loaded_modules(home.root), loaded_modules(home.root)
    assert "ruamel.yaml" in first and "5" in first
    assert "ruamel.yaml" not in second and "5" in second
    write(home, "agent: {max_turns: 6}\n", at=OLD_NS + 1)
    third = loaded_modules(home.root)
    assert "ruamel.yaml" in third and "6" in third


def test_a_copy_of_another_state_is_not_used(home: Home) -> None:
    write(home, TEXT)
    read_document(home)
    write(home, TEXT.replace("5", "6"), at=OLD_NS + 1)
    assert read_document(home).data == {"agent": {"max_turns": 6}}


def test_a_file_that_has_just_been_written_is_not_copied_yet(home: Home) -> None:
    home.ensure_folder(home.root)
    for turns in range(5, 9):
        home.config.write_text(TEXT.replace("5", str(turns)))
        assert read_document(home).data == {"agent": {"max_turns": turns}}


@pytest.mark.parametrize("garbage", [b"", b"{", b'{"stamp": 1}', b"\xff"])
def test_a_damaged_copy_is_written_anew(home: Home, garbage: bytes) -> None:
    write(home, TEXT)
    read_document(home)
    (home.cache / COPY_NAME).write_bytes(garbage)
    assert read_document(home).data == {"agent": {"max_turns": 5}}
    assert (home.cache / COPY_NAME).read_bytes() != garbage


def test_a_secret_in_the_file_is_not_written_to_a_second_place(home: Home) -> None:
    write(home, "model: {api_key: sk-literal}\n")
    assert read_document(home).data == {"model": {"api_key": "sk-literal"}}
    assert not home.cache.exists()
    write(home, "model: {api_key: '${X_API_KEY}'}\n")
    read_document(home)
    assert home.cache.exists()


def test_a_home_that_cannot_be_written_is_still_read(home: Home) -> None:
    write(home, TEXT)
    home.cache.write_text("a file where the folder should be")
    assert read_document(home).data == {"agent": {"max_turns": 5}}


def test_the_editing_functions_load_the_yaml_library_only_to_edit() -> None:
    code = "import sys, hermes.config.edit; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert not {"ruamel.yaml", "difflib", "click"} & set(run.stdout.split())
