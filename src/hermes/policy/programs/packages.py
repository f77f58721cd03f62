"""Package managers and toolchains: what lock files name is work, anything new is asked about."""

from __future__ import annotations

import re

from hermes.policy.call import Call, Options
from hermes.policy.patterns import regex
from hermes.policy.programs.project_tools import (
    OUTWARD,
    ask_if_foreign_folder,
    check_worker,
    targets_tests,
)
from hermes.policy.programs.running import is_fetched, is_project_tool, own_program
from hermes.policy.programs.script_code import check_code
from hermes.policy.programs.subcommands import check_subcommands
from hermes.policy.programs.wrappers import check_cargo_watch
from hermes.policy.shell.state import UNKNOWN, Stream
from hermes.policy.words import word_set

PIP_TAKING = """
    -w --wheel-dir -d --dest -r -c -e -i -f -t --requirement --constraint --editable --index-url
    --extra-index-url --find-links --target --prefix --root --python --platform --only-binary
    --no-binary --proxy --trusted-host --cache-dir --global-option --install-option
    --config-settings --group --log --build-option --upgrade-strategy --src --timeout --retries
    --format --path
"""
NEW = "package_install"


def check_pip(call: Call) -> Stream | None:
    words = list(call.arguments)
    while words and words[0].startswith("-"):
        if words[0] in ("--version", "-V", "--help"):
            return None
        words.pop(0)
    verb, rest = (words[0], words[1:]) if words else ("", [])
    if verb in ("install", "download", "wheel"):
        _pip_install(call, rest)
    elif verb in (
        "list",
        "show",
        "freeze",
        "check",
        "index",
        "debug",
        "help",
        "hash",
        "inspect",
        "tree",
    ) or (
        verb in ("config", "cache")
        and rest[:1]
        and rest[0] in ("list", "get", "debug", "info", "dir")
    ):
        return None
    elif verb in ("compile", "sync"):
        call.work("network", "It installs what the lock file names.")
    elif verb:
        call.ask(NEW, f"`pip {verb}` changes what is installed or how.")
    return None


def _pip_install(call: Call, words: list[str]) -> None:
    options = Options(words, PIP_TAKING)
    ask_if_foreign_folder(call)
    places = options.values("-f", "--find-links")
    if options.values("-i", "--index-url", "--extra-index-url", "--proxy") or not all(
        "://" not in each and call.here(each) for each in places
    ):
        call.ask(NEW, "It takes packages from another place than usual.")
    if options.values("--global-option", "--install-option", "--config-settings", "--build-option"):
        call.ask("shell_escape", "It gives the installation of a package orders of its own.")
    call.writes(*options.values("-t", "--target", "--prefix", "--root"))
    lists = options.values("-r", "--requirement", "-c", "--constraint")
    for name in (*lists, *options.values("-e", "--editable")):
        if not (name in lists and _is_local(call, name)) and not _of_project(call, name):
            call.ask(NEW, f"It installs what {name} says, which is not part of the workspace.")
    for name in options.operands:
        if is_fetched(call, call.path(name)):
            call.ask("remote_code", f"It installs {name}, which was fetched from elsewhere.")
        if not _of_project(call, name) and name not in ("pip", "setuptools", "wheel"):
            call.ask(NEW, f"It installs {name.replace(UNKNOWN, '…')} and runs its code.")
    if options.has("--user", "--break-system-packages"):
        call.ask(NEW, "It installs outside the project.")
    call.work("network", "It installs what the project names.")


def _of_project(call: Call, name: str) -> bool:
    """A file or folder of the workspace, possibly with extras: `.[dev]`."""
    bare = re.sub(r"\[[^\]]*\]$", "", name)
    looks_local = bare.startswith((".", "/")) or bare.endswith(
        (".txt", ".whl", ".toml", ".tar.gz", ".in")
    )
    return looks_local and _is_local(call, bare)


def _is_local(call: Call, name: str) -> bool:
    return "://" not in name and UNKNOWN not in name and call.here(name)


def check_npm(call: Call) -> Stream | None:
    options = call.options(
        "--prefix -w --workspace --registry --loglevel -C --dir --cwd --filter -F --script-shell"
        + (" -e --eval -p --print" if call.name == "bun" else "")
    )
    words = options.operands
    verb, names = (words[0], words[1:]) if words else ("", [])
    ask_if_foreign_folder(call)
    if call.name == "bun" and (codes := options.values("-e", "--eval", "-p", "--print")):
        for code in codes:
            check_code(call, code, backticks=False)
        return None
    if options.values("--registry"):
        call.ask(NEW, "It takes packages from another place than usual.")
    if options.values("--script-shell"):
        call.ask("shell_escape", "It makes scripts run in another shell.")
    for folder in options.values("--prefix", "-C", "--dir", "--cwd"):
        call.writes(folder)
        own_program(call, folder)
    if verb in ("update", "up", "link", "rebuild") and options.has("-g", "--global"):
        call.ask(NEW, "It changes what is installed for the whole machine.")
    if verb == "node" and call.name in ("yarn", "pnpm"):
        return call.runs(call.arguments[call.arguments.index("node") :])
    if verb in ("exec", "x", "dlx", "create", "init") and (names or verb in ("exec", "x", "dlx")):
        return _fetched_tool(call, names, making=verb in ("create", "init"))
    if verb in ("install", "i", "add", "ci", "install-ci-test", "isntall", "in", "ins"):
        _npm_install(call, options, names)
    elif verb in ("run", "run-script", "rum", "urn"):
        _npm_script(call, names)
    elif call.name in ("yarn", "pnpm", "bun") and not _NPM_KNOWN.match(verb):
        if verb == "" and call.name == "yarn":
            call.work("network", "It installs what the lock file names.")
        else:
            _npm_script(call, words)
    else:
        if verb == "config" and re.search(r"(?i)auth|token|password", " ".join(names)):
            call.ask("credentials", "It shows or changes a stored secret.")
        return check_subcommands(call)
    return None


def _npm_install(call: Call, options: Options, names: list[str]) -> None:
    if options.has("-g", "--global", "--location"):
        call.ask(NEW, "It installs for the whole machine.")
    elif any(not _of_project(call, name) for name in names):
        call.ask(NEW, f"It installs {', '.join(names).replace(UNKNOWN, '…')} and runs its code.")
    call.work("network", "It installs what the lock file names.")


def _npm_script(call: Call, names: list[str]) -> None:
    for name in names[:1]:
        if OUTWARD.match(name) or re.match(r"(semantic-)?release($|[:_-](?!dry))", name):
            call.ask("remote_state", f"`{name}` sounds as if it changes something elsewhere.")
        if UNKNOWN in name:
            call.ask("unclear", "The script that it runs is only known when it runs.")
    call.work(reason="It runs a script of the project.")


_NPM_KNOWN = regex(
    r"^(publish|unpublish|deprecate|owner|access|token|login|logout|adduser|add|remove|rm|global"
    r"|config|set|link|unlink|uninstall|un|update|up|upgrade|ls|list|outdated|audit|view|info|why"
    r"|version|pack|cache|store|npm|dist-tag|team|hook|profile|star|patch|import|install|i|ci|test"
    r"|start|--version|help|doctor|prune|dedupe|explain|pkg|root|bin|prefix|whoami|search|fund"
    r"|query|licenses|workspaces|plugin|policies|deploy|pm|build)$"
)


def _fetched_tool(call: Call, words: list[str], *, making: bool = False) -> Stream | None:
    """npx, uvx and others run a tool of the project, or fetch and run one."""
    name = words[0] if words else ""
    bare = re.sub(r"(?<=.)@[^/]*$", "", name)
    making = making or bare.startswith("create-")
    bare = bare.removeprefix("@angular/").replace("create-", "", 1) if making else bare
    if making and bare in word_set("npm_create_templates"):
        call.work("network", f"It begins a project with {name}.")
        call.writes(*(word for word in words[1:2] if not word.startswith("-")))
        return None
    if bare in word_set("npx_tools") or (bare and is_project_tool(call, bare)):
        call.work(reason=f"It runs {bare}, a tool of the project.")
        if not call.follower.knows(bare):
            return check_worker(call.part(words[1:], name=bare))
        return call.runs([bare, *words[1:]])
    call.ask("remote_code", f"It fetches {name.replace(UNKNOWN, '…') or 'a package'} and runs it.")
    return None


def check_npx(call: Call) -> Stream | None:
    options = call.options(call.record.values, permute=False)
    for text in options.values("-c", "--call"):
        call.ask("remote_code", "It fetches packages to run a command with.")
        call.runs_text(text)
        return None
    if not options.operands and options.has("--version", "-v", "--help"):
        return None
    if options.values("-p", "--package", "--from", "--with", "--registry"):
        call.ask("remote_code", "It fetches packages and runs them.")
    return _fetched_tool(call, options.operands)


def check_pipx(call: Call) -> Stream | None:
    words = call.options(call.record.values).operands
    if words[:1] == ["run"]:
        return _fetched_tool(call, words[1:])
    if words[:1] not in (["list"], ["environment"], []):
        call.ask(NEW, "It installs a program for the whole machine.")
    return None


def check_uv(call: Call) -> Stream | None:
    options = call.options(
        "--project --directory --python -p --with --group --extra --index-url --config-file",
        permute=False,
    )
    words = options.operands
    verb, rest = (words[0], words[1:]) if words else ("", [])
    if verb == "pip":
        return check_pip(call.part(rest, name="pip"))
    if verb == "run":
        inner = Options(
            rest, "--with --python -p --group --extra --env-file --package -m", permute=False
        )
        if inner.values("--with", "--with-requirements"):
            call.ask(NEW, "It fetches packages to run a command with.")
        return call.runs(_script_words(inner.operands)) if inner.operands else None
    if (verb == "tool" and rest[:1] == ["run"]) or verb == "x":
        return _fetched_tool(call, rest[1:])
    return check_subcommands(call)


def _script_words(words: list[str]) -> list[str]:
    return ["python", *words] if words and words[0].endswith(".py") else words


def check_project_tool(call: Call) -> Stream | None:
    """poetry, pipenv, pdm, hatch, bundle, conda: `run` runs a command of the project."""
    ask_if_foreign_folder(call)
    words = call.options(
        "-C -P --directory --project -n --name -p --prefix -e", permute=False
    ).operands
    verb, rest = (words[0], words[1:]) if words else ("", [])
    if verb in ("run", "exec") and call.name not in ("hatch", "rye"):
        names = [word for word in rest if not word.startswith("-")]
        return call.runs(_script_words(rest[rest.index(names[0]) :])) if names else None
    if (
        verb == "install"
        and call.name in ("pipenv",)
        and [w for w in rest if not w.startswith("-")]
    ):
        call.ask(NEW, "It installs new packages and runs their code.")
    return check_subcommands(call)


def check_cargo(call: Call) -> Stream | None:
    words = [word for word in call.arguments if not word.startswith("+")]
    options = Options(
        words, "--config -Z --color --target-dir --manifest-path -C -p --package --bin"
    )
    for setting in options.values("--config"):
        if re.search(r"runner|wrapper|rustc|linker|alias|rustdoc|source|registr", setting):
            call.ask("shell_escape", "It makes cargo use another program.")
    ask_if_foreign_folder(call)
    call.writes(*options.values("--target-dir"))
    if words[:1] == ["publish"] and "-n" in words:
        call.work("network", "It only shows what it would do.")
        return None
    if words[:1] == ["watch"]:
        return check_cargo_watch(call.part(words))
    return check_subcommands(call.part(words, name="cargo"))


def check_go(call: Call) -> None:
    words = call.arguments
    verb, rest = (words[0], words[1:]) if words else ("", [])
    if any(re.match(r"-(toolexec|exec|overlay|modfile|ldflags=.*-extld)", word) for word in rest):
        call.ask("shell_escape", "It makes go use another program.")
    names = [word for word in rest if not word.startswith("-")]
    if (
        verb == "run"
        and names
        and ("@" in names[0] or "://" in names[0] or re.match(r"[\w-]+\.[a-z]+/", names[0]))
    ):
        call.ask("remote_code", f"It fetches {names[0]} and runs it.")
    elif verb in ("run", "generate") and names and names[0].startswith(("/", "~", "..")):
        own_program(call, names[0])
    if verb == "env" and any(word in ("-w", "-u") for word in rest):
        call.ask("system_config", "It changes the settings of go.")
    if verb in ("get", "install") and any(not name.startswith(".") for name in names):
        call.ask(NEW, "It fetches new packages.")
    for place, word in enumerate(rest[:-1]):
        if word == "-o":
            call.writes(rest[place + 1])
    if verb in ("version", "env", "list", "doc", "help", "vet", "bug"):
        return
    known = "build test run fmt mod generate clean tool work get install fix telemetry"
    if verb in known.split():
        ask_if_foreign_folder(call)
        call.work("network", "It builds or fetches what the project names.")
    elif verb:
        call.ask("unknown_program", f"`go {verb}` is not known.")


def check_conda(call: Call) -> Stream | None:
    options = call.options("-f --file -n --name -p --prefix")
    files = options.values("-f", "--file")
    verb = options.operands[:2]
    if verb in (["env", "create"], ["env", "update"]) and files and all(map(call.here, files)):
        call.work("network", "It installs what the project names.")
        return None
    return check_subcommands(call)


def check_conan(call: Call) -> Stream | None:
    names = call.options("-o -s -pr -if -of --build --options --settings --profile").operands
    places = names[1:]
    local = [each for each in places if each[:1] in "./" and "@" not in each and call.here(each)]
    if names[:1] == ["install"] and places and local == places:
        call.work("network", "It installs what the project names.")
        return None
    return check_subcommands(call)


def check_versions(call: Call) -> Stream | None:
    """`install` alone installs what a file of the project names."""
    if call.arguments in (["install"], ["i"]) and call.here("."):
        call.work("network", "It installs what the project names.")
        return None
    return check_subcommands(call)


def check_mix(call: Call) -> Stream | None:
    if call.arguments[:1] and call.arguments[0].startswith("ecto.") and targets_tests(call):
        call.work(reason="It works on the database of the tests.")
        return None
    return check_subcommands(call)


def check_query(call: Call) -> None:
    """dpkg -l, rpm -qa, pacman -Q: the first option decides."""
    first = next((word for word in call.arguments if word.startswith("-")), "")
    if not first.startswith(tuple(call.record.looks.split())):
        call.ask(NEW, "It installs or removes packages.")
