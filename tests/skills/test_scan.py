"""Skills are found where they lie, and a file is read again only when it changed."""

from __future__ import annotations

import os
from pathlib import Path

from hermes.skills.discovery import SkillRoot, SkillScanner
from tests.skills.bench import Bench, skill_text


def test_skills_are_found_at_the_root_and_in_categories(bench: Bench) -> None:
    bench.write("alone")
    bench.write("ops/deploy")
    bench.write("ops/web/tune")
    found = bench.store.scan().entries
    assert [(entry.category, entry.name) for entry in found] == [
        ("", "alone"),
        ("ops", "deploy"),
        ("ops/web", "tune"),
    ]


def test_hidden_and_foreign_folders_are_passed_over(bench: Bench) -> None:
    for place in (".archive/a", ".hub/quarantine/b", "ops/.git/c", "node_modules/d", "x/scripts/e"):
        bench.write(place)
    bench.write("ops/deploy", references__inner="x")
    (bench.skills / "ops/deploy/references/SKILL.md").write_text(skill_text("inner"))
    assert bench.names() == ["deploy"]


def test_a_broken_skill_is_named_and_the_others_stay(bench: Bench) -> None:
    bench.write("good")
    bench.write("bad", "---\nname: [\n---\n")
    scanned = bench.store.scan()
    assert [entry.name for entry in scanned.entries] == ["good"]
    assert [Path(each.folder).name for each in scanned.broken] == ["bad"]
    assert "line 2" in scanned.broken[0].problem


def test_the_home_hides_what_has_the_same_name_elsewhere(tmp_path: Path) -> None:
    outside = tmp_path / "shared"
    bench = Bench(tmp_path, external=[outside])
    bench.write("deploy")
    (outside / "deploy").mkdir(parents=True)
    (outside / "deploy/SKILL.md").write_text(skill_text("deploy", "from elsewhere"))
    scanned = bench.store.scan()
    assert [(e.name, e.kind) for e in scanned.entries] == [("deploy", "home")]
    elsewhere = bench.store.find(str(outside / "deploy"))
    assert (elsewhere.kind, elsewhere.skill.description) == ("external", "from elsewhere")


def test_categories_have_descriptions(bench: Bench) -> None:
    bench.write("ops/deploy")
    (bench.skills / "ops/DESCRIPTION.md").write_text("---\ndescription: Running things\n---\n")
    assert bench.store.scan().categories == {"ops": "Running things"}


def test_a_file_is_read_again_only_when_it_changed(bench: Bench) -> None:
    folder = bench.write("deploy", skill_text("deploy", "first"))
    SkillScanner((SkillRoot(path=str(bench.skills)),), bench.cache).scan()
    stat = (folder / "SKILL.md").stat()
    # The same time and size: what is kept counts, in a new process too.
    (folder / "SKILL.md").write_text(skill_text("deploy", "other"))
    os.utime(folder / "SKILL.md", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    again = SkillScanner((SkillRoot(path=str(bench.skills)),), bench.cache).scan()
    assert again.entries[0].skill.description == "first"
    os.utime(folder / "SKILL.md", ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    fresh = SkillScanner((SkillRoot(path=str(bench.skills)),), bench.cache).scan()
    assert fresh.entries[0].skill.description == "other"


def test_a_damaged_cache_costs_nothing_but_time(bench: Bench) -> None:
    bench.write("deploy")
    bench.cache.parent.mkdir(parents=True)
    bench.cache.write_bytes(b"{torn")
    assert bench.names() == ["deploy"]
