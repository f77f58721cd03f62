"""Shipped skills come into a home, are kept up to date, and never over a person's edits."""

from __future__ import annotations

from pathlib import Path

from hermes.skills.seeding import MANIFEST, SeedResult
from hermes.skills.skill import MAIN
from tests.skills.bench import Bench, skill_text


def ship(bench: Bench, place: str, description: str = "First", **files: str) -> None:
    folder = bench.home / "shipped" / place
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MAIN).write_text(skill_text(folder.name, description))
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)


def description(bench: Bench, name: str) -> str:
    return bench.store.find(name).skill.description


def test_the_first_start_puts_them_there(bench: Bench) -> None:
    ship(bench, "ops/deploy", references__a="x")
    (bench.home / "shipped/ops/DESCRIPTION.md").write_text("---\ndescription: Ops\n---\n")
    assert bench.seeds.seed_if_new("1") == SeedResult(added=("deploy",))
    assert bench.tree("ops/deploy")["references/a"] == b"x"
    assert bench.store.scan().categories == {"ops": "Ops"}
    assert bench.store.provenance(bench.store.find("deploy")) == "bundled"
    assert bench.seeds.seed_if_new("1") == SeedResult()


def test_an_update_replaces_only_what_nobody_touched(bench: Bench) -> None:
    for name in ("kept", "edited", "removed"):
        ship(bench, f"ops/{name}")
    bench.seeds.seed()
    (bench.skills / "ops/edited" / MAIN).write_text(skill_text("edited", "Mine"))
    (bench.skills / "ops/removed" / MAIN).unlink()
    (bench.skills / "ops/removed").rmdir()
    for name in ("kept", "edited", "removed", "new"):
        ship(bench, f"ops/{name}", "Second edition")
    assert bench.seeds.seed() == SeedResult(added=("new",), updated=("kept",), kept=("edited",))
    assert bench.names() == ["edited", "kept", "new"]
    assert (description(bench, "kept"), description(bench, "edited")) == ("Second edition", "Mine")
    assert (bench.seeds.list_modified(), bench.seeds.list_removed()) == (("edited",), ("removed",))
    assert bench.store.provenance(bench.store.find("edited")) == "user"


def test_a_script_is_as_shipped_while_its_whole_skill_is(bench: Bench) -> None:
    ship(bench, "ops/deploy", scripts__run="echo", scripts__part="true")
    bench.seeds.seed()
    script, part = (bench.skills / "ops/deploy/scripts" / name for name in ("run", "part"))
    assert bench.seeds.is_as_shipped(script.resolve())
    assert not bench.seeds.is_as_shipped(bench.skills.resolve() / "ops/other/run")
    assert not bench.seeds.is_as_shipped(Path("/usr/bin/env"))
    part.write_text("rm -r ~")
    assert not bench.seeds.is_as_shipped(script.resolve())


def test_a_persons_own_skill_of_that_name_is_left_alone(bench: Bench) -> None:
    bench.write("tools/deploy", skill_text("deploy", "Mine"))
    ship(bench, "ops/deploy")
    assert bench.seeds.seed() == SeedResult()
    assert (bench.names(), description(bench, "deploy")) == (["deploy"], "Mine")
    assert bench.seeds.manifest() == {}


def test_another_program_looks_again_and_the_same_does_not(bench: Bench) -> None:
    ship(bench, "ops/deploy")
    bench.seeds.seed_if_new("1")
    (bench.skills / "ops/deploy" / MAIN).unlink()
    (bench.skills / "ops/deploy").rmdir()
    ship(bench, "ops/more")
    assert bench.seeds.seed_if_new("1").added == ("more",)
    assert bench.seeds.seed_if_new("2") == SeedResult()


def test_a_home_can_do_without(bench: Bench) -> None:
    ship(bench, "ops/deploy")
    bench.seeds.opt(out=True)
    assert bench.seeds.seed_if_new("1") == SeedResult()
    assert bench.names() == []
    bench.seeds.opt(out=False)
    assert bench.seeds.seed_if_new("1").added == ("deploy",)


def test_the_manifest_is_lines_of_name_and_hash(bench: Bench) -> None:
    ship(bench, "ops/deploy")
    bench.seeds.seed()
    line = (bench.skills / MANIFEST).read_text()
    assert line == f"deploy:{bench.digest('ops/deploy')}\n"
    assert Path(bench.skills / ".staging").exists()
