"""Which project file speaks, and how much of it."""

from __future__ import annotations

from pathlib import Path

from hermes.context.project_files import limit_for, project_context


def test_the_first_kind_wins_and_kinds_are_not_mixed(tmp_path: Path) -> None:
    (tmp_path / ".hermes.md").write_text("---\nname: x\n---\nours")
    (tmp_path / "AGENTS.md").write_text("theirs")
    found = project_context(tmp_path, window=100_000)
    assert found.text == "# Project Context\n\n## .hermes.md\n\nours"


def test_our_own_file_is_looked_for_up_to_the_git_root(tmp_path: Path) -> None:
    (tmp_path / "HERMES.md").write_text("above the repository")
    repository = tmp_path / "repo"
    (repository / ".git").mkdir(parents=True)
    (repository / "HERMES.md").write_text("top of the repository")
    deep = repository / "a" / "b"
    deep.mkdir(parents=True)
    assert "top of the repository" in project_context(deep, window=100_000).text
    assert project_context(tmp_path / "repo" / "a", window=100_000).files == (
        str(repository / "HERMES.md"),
    )


def test_without_a_repository_only_the_folder_itself_counts(tmp_path: Path) -> None:
    (tmp_path / "HERMES.md").write_text("above")
    inner = tmp_path / "inner"
    inner.mkdir()
    assert project_context(inner, window=100_000).text == ""


def test_an_empty_file_counts_as_absent(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("  \n")
    (tmp_path / "CLAUDE.md").write_text("real")
    assert project_context(tmp_path, window=100_000).text.endswith("## CLAUDE.md\n\nreal")


def test_cursor_rules_are_joined_in_order(tmp_path: Path) -> None:
    rules = tmp_path / ".cursor" / "rules"
    rules.mkdir(parents=True)
    (rules / "b.mdc").write_text("second")
    (rules / "a.mdc").write_text("first")
    text = project_context(tmp_path, window=100_000).text
    assert text.index("first") < text.index("second")


def test_a_long_file_keeps_its_beginning_and_end_and_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("A" * 50_000 + "Z" * 50_000)
    limit = limit_for(128_000)
    found = project_context(tmp_path, window=128_000)
    kept_head, kept_tail = found.text.count("A" * 100), found.text.count("Z" * 100)
    assert limit == 30_720
    assert (kept_head, kept_tail) == (limit * 7 // 1000, limit * 2 // 1000)
    assert str(100_000 - int(limit * 0.7) - int(limit * 0.2)) in found.warnings[0]
