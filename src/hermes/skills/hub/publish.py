"""Publishes a skill to GitHub."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from hermes.codec.values import JsonObject, Value
from hermes.core.errors import HermesError, NotFound, UsageError
from hermes.skills.hub.source import HubClient
from hermes.skills.hub.sources.github import GitHub


class _Object(Value):
    sha: str = ""


class _Ref(Value):
    object: _Object


class _CommitTree(Value):
    tree: _Object


class _Permissions(Value):
    push: bool = False


class _Repo(Value):
    full_name: str
    default_branch: str = "main"
    permissions: _Permissions = _Permissions()


class _Pull(Value):
    html_url: str


async def publish_skill(
    web: HubClient, github: GitHub, repo: str, name: str, files: Mapping[str, bytes], digest: str
) -> str:
    """Opens a pull request with a skill and returns its URL; UsageError without a token. Forks the
    repository when the token may not push."""
    if not await web.token():
        raise UsageError("Publishing needs GITHUB_TOKEN; set it with `hermes config set`.")
    repos, headers = f"{web.url('github_api')}/repos", await github.headers()
    target = await web.json(_Repo, f"{repos}/{repo}", headers)
    place = target
    if not target.permissions.push:
        place = await web.post(_Repo, f"{repos}/{repo}/forks", headers, {})
    git = f"{repos}/{place.full_name}/git"
    try:
        ref = await web.json(_Ref, f"{git}/ref/heads/{place.default_branch}", headers)
    except NotFound as error:
        raise HermesError(f"{place.full_name} is not ready yet; try again soon.") from error
    base = await web.json(_CommitTree, f"{git}/commits/{ref.object.sha}", headers)
    entries: list[JsonObject] = []
    for path, data in sorted(files.items()):
        body = {"content": base64.b64encode(data).decode(), "encoding": "base64"}
        sha = (await web.post(_Object, f"{git}/blobs", headers, body)).sha
        file = {"path": f"skills/{name}/{path}", "mode": "100644", "type": "blob", "sha": sha}
        entries.append(file)
    asked: JsonObject = {"base_tree": base.tree.sha, "tree": entries}
    tree = await web.post(_Object, f"{git}/trees", headers, asked)
    title, branch = f"Add the skill {name}", f"skill-{name}-{digest[:8]}"
    asked = {"message": title, "tree": tree.sha, "parents": [ref.object.sha]}
    commit = await web.post(_Object, f"{git}/commits", headers, asked)
    asked = {"ref": f"refs/heads/{branch}", "sha": commit.sha}
    await web.post(JsonObject, f"{git}/refs", headers, asked)
    owner = place.full_name.partition("/")[0]
    asked = {
        "title": title,
        "head": branch if place is target else f"{owner}:{branch}",
        "base": target.default_branch,
        "body": f"The skill `{name}` with {len(files)} file(s).",
    }
    return (await web.post(_Pull, f"{repos}/{repo}/pulls", headers, asked)).html_url
