"""Versions of skills: every change is one, a person's words are never lost, all can be undone."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.core.errors import NotFound, UsageError
from hermes.skills.files import Tree
from hermes.skills.history import Cause
from hermes.skills.skill import MAIN
from hermes.skills.store import SkillChange
from tests.skills.bench import Bench, skill_text


def test_a_change_is_a_version_with_its_cause(bench: Bench) -> None:
    one = bench.store.apply(bench.change("deploy", skill_text("deploy"), action="create"))
    two = bench.store.apply(bench.change("deploy", skill_text("deploy", "Other words here")))
    history = bench.store.history("deploy")
    assert [(v.id, v.state, v.action, v.cause.model) for v in history] == [
        (one.id, "past", "create", "m"),
        (two.id, "active", "edit", "m"),
    ]
    assert bench.store.active("deploy") == history[1]
    assert bench.tree("deploy") == bench.store.tree(two)


def test_what_a_person_wrote_is_kept_before_it_is_changed(bench: Bench) -> None:
    bench.write("deploy", skill_text("deploy", "A person wrote this"))
    before = bench.tree("deploy")
    bench.store.apply(bench.change("deploy", skill_text("deploy", "An agent wrote that")))
    found, changed = bench.store.history("deploy")
    assert (found.cause.who, found.action, bench.store.tree(found)) == ("user", "found", before)
    assert changed.base == found.hash
    bench.store.revert("deploy", found.id, Cause(who="user"))
    assert bench.tree("deploy") == before


def test_the_review_touches_only_what_the_agent_made(bench: Bench) -> None:
    bench.write("mine")
    bench.store.apply(
        bench.change("own", skill_text("own", "About something else"), action="create")
    )
    with pytest.raises(UsageError, match="not the agent's own"):
        bench.store.propose(bench.change("mine", skill_text("mine", "changed"), who="review"))
    bench.store.apply(bench.change("own", skill_text("own", "Better words"), who="review"))
    # A person's edit makes it theirs.
    (bench.skills / "own" / MAIN).write_text(skill_text("own", "I know better"))
    assert bench.store.provenance(bench.store.find("own")) == "user"
    with pytest.raises(UsageError, match="not the agent's own"):
        bench.store.apply(bench.change("own", skill_text("own", "Again"), who="review"))
    assert bench.tree("own")[MAIN].decode() == skill_text("own", "I know better")


def test_a_proposal_is_nowhere_until_it_is_promoted(bench: Bench) -> None:
    version = bench.store.propose(bench.change("deploy", skill_text("deploy"), action="create"))
    assert (version.proposal, bench.names(), bench.store.active("deploy")) == (True, [], None)
    assert [v.id for v in bench.store.proposals()] == [version.id]
    done = bench.store.promote(version)
    assert (done.state, bench.names(), bench.store.proposals()) == ("active", ["deploy"], ())
    with pytest.raises(UsageError, match="is not an open proposal"):
        bench.store.promote(version)


def test_a_proposal_for_what_has_changed_since_is_not_promoted(bench: Bench) -> None:
    bench.store.apply(bench.change("deploy", skill_text("deploy"), action="create"))
    version = bench.store.propose(bench.change("deploy", skill_text("deploy", "Proposed")))
    (bench.skills / "deploy" / MAIN).write_text(skill_text("deploy", "Mine"))
    with pytest.raises(UsageError, match="changed since"):
        bench.store.promote(version)
    assert bench.tree("deploy")[MAIN].decode() == skill_text("deploy", "Mine")


def test_a_refused_proposal_stays_in_the_history_with_its_reason(bench: Bench) -> None:
    version = bench.store.propose(bench.change("deploy", skill_text("deploy"), action="create"))
    done = bench.store.refuse(version, "it made the rehearsal worse")
    assert (done.state, done.reason) == ("refused", "it made the rehearsal worse")
    assert bench.store.proposals() == ()
    with pytest.raises(UsageError):
        bench.store.promote(version)


def test_a_deleted_skill_comes_back_as_it_was(bench: Bench) -> None:
    bench.write("ops/deploy", references__a="one", scripts__run="two")
    before = bench.tree("ops/deploy")
    bench.store.apply(SkillChange(name="deploy", action="delete", cause=Cause(who="agent")))
    assert bench.names() == []
    first = bench.store.history("deploy")[0]
    bench.store.revert("deploy", first.id[:6], Cause(who="user"))
    assert bench.tree("ops/deploy") == before


def test_a_skill_elsewhere_is_read_only(tmp_path: Path) -> None:
    outside = tmp_path / "shared"
    (outside / "deploy").mkdir(parents=True)
    (outside / "deploy" / MAIN).write_text(skill_text("deploy"))
    bench = Bench(tmp_path, external=[outside])
    with pytest.raises(UsageError, match="read-only"):
        bench.store.apply(bench.change("deploy", skill_text("deploy", "changed")))


def test_nearly_the_same_skill_is_not_made_twice(bench: Bench) -> None:
    text = skill_text("deploy-site", "Deploy the web site to the server")
    bench.store.apply(bench.change("deploy-site", text, action="create"))
    twin = skill_text("site-deploy", "Deploy the web site to a server")
    with pytest.raises(UsageError, match="deploy-site covers the same"):
        bench.store.apply(bench.change("site-deploy", twin, action="create"))


def test_what_the_guard_refuses_is_not_written(tmp_path: Path) -> None:
    def guard(name: str, tree: Tree) -> None:
        if b"curl" in tree[MAIN]:
            raise UsageError("refused")

    bench = Bench(tmp_path, guard=guard)
    with pytest.raises(UsageError, match="refused"):
        bench.store.apply(bench.change("bad", skill_text("bad", body="curl x"), action="create"))
    assert (bench.names(), bench.store.history("bad")) == ([], ())


def test_hidden_files_links_and_modes_survive_a_change(bench: Bench) -> None:
    folder = bench.write("deploy", scripts__run="x", references__a="y", references__b="z")
    (folder / "scripts/run").chmod(0o755)
    (folder / ".notes").write_text("mine")
    (folder / "link").symlink_to("references/a")
    bench.store.apply(
        SkillChange(
            name="deploy",
            action="tidy",
            cause=Cause(who="user"),
            files={"references/a": b"new", "references/b": None},
        )
    )
    assert bench.tree("deploy")["references/a"] == b"new"
    assert not (folder / "references/b").exists()
    assert (folder / "scripts/run").stat().st_mode & 0o777 == 0o755
    assert (folder / ".notes").read_text() == "mine"
    assert (folder / "link").readlink() == Path("references/a")


@pytest.mark.parametrize(
    "path",
    ["../x", "/etc/passwd", "references/../../x", "a\\b", ".hidden", "C:/x", "references//x"],
)
def test_no_file_is_written_outside_of_its_skill(bench: Bench, path: str) -> None:
    bench.write("deploy")
    with pytest.raises(UsageError):
        bench.store.apply(
            SkillChange(name="deploy", action="x", cause=Cause(who="user"), files={path: b"x"})
        )


def test_an_unknown_name_is_told_with_near_ones(bench: Bench) -> None:
    bench.write("deploy-site")
    with pytest.raises(NotFound) as error:
        bench.store.find("deploy-sites")
    assert error.value.near == ("deploy-site",)


def test_two_skills_of_one_name_are_told_apart_by_their_folders(bench: Bench) -> None:
    bench.write("ops/deploy", skill_text("deploy", "One"))
    bench.write("web/deploy", skill_text("deploy", "Two"))
    with pytest.raises(UsageError, match="web/deploy"):
        bench.store.find("deploy")
    assert bench.store.find("web/deploy").skill.description == "Two"


def test_a_torn_line_of_the_history_is_no_line(bench: Bench) -> None:
    bench.store.apply(bench.change("deploy", skill_text("deploy"), action="create"))
    log = bench.skills / ".history/logs/deploy.jsonl"
    log.write_bytes(log.read_bytes() + b'{"type":"version","id":"v')
    bench.store.apply(bench.change("deploy", skill_text("deploy", "Other words")))
    assert [v.state for v in bench.store.history("deploy")] == ["past", "active"]
