"""Platforms, forges and tools of operations, by their verbs: looking is free, changing is not."""

from __future__ import annotations

from hermes.policy.call import Call, Check
from hermes.policy.patterns import regex
from hermes.policy.programs.verbs import Verbs, verbs
from hermes.policy.shell.state import Stream

# Settings that hold no password, by their names.
PLAIN_SETTING = regex(r"(?i)[A-Z_]*(ENV|LEVEL|PORT|HOST|VERSION|MODE|DEBUG|TZ|LANG|CONCURRENCY)")


def _remote(reads: str = "", works: str = "", bare: str = "read", **asks: str) -> Check:
    return verbs(Verbs(reads=reads, works=works, asks=asks, otherwise="remote_state", bare=bare))


def _watcher(call: Call) -> Stream | None:
    """Windows onto a cluster or a server: fine as long as they cannot be used to change it."""
    if call.name in ("k9s", "lazydocker", "ctop") and "--readonly" not in call.arguments:
        call.ask("remote_state", f"Whatever is done in `{call.name}` changes what others share.")
    call.work("network", f"`{call.name}` looks at what runs.")
    return None


def _switch(call: Call) -> Stream | None:
    """kubectx and kubens: alone they tell, with a name they switch."""
    if call.options().operands or call.options().has("-d", "-u", "--unset"):
        call.ask("system_config", "It changes which cluster the next commands work on.")
    call.work("network", "It tells which clusters there are.")
    return None


_GORELEASER = _remote("check healthcheck", "build")


def _goreleaser(call: Call) -> Stream | None:
    if {"--snapshot", "--skip=publish"} & set(call.arguments):
        call.work(reason="It builds the project without publishing it.")
        return None
    return _GORELEASER(call)


_HEROKU = _remote("apps logs ps status version releases config:get")


def _heroku(call: Call) -> Stream | None:
    words = call.options("-a -r --app --remote").operands
    if words[:1] == ["config:get"] and not all(map(PLAIN_SETTING.fullmatch, words[1:])):
        call.ask("credentials", "It shows a setting that may hold a password.")
    return _HEROKU(call)


PLATFORMS: dict[str, Check] = {
    **dict.fromkeys(("stern", "kubetail", "k9s", "lazydocker", "ctop"), _watcher),
    **dict.fromkeys(("kubectx", "kubens"), _switch),
    "helm": _remote(
        "list ls status get:values get:all get:notes history show search env version lint template "
        "repo:list dependency:list verify plugin:list",
        "dependency:update dependency:build dep:update dep:build dep:up package create "
        "repo:update repo:add pull",
    ),
    **dict.fromkeys(
        ("codecov", "coveralls", "surge", "now", "cf", "gh-pages", "salt", "cap"),
        _remote(bare="remote_state"),
    ),
    "adb": _remote(
        "devices logcat version get-state help shell:getprop shell:dumpsys shell:ls shell:ps "
        "shell:pm:list shell:wm shell:df shell:uptime"
    ),
    "fastlane": _remote("lanes env", "test tests scan snapshot gym build_app lint"),
    "airflow": _remote("info version dags:list dags:show tasks:list", "tasks:test dags:test"),
    "wandb": _remote("status", "offline disabled"),
    "kcat": _remote("", bare="remote_state"),
    "skopeo": _remote("inspect list-tags"),
    "minikube": _remote("status version ip profile logs", "", container="stop delete start"),
    "kind": _remote("get version", "", container="delete create load"),
    "vagrant": _remote(
        "status global-status version box:list ssh-config validate", "", container="destroy"
    ),
    "pulumi": _remote("preview version whoami stack:ls stack:output about logs config"),
    **dict.fromkeys(("serverless", "sls"), _remote("info print version", "offline package")),
    "cdk": _remote("ls list synth diff doctor version", "synth"),
    "sam": _remote("validate list logs", "build local"),
    "eb": _remote("status list logs health"),
    "heroku": _heroku,
    "fly": _remote("status logs version apps:list info"),
    "flyctl": _remote("status logs version apps:list info"),
    "vercel": _remote(
        "ls list inspect logs whoami --version env:ls", "dev build", bare="remote_state"
    ),
    "netlify": _remote("status sites:list", "dev build"),
    "firebase": _remote("projects:list use", "emulators:start serve"),
    "wrangler": _remote("whoami tail", "dev build types"),
    "railway": _remote("status logs whoami"),
    "argocd": _remote("app:list app:get app:diff version"),
    "flux": _remote("get check logs version"),
    "skaffold": _remote("diagnose version", "build"),
    "svn": _remote("info status log diff blame cat list ls st", "update checkout add revert co up"),
    "hg": _remote(
        "status log diff summary cat annotate heads branches id",
        "add commit update pull init clone",
    ),
    "packer": _remote("validate inspect version fmt", "init"),
    "goreleaser": _goreleaser,
    "twine": _remote("check"),
    "dependabot": _remote(),
    "sentry-cli": _remote("info"),
    "stripe": _remote("version status"),
    "supabase": _remote("status projects:list", "start init"),
    "travis": _remote("status logs"),
    "circleci": _remote("config:validate version"),
    "helmfile": _remote("list status diff lint template version", "lint template build deps"),
    "tilt": _remote("version doctor dump get describe logs"),
    "buildah": _remote(
        "images containers inspect version info", "bud build from copy add run config commit tag"
    ),
    "oras": _remote("manifest:fetch repo:ls repo:tags discover version", "pull"),
    "regctl": _remote("tag:ls repo:ls manifest:get image:inspect version"),
    "crane": _remote("ls catalog config digest manifest version validate"),
    "cosign": _remote("verify tree triangulate version"),
    "ansible-galaxy": _remote("list search info", "init", package_install="install"),
    **dict.fromkeys(
        ("hf", "huggingface-cli"),
        _remote("whoami env version scan-cache cache repo-files", "download", credentials="login"),
    ),
    "ollama": _remote("list ls ps show help", "run serve pull", delete="rm stop"),
    "kafkactl": _remote("get describe consume version"),
    "nats": _remote("stream:ls stream:info server:info account:info"),
    **dict.fromkeys(("wp", "drush"), _remote("core:version plugin:list status version")),
    "amplify": _remote("status env:list"),
    "sst": _remote("version diff", "build"),
    "hasura": _remote("version migrate:status", "init"),
    "jj": _remote(
        "log status st diff show op:log bookmark:list",
        "new describe desc commit edit squash split rebase git:fetch git:clone git:init",
    ),
    "git-lfs": _remote("ls-files status env version logs", "pull fetch checkout install track"),
    "atlas": _remote(
        "migrate:lint migrate:status migrate:hash schema:inspect version",
        "migrate:diff migrate:new schema:fmt",
        database="schema:apply schema:clean migrate:apply migrate:down migrate:set",
    ),
    **dict.fromkeys(("ansible-config", "xcode-select"), _remote("dump view list -p --print-path")),
    "logcli": _remote("query labels series stats"),
    "gitlab-runner": _remote("list verify status version", "exec"),
    **dict.fromkeys(
        """eksctl kops istioctl linkerd velero argo tkn jira linear twilio VBoxManage multipass k3d
        calicoctl cilium kaggle salt-call puppet inspec step certbot colima limactl lima orb
        telepresence otelcol traefik envoy prefect ghcup emulator garden devspace paket flit
        vsce eas""".split(),
        _remote("parser:validate profile:check backup:get pipeline:list", "test build package"),
    ),
    **dict.fromkeys(("expo", "ionic", "nitro"), _remote("doctor", "start serve build lint test")),
    "log": _remote("show stream stats help"),
    "scontrol": _remote("show ping version"),
    "localstack": _remote("status logs", "start stop wait"),
    "zoxide": _remote("query", "add"),
    "esptool.py": _remote("chip_id flash_id read_mac image_info version"),
    "esptool": _remote("chip_id flash_id read_mac image_info version chip-id flash-id read-mac"),
}
