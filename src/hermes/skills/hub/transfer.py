"""Exports and imports the list of installed skills; publishes a skill to GitHub."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from hermes.codec.json import DecodeError, decode
from hermes.codec.values import JsonObject, Value
from hermes.core.errors import HermesError, NotFound, UsageError
from hermes.skills.hub.lock import HubLedger
from hermes.skills.hub.source import HubClient, decode_body
from hermes.skills.hub.sources.github import GitHub


class SnapshotSkill(Value):
    """A skill to install, with its expected hash."""

    identifier: str
    name: str
    category: str = ""
    content_hash: str = ""


class HubSnapshot(Value, omit_defaults=False):
    version: int = 1
    taps: tuple[str, ...] = ()
    skills: tuple[SnapshotSkill, ...] = ()


def build_hub_snapshot(ledger: HubLedger) -> HubSnapshot:
    wanted = tuple(
        SnapshotSkill(
            identifier=each.identifier,
            name=name,
            category=each.install_path.rpartition("/")[0],
            content_hash=each.content_hash,
        )
        for name, each in sorted(ledger.list_installed().items())
    )
    return HubSnapshot(taps=ledger.own_taps(), skills=wanted)


def read_snapshot(raw: bytes) -> HubSnapshot:
    try:
        return decode(HubSnapshot, raw)
    except DecodeError as error:
        raise UsageError(f"The file is not a list of skills ({error}).") from error


class _Named(Value):
    sha: str = ""


class _Ref(Value):
    object: _Named


class _CommitTree(Value):
    tree: _Named


class _Permissions(Value):
    push: bool = False


class _Repo(Value):
    full_name: str
    default_branch: str = "main"
    permissions: _Permissions = _Permissions()


class _Pull(Value):
    html_url: str


class SkillPublisher:
    """Opens a pull request with a skill. Forks the repository when the token may not push."""

    def __init__(self, web: HubClient, github: GitHub) -> None:
        self._web = web
        self._github = github

    async def publish(self, repo: str, name: str, files: Mapping[str, bytes], digest: str) -> str:
        """Returns the pull request's URL; UsageError without a token."""
        if not await self._web.token():
            raise UsageError("Publishing needs GITHUB_TOKEN; set it with `hermes config set`.")
        api, headers = self._web.url("github_api"), await self._github.headers()
        target = await self._web.json(_Repo, f"{api}/repos/{repo}", headers)
        place = target
        if not target.permissions.push:
            answer = await self._web.post(f"{api}/repos/{repo}/forks", headers, {})
            place = decode_body(_Repo, f"{repo}/forks", answer.body)
        branch = f"skill-{name}-{digest[:8]}"
        commit = await self._commit(api, headers, place, name, files)
        made = {"ref": f"refs/heads/{branch}", "sha": commit}
        await self._web.post(f"{api}/repos/{place.full_name}/git/refs", headers, made)
        owner = place.full_name.partition("/")[0]
        asked: JsonObject = {
            "title": f"Add the skill {name}",
            "head": branch if place is target else f"{owner}:{branch}",
            "base": target.default_branch,
            "body": f"The skill `{name}` with {len(files)} file(s).",
        }
        answer = await self._web.post(f"{api}/repos/{repo}/pulls", headers, asked)
        return decode_body(_Pull, f"{repo}/pulls", answer.body).html_url

    async def _commit(
        self,
        api: str,
        headers: dict[str, str],
        place: _Repo,
        name: str,
        files: Mapping[str, bytes],
    ) -> str:
        git = f"{api}/repos/{place.full_name}/git"
        try:
            ref = await self._web.json(_Ref, f"{git}/ref/heads/{place.default_branch}", headers)
        except NotFound as error:
            raise HermesError(f"{place.full_name} is not ready yet; try again soon.") from error
        base = await self._web.json(_CommitTree, f"{git}/commits/{ref.object.sha}", headers)
        tree: list[JsonObject] = []
        for path, data in sorted(files.items()):
            body = {"content": base64.b64encode(data).decode(), "encoding": "base64"}
            blob = decode_body(
                _Named, git, (await self._web.post(f"{git}/blobs", headers, body)).body
            )
            tree.append(
                {"path": f"skills/{name}/{path}", "mode": "100644", "type": "blob", "sha": blob.sha}
            )
        asked: JsonObject = {"base_tree": base.tree.sha, "tree": tree}
        made = decode_body(_Named, git, (await self._web.post(f"{git}/trees", headers, asked)).body)
        asked = {
            "message": f"Add the skill {name}",
            "tree": made.sha,
            "parents": [ref.object.sha],
        }
        answer = await self._web.post(f"{git}/commits", headers, asked)
        return decode_body(_Named, git, answer.body).sha
