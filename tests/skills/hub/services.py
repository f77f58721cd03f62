"""The services that skills come from, on loopback: each answers as its documentation says."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests import loopback
from tests.loopback import Asked


class Said(loopback.Said):
    def __init__(
        self, body: Any = b"", status: int = 200, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(status, body, headers, "application/json")


NOT_FOUND = Said({"message": "Not Found"}, 404)


class Services:
    """All of them at one address, told apart by the first part of the path."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[Asked] = []
        self.repos: dict[str, dict[str, bytes]] = {}
        self.links: set[str] = set()
        self.limited = False
        self.pushes = True
        self.swapped: dict[str, bytes] = {}
        self.pages: dict[str, Said] = {}
        self.directory: list[dict[str, Any]] = []
        self.claws: dict[str, tuple[dict[str, Any], bytes]] = {}
        self.agents: dict[str, dict[str, Any]] = {}
        self.blobs: dict[str, bytes] = {}
        self.pulls: list[dict[str, Any]] = []

    @property
    def urls(self) -> dict[str, str]:
        return {
            "github_api": f"{self.url}/api.github",
            "github_raw": f"{self.url}/raw.github",
            "skills_sh": f"{self.url}/skills.sh",
            "clawhub": f"{self.url}/clawhub",
            "lobehub": f"{self.url}/lobehub",
        }

    def answer(self, asked: Asked) -> Said:
        self.asked.append(asked)
        service, _, rest = asked.path[1:].partition("/")
        match service:
            case "api.github":
                return self._github(asked, rest)
            case "raw.github":
                return self._raw(rest)
            case "skills.sh":
                return self._skills_sh(asked, rest)
            case "clawhub":
                return self._clawhub(asked, rest)
            case "lobehub":
                return self._lobehub(rest)
            case _:
                return self.pages.get(asked.path, NOT_FOUND)

    def _github(self, asked: Asked, rest: str) -> Said:
        if self.limited:
            return Said({"message": "rate limit"}, 403, {"x-ratelimit-remaining": "0"})
        if rest == "app/installations/77/access_tokens":
            return Said({"token": "pass-1", "expires_at": "2030-01-01T00:00:00Z"}, 201)
        parts = rest.split("/")
        repo, tail = "/".join(parts[1:3]), "/".join(parts[3:])
        if repo not in self.repos:
            return NOT_FOUND
        if asked.method == "POST":
            return self._pushed(repo, tail, json.loads(asked.body))
        if tail == "":
            facts = {"full_name": repo, "default_branch": "main", "private": False}
            return Said({**facts, "permissions": {"push": self.pushes, "pull": True}})
        if tail == "git/trees/main" and asked.query == {"recursive": "1"}:
            return Said({"sha": "t0", "tree": self._tree(repo), "truncated": False})
        if tail == "git/ref/heads/main":
            return Said({"ref": "refs/heads/main", "object": {"sha": "c0", "type": "commit"}})
        if tail == "git/commits/c0":
            return Said({"sha": "c0", "tree": {"sha": "t0"}})
        return NOT_FOUND

    def _tree(self, repo: str) -> list[dict[str, Any]]:
        files = self.repos[repo]
        folders = sorted({path.rpartition("/")[0] for path in files} - {""})
        trees = [{"path": f, "mode": "040000", "type": "tree", "sha": "x"} for f in folders]
        return trees + [
            {
                "path": path,
                "mode": "120000" if path in self.links else "100644",
                "type": "blob",
                "sha": git_sha(data),
                "size": len(data),
            }
            for path, data in files.items()
        ]

    def _pushed(self, repo: str, tail: str, body: dict[str, Any]) -> Said:
        match tail:
            case "git/blobs":
                data = base64.b64decode(body["content"])
                self.blobs[git_sha(data)] = data
                return Said({"sha": git_sha(data)}, 201)
            case "git/trees" | "git/commits":
                self.pulls.append({tail: body, "repo": repo})
                return Said({"sha": f"new-{tail}"}, 201)
            case "git/refs":
                self.pulls.append({tail: body, "repo": repo})
                return Said({"ref": body["ref"]}, 201)
            case "forks":
                self.repos["me/fork"] = {}
                return Said({"full_name": "me/fork", "default_branch": "main"}, 202)
            case "pulls":
                self.pulls.append({tail: body, "repo": repo})
                return Said({"html_url": f"https://github.com/{repo}/pull/7"}, 201)
            case _:
                return NOT_FOUND

    def _raw(self, rest: str) -> Said:
        owner, name, branch, path = rest.split("/", 3)
        files = self.repos.get(f"{owner}/{name}", {})
        if branch != "main" or path not in files:
            return Said(b"404: Not Found", 404)
        return Said(self.swapped.get(path, files[path]), headers={"content-type": "text/plain"})

    def _skills_sh(self, asked: Asked, rest: str) -> Said:
        query = asked.query.get("q", "")
        if rest != "api/search" or len(query) < 2:
            return Said({"error": "Query must be at least 2 characters"}, 400)
        found = [each for each in self.directory if query in each["name"]]
        limit = int(asked.query.get("limit", "50"))
        return Said({"query": query, "searchType": "fuzzy", "skills": found[:limit]})

    def _clawhub(self, asked: Asked, rest: str) -> Said:
        if rest == "api/v1/search":
            hits = [
                {"score": 0.5, "slug": slug, "displayName": slug.title(), "summary": d["summary"]}
                | {"version": d["version"], "updatedAt": 0}
                for slug, (d, _) in self.claws.items()
                if asked.query["q"] in slug
            ]
            return Said({"results": hits})
        if rest == "api/v1/skills":
            items = [
                {"slug": s, "displayName": s, "summary": d["summary"], "tags": {}}
                for s, (d, _) in self.claws.items()
            ]
            return Said({"items": items, "nextCursor": None})
        if rest == "api/v1/download":
            found = self.claws.get(asked.query["slug"])
            return (
                Said(found[1], headers={"content-type": "application/zip"}) if found else NOT_FOUND
            )
        slug = rest.removeprefix("api/v1/skills/")
        if slug not in self.claws:
            return Said(b"Skill not found", 404)
        detail, _ = self.claws[slug]
        return Said(
            {
                "skill": {
                    "slug": slug,
                    "displayName": slug,
                    "summary": detail["summary"],
                    "stats": {},
                },
                "latestVersion": {"version": detail["version"], "createdAt": 0, "changelog": ""},
                "owner": {"handle": "somebody", "displayName": "S", "image": None},
                "moderation": detail.get("moderation"),
            }
        )

    def _lobehub(self, rest: str) -> Said:
        if rest == "index.json":
            return Said(
                {
                    "schemaVersion": 1,
                    "agents": [
                        {
                            "identifier": i,
                            "author": a["author"],
                            "meta": a["meta"],
                            "createdAt": "x",
                        }
                        for i, a in self.agents.items()
                    ],
                }
            )
        agent = self.agents.get(rest.removesuffix(".json"))
        return Said(agent) if agent else NOT_FOUND


def git_sha(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def zipped(files: dict[str, bytes], **more: int) -> bytes:
    """`more` gives entries of Unix modes, for links."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = more.get(name, 0o100644) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
    return packed.getvalue()


@asynccontextmanager
async def serving(services: Services) -> AsyncIterator[Services]:
    async with loopback.serving(services.answer) as services.url:
        yield services
