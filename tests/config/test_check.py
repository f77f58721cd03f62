"""The state of a home's files."""

from __future__ import annotations

import stat
from pathlib import Path

from hermes.config.check import check_files, check_home, repair_permissions
from hermes.config.home import Home
from hermes.config.load import load


def levels(home: Home) -> list[tuple[str, str]]:
    found = (*check_home(home), *check_files(load(home, env={})))
    return [(finding.level, finding.kind) for finding in found]


def test_a_home_that_does_not_exist_is_well(home: Home) -> None:
    assert levels(home) == [("ok", "ok")] * 3
    assert not home.root.exists()


def test_files_that_others_can_read_are_mended(home: Home) -> None:
    home.ensure_folder(home.root)
    home.config.write_text("agent: {max_turns: 5}\n")
    home.env_file.write_text("A_KEY=1\n")
    home.root.chmod(0o755)
    home.config.chmod(0o644)
    home.env_file.chmod(0o640)
    assert levels(home) == [("warn", "permissions")] * 3
    assert repair_permissions(home) == (home.root, home.config, home.env_file)
    assert levels(home) == [("ok", "ok")] * 3
    assert stat.S_IMODE(home.env_file.stat().st_mode) == 0o600
    assert repair_permissions(home) == ()


def test_a_file_in_place_of_the_home_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (finding,) = check_home(Home(tmp_path / "file"))
    assert (finding.level, finding.kind) == ("error", "permissions")
    assert "HERMES_HOME" in finding.fix


def test_a_secret_in_plain_text_is_reported(home: Home) -> None:
    home.ensure_folder(home.root)
    home.config.write_text(
        "model: {api_key: literal}\nproviders:\n"
        "  a: {api_key: '${A_KEY}'}\n  b: {extra_headers: {X: literal}}\n"
    )
    found = check_files(load(home, env={}))
    assert [finding.key for finding in found if finding.kind == "literal_secret"] == [
        "model.api_key",
        "providers.b.extra_headers",
    ]


def test_what_the_loader_found_is_reported_too(home: Home) -> None:
    home.ensure_folder(home.root)
    home.config.write_text("agnt: 1\n")
    home.config.chmod(0o600)
    assert levels(home)[-1] == ("warn", "unknown_key")
