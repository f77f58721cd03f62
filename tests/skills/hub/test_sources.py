"""Each source gives what its service has: found by words, fetched whole, checked."""

from __future__ import annotations

import hashlib
import json

import pytest

from hermes.core.errors import HermesError, NotFound
from hermes.skills.hub.sources.github import split_identifier
from hermes.skills.hub.sources.websites import referenced_files
from hermes.skills.skill import MAIN, parse_skill
from tests.skills.bench import skill_text
from tests.skills.hub.conftest import Store
from tests.skills.hub.services import NOT_FOUND, Said, zipped

PDF = skill_text("pdf", "Work with PDF files").encode()
XLS = skill_text("sheets", "Work with spreadsheets").encode()
REPO = {
    "README.md": b"hello",
    "skills/pdf/SKILL.md": PDF,
    "skills/pdf/scripts/fill.py": b"print(1)\n",
    "skills/sheets/SKILL.md": XLS,
    "skills/broken/SKILL.md": b"---\nname: [\n---\n",
}


async def test_github_lists_the_skills_of_its_taps(store: Store) -> None:
    store.services.repos["anthropics/skills"] = REPO
    store.bench.ledger.write_taps(("anthropics/skills",))
    found, problems = await store.hub.search("pdf", source="github")
    assert [(one.identifier, one.trust) for one in found] == [
        ("anthropics/skills/skills/pdf", "trusted")
    ]
    assert problems == ()
    asked = len(store.services.asked)
    await store.hub.search("spreadsheets", source="github")
    assert len(store.services.asked) == asked
    await store.bench.clock.advance(3601)
    store.github._trees.clear()
    await store.hub.search("pdf", source="github")
    assert len(store.services.asked) > asked


@pytest.mark.parametrize(
    "identifier",
    [
        "some/repo/skills/pdf",
        "some/repo/pdf",
        "github:some/repo/skills/pdf",
        "https://github.com/some/repo/tree/main/skills/pdf",
        "https://github.com/some/repo/blob/main/skills/pdf/SKILL.md",
    ],
)
async def test_github_gives_a_skill_by_its_place(store: Store, identifier: str) -> None:
    store.services.repos["some/repo"] = REPO
    package = await store.hub.fetch(identifier)
    assert package.files == {MAIN: PDF, "scripts/fill.py": b"print(1)\n"}
    assert (package.listing.name, package.listing.trust) == ("pdf", "community")


async def test_github_says_what_is_wrong(store: Store) -> None:
    services = store.services
    services.repos["some/repo"] = REPO
    with pytest.raises(NotFound) as none:
        await store.hub.fetch("some/repo/absent")
    assert "some/repo/skills/pdf" in none.value.near
    with pytest.raises(NotFound):
        await store.hub.fetch("no/such/repo")
    services.limited = True
    store.github._trees.clear()
    with pytest.raises(HermesError, match="limits the request rate"):
        await store.hub.fetch("some/repo/pdf")


async def test_github_bytes_are_those_of_the_tree(store: Store) -> None:
    store.services.repos["some/repo"] = REPO
    store.services.swapped["skills/pdf/scripts/fill.py"] = b"import evil\n"
    with pytest.raises(HermesError, match="repository's hash"):
        await store.hub.fetch("some/repo/pdf")


async def test_github_links_are_refused(store: Store) -> None:
    store.services.repos["some/repo"] = REPO
    store.services.links.add("skills/pdf/scripts/fill.py")
    with pytest.raises(HermesError, match="link"):
        await store.hub.fetch("some/repo/pdf")


async def test_a_token_goes_to_the_api_and_nowhere_else(store: Store) -> None:
    store.token = "t0ken"
    store.services.repos["some/repo"] = REPO
    await store.hub.fetch("some/repo/pdf")
    bearers = {
        (asked.path.split("/")[1], asked.headers.get("authorization", ""))
        for asked in store.services.asked
    }
    assert bearers == {("api.github", "Bearer t0ken"), ("raw.github", "")}


def test_identifiers_of_github() -> None:
    assert split_identifier("o/r") == ("o/r", "", "")
    assert split_identifier("github/o/r/a/b") == ("o/r", "a/b", "")
    assert split_identifier("https://github.com/o/r.git") == ("o/r", "", "")
    assert split_identifier("github.com/o/r/tree/dev/x/SKILL.md") == ("o/r", "x", "dev")


async def test_skills_sh_leads_to_the_repository(store: Store) -> None:
    store.services.repos["some/repo"] = REPO
    store.services.directory = [
        {"id": "some/repo/pdf", "skillId": "pdf", "name": "pdf", "installs": 12}
        | {"source": "some/repo"}
    ]
    found, _ = await store.hub.search("pdf", source="skills-sh")
    assert [(one.identifier, one.installs) for one in found] == [("skills-sh/some/repo/pdf", 12)]
    package = await store.hub.fetch(found[0].identifier)
    assert (package.files[MAIN], package.listing.source) == (PDF, "skills-sh")
    with pytest.raises(NotFound, match="no longer has"):
        await store.hub.fetch("skills-sh/some/repo/gone")


async def test_a_site_publishes_files_by_name(store: Store) -> None:
    pages, base = store.services.pages, "/.well-known/skills"
    index = {"skills": [{"name": "pdf", "description": "PDF", "files": [MAIN, "references/a.md"]}]}
    pages[f"{base}/index.json"] = Said(index)
    pages[f"{base}/pdf/{MAIN}"] = Said(PDF)
    pages[f"{base}/pdf/references/a.md"] = Said(b"a")
    found, _ = await store.hub.search(store.services.url, source="well-known")
    assert [one.name for one in found] == ["pdf"]
    for identifier in (found[0].identifier, store.services.url, f"well-known:{store.services.url}"):
        package = await store.hub.fetch(identifier)
        assert package.files == {MAIN: PDF, "references/a.md": b"a"}
    index["skills"][0]["files"] = ["../../etc/passwd"]
    pages[f"{base}/index.json"] = Said(index)
    with pytest.raises(HermesError, match="lists an invalid file"):
        await store.hub.fetch(store.services.url)


@pytest.mark.parametrize("kind", ["skill-md", "archive"])
async def test_a_site_publishes_addresses_with_digests(store: Store, kind: str) -> None:
    pages, base = store.services.pages, "/.well-known/agent-skills"
    data = PDF if kind == "skill-md" else zipped({"pdf/SKILL.md": PDF, "pdf/scripts/a.py": b"1"})
    digest = hashlib.sha256(data).hexdigest()
    entry = {"name": "pdf", "type": kind, "description": "PDF", "url": "files/pdf.bin"}
    pages[f"{base}/index.json"] = Said({"skills": [{**entry, "digest": f"sha256:{digest}"}]})
    pages[f"{base}/files/pdf.bin"] = Said(data)
    package = await store.hub.fetch(f"{store.services.url}{base}/pdf")
    assert package.files[MAIN] == PDF
    assert ("scripts/a.py" in package.files) == (kind == "archive")
    pages[f"{base}/files/pdf.bin"] = Said(data + b" ")
    with pytest.raises(HermesError, match="digest"):
        await store.hub.fetch(f"{store.services.url}{base}/pdf")


async def test_a_site_without_skills_says_so(store: Store) -> None:
    with pytest.raises(NotFound, match="publishes no skills"):
        await store.hub.fetch(store.services.url)


async def test_an_address_brings_the_files_that_the_text_speaks_of(store: Store) -> None:
    text = skill_text("pdf", body="Read references/a.md and run `scripts/b.py`; see references/no.")
    store.services.pages["/x/SKILL.md"] = Said(text.encode())
    store.services.pages["/x/references/a.md"] = Said(b"a")
    store.services.pages["/x/scripts/b.py"] = Said(b"b")
    package = await store.hub.fetch(f"{store.services.url}/x/SKILL.md")
    assert set(package.files) == {MAIN, "references/a.md", "scripts/b.py"}
    assert package.notes == ("references/no is referenced but missing.",)


def test_only_support_files_are_spoken_of() -> None:
    text = "a/references/x ../references/y references/../../z scripts/ok.py http://h/assets/w"
    assert referenced_files(text) == ("scripts/ok.py",)


async def test_clawhub_is_searched_and_unpacked(store: Store) -> None:
    detail = {"summary": "Work with PDF", "version": "1.2.0"}
    store.services.claws["pdf"] = (detail, zipped({MAIN: PDF, "scripts/a.py": b"1"}))
    found, _ = await store.hub.search("pdf", source="clawhub")
    assert [(one.identifier, one.version) for one in found] == [("clawhub/pdf", "1.2.0")]
    browsed, _ = await store.hub.search("", source="clawhub")
    assert [one.name for one in browsed] == ["pdf"]
    package = await store.hub.fetch("clawhub/pdf")
    assert package.files == {MAIN: PDF, "scripts/a.py": b"1"}
    assert package.listing.url.endswith("/somebody/pdf")
    asked = store.services.asked[-1]
    assert (asked.path, asked.query) == (
        "/clawhub/api/v1/download",
        {"slug": "pdf", "version": "1.2.0"},
    )


async def test_what_clawhub_blocks_is_not_fetched(store: Store) -> None:
    moderation = {"isSuspicious": True, "isMalwareBlocked": True, "verdict": "malicious"}
    detail = {"summary": "x", "version": "1", "moderation": moderation}
    store.services.claws["pdf"] = (detail, zipped({MAIN: PDF}))
    with pytest.raises(HermesError, match="malware"):
        await store.hub.fetch("clawhub/pdf")
    moderation["isMalwareBlocked"] = False
    assert (await store.hub.fetch("clawhub/pdf")).notes == ("ClawHub marks it as suspicious.",)


async def test_an_assistant_of_lobehub_becomes_a_skill(store: Store) -> None:
    store.services.agents["Tea Expert"] = {
        "identifier": "Tea Expert",
        "author": "x",
        "meta": {"title": "Tea", "description": 'Knows "tea": all', "tags": ["tea", "drink"]},
        "config": {"systemRole": "You know tea.\n---\nBrew it."},
    }
    found, _ = await store.hub.search("tea", source="lobehub")
    assert [one.identifier for one in found] == ["lobehub/Tea Expert"]
    package = await store.hub.fetch("lobehub/Tea Expert")
    skill, body = parse_skill(package.files[MAIN].decode())
    assert (skill.name, skill.description) == ("tea-expert", 'Knows "tea": all')
    assert skill.tags == ("tea", "drink")
    assert "You know tea.\n---\nBrew it." in body


async def test_a_marketplace_names_the_skills_of_its_plugins(store: Store) -> None:
    manifest = {
        "name": "market",
        "owner": {"name": "x"},
        "metadata": {"pluginRoot": "./plugins"},
        "plugins": [
            {"name": "docs", "source": "./docs", "description": "D", "skills": ["./mine/pdf"]},
            {"name": "auto", "source": "./auto"},
            {"name": "far", "source": {"source": "github", "repo": "some/repo"}},
            {"name": "npm", "source": {"source": "npm", "package": "x"}},
        ],
    }
    store.services.repos["anthropics/skills"] = {
        ".claude-plugin/marketplace.json": json.dumps(manifest).encode(),
        "plugins/docs/mine/pdf/SKILL.md": PDF,
        "plugins/docs/other/SKILL.md": XLS,
        "plugins/auto/skills/sheets/SKILL.md": XLS,
    }
    store.services.repos["some/repo"] = {"skills/far/SKILL.md": skill_text("far").encode()}
    found, _ = await store.hub.search("", source="claude-marketplace")
    assert [(one.name, one.trust) for one in found] == [
        ("pdf", "trusted"),
        ("sheets", "trusted"),
        ("far", "community"),
    ]
    package = await store.hub.fetch("claude-marketplace/anthropics/skills/far")
    assert (package.listing.trust, package.listing.name) == ("community", "far")
    with pytest.raises(NotFound):
        await store.hub.fetch("claude-marketplace/anthropics/skills/other")


async def test_a_bare_name_is_found_if_it_is_the_only_one(store: Store) -> None:
    store.services.repos["some/repo"] = REPO
    store.bench.ledger.write_taps(("some/repo",))
    assert (await store.hub.fetch("pdf")).files[MAIN] == PDF
    store.services.claws["pdf"] = ({"summary": "x", "version": "1"}, zipped({MAIN: PDF}))
    with pytest.raises(NotFound, match="Several"):
        await store.hub.fetch("pdf")


async def test_a_source_that_fails_is_named_and_the_others_answer(store: Store) -> None:
    store.services.limited = True
    store.bench.ledger.write_taps(("some/repo",))
    store.services.claws["pdf"] = ({"summary": "x", "version": "1"}, zipped({MAIN: PDF}))
    found, problems = await store.hub.search("pdf")
    assert [one.source for one in found] == ["clawhub"]
    assert any(problem.startswith("github: ") for problem in problems)


async def test_too_many_requests_are_told_with_the_wait(store: Store) -> None:
    store.services.pages["/x/SKILL.md"] = Said(b"", 429, {"retry-after": "34"})
    with pytest.raises(HermesError, match="in 34 seconds"):
        await store.hub.fetch(f"{store.services.url}/x/SKILL.md")
    store.services.pages["/x/SKILL.md"] = NOT_FOUND
    with pytest.raises(NotFound):
        await store.hub.fetch(f"{store.services.url}/x/SKILL.md")
