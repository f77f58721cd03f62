"""Package managers and toolchains: packages in lock files are ordinary work, anything new needs
approval."""

from __future__ import annotations

import re

from hermes.policy.call import Call, Options
from hermes.policy.patterns import word_set
from hermes.policy.programs.catalogue import apply_record
from hermes.policy.programs.project_tools import (
    OUTWARD,
    ask_if_foreign_folder,
    ask_if_open,
    check_worker,
)
from hermes.policy.programs.records import is_known, record_of
from hermes.policy.programs.running import is_fetched, is_project_tool, own_program
from hermes.policy.programs.script_code import check_code
from hermes.policy.programs.subcommands import check_subcommands
from hermes.policy.programs.wrappers import check_cargo_watch
from hermes.policy.shell.state import UNKNOWN, Stream

NEW = "package_install"


def check_pip(call: Call) -> Stream | None:
    options = call.options(call.record.values)
    if options.operands[:1] and options.operands[0] in ("install", "download", "wheel"):
        _pip_install(call, options)
        return None
    return check_subcommands(call)


def _pip_install(call: Call, options: Options) -> None:
    ask_if_foreign_folder(call)
    places = options.values("-f", "--find-links")
    if options.values("-i", "--index-url", "--extra-index-url", "--proxy") or not all(
        "://" not in each and call.here(each) for each in places
    ):
        call.ask(NEW, "It installs packages from another source than usual.")
    if options.values("--global-option", "--install-option", "--config-settings", "--build-option"):
        call.ask("shell_escape", "It passes options to the package's installer.")
    call.writes(*options.values("-t", "--target", "--prefix", "--root"))
    lists = options.values("-r", "--requirement", "-c", "--constraint")
    for name in (*lists, *options.values("-e", "--editable")):
        if not (name in lists and _is_local(call, name)) and not _of_project(call, name):
            call.ask(NEW, f"It installs what {name} says, which is not part of the workspace.")
    for name in options.operands[1:]:
        if is_fetched(call, call.path(name)):
            call.ask("remote_code", f"It installs {name}, which was downloaded.")
        if not _of_project(call, name) and name not in ("pip", "setuptools", "wheel"):
            call.ask(NEW, f"It installs {name.replace(UNKNOWN, '…')} and runs its code.")
    if options.has("--user", "--break-system-packages"):
        call.ask(NEW, "It installs outside the project.")
    call.work("network", "It installs the project's declared dependencies.")


def _of_project(call: Call, name: str) -> bool:
    """Whether the word is a file or folder of the workspace, possibly with extras: `.[dev]`."""
    bare = re.sub(r"\[[^\]]*\]$", "", name)
    looks_local = bare.startswith((".", "/")) or bare.endswith(
        (".txt", ".whl", ".toml", ".tar.gz", ".in")
    )
    return looks_local and _is_local(call, bare)


def _is_local(call: Call, name: str) -> bool:
    return "://" not in name and UNKNOWN not in name and call.here(name)


def check_npm(call: Call) -> Stream | None:
    options = call.options(call.record.values)
    words = options.operands
    verb, names = (words[0], words[1:]) if words else ("", [])
    ask_if_foreign_folder(call)
    if codes := options.values("-e", "--eval", "-p", "--print"):
        for code in codes:
            check_code(call, code, backticks=False)
        return None
    if options.values("--registry"):
        call.ask(NEW, "It installs packages from another source than usual.")
    if options.values("--script-shell"):
        call.ask("shell_escape", "It makes scripts run in another shell.")
    for folder in options.values("--prefix", "-C", "--dir", "--cwd"):
        call.writes(folder)
        own_program(call, folder)
    if verb in ("update", "up", "link", "rebuild") and options.has("-g", "--global"):
        call.ask(NEW, "It changes system-wide packages.")
    if verb == "node" and call.name in ("yarn", "pnpm"):
        return call.runs(call.arguments[call.arguments.index("node") :])
    if verb in ("exec", "x", "dlx", "create", "init") and (names or verb in ("exec", "x", "dlx")):
        return _fetched_tool(call, names, making=verb in ("create", "init"))
    if verb in ("install", "i", "add", "ci", "install-ci-test", "isntall", "in", "ins"):
        _npm_install(call, options, names)
    elif verb in ("run", "run-script", "rum", "urn"):
        _npm_script(call, names)
    elif call.name in ("yarn", "pnpm", "bun") and verb not in word_set("npm_subcommands"):
        if verb == "" and call.name == "yarn":
            call.work("network", "It installs the packages of the lock file.")
        else:
            _npm_script(call, words)
    else:
        if verb == "config" and re.search(r"(?i)auth|token|password", " ".join(names)):
            call.ask("credentials", "It shows or changes a stored secret.")
        return check_subcommands(call)
    return None


def _npm_install(call: Call, options: Options, names: list[str]) -> None:
    if options.has("-g", "--global", "--location"):
        call.ask(NEW, "It installs system-wide.")
    elif any(not _of_project(call, name) for name in names):
        call.ask(NEW, f"It installs {', '.join(names).replace(UNKNOWN, '…')} and runs its code.")
    call.work("network", "It installs the packages of the lock file.")


def _npm_script(call: Call, names: list[str]) -> None:
    for name in names[:1]:
        if OUTWARD.match(name) or re.match(r"(semantic-)?release($|[:_-](?!dry))", name):
            call.ask("remote_state", f"`{name}` seems to change something remote.")
        if UNKNOWN in name:
            call.ask("unclear", "The script that it runs is known only at run time.")
    ask_if_open(call, call.arguments)
    call.work(reason="It runs a script of the project.")


def _fetched_tool(call: Call, words: list[str], *, making: bool = False) -> Stream | None:
    """Check npx, uvx and others, which run a tool of the project, or fetch and run one."""
    name = words[0] if words else ""
    bare = re.sub(r"(?<=.)@[^/]*$", "", name)
    making = making or bare.startswith("create-")
    bare = bare.removeprefix("@angular/").replace("create-", "", 1) if making else bare
    if making and bare in word_set("npm_create_templates"):
        call.work("network", f"It creates a project with {name}.")
        call.writes(*(word for word in words[1:2] if not word.startswith("-")))
        return None
    if bare in word_set("npx_tools") or (bare and is_project_tool(call, bare)):
        call.work(reason=f"It runs {bare}, a tool of the project.")
        if not is_known(bare):
            return check_worker(call.part(words[1:], name=bare))
        return call.runs([bare, *words[1:]])
    call.ask("remote_code", f"It fetches {name.replace(UNKNOWN, '…') or 'a package'} and runs it.")
    return None


def check_npx(call: Call) -> Stream | None:
    # The options of `pipx run` stand behind `run`.
    options = call.options(call.record.values, permute=call.name == "pipx")
    for text in options.values("-c", "--call"):
        call.ask("remote_code", "It downloads packages to run a command.")
        call.runs_text(text)
        return None
    if not options.operands and options.has("--version", "-v", "--help"):
        return None
    if options.values("-p", "--package", "--from", "--with", "--registry"):
        call.ask("remote_code", "It downloads packages and runs them.")
    return _fetched_tool(call, options.operands[call.name == "pipx" :])


def check_uv(call: Call) -> Stream | None:
    words = call.options(call.record.values, permute=False).operands
    verb, rest = (words[0], words[1:]) if words else ("", [])
    if verb == "pip":
        inner = call.part(rest, name="pip")
        inner.record = record_of("pip")
        return apply_record(inner)
    if verb == "run":
        options = Options(rest, record_of("uv:run").values, permute=False)
        if options.values("--with", "--with-requirements"):
            call.ask(NEW, "It downloads packages to run a command.")
        command = options.operands
        if command and command[0].endswith(".py"):
            command = ["python", *command]
        return call.runs(command) if command else None
    if (verb == "tool" and rest[:1] == ["run"]) or verb == "x":
        return _fetched_tool(call, rest[1:])
    return check_subcommands(call)


def check_cargo(call: Call) -> Stream | None:
    words = [word for word in call.arguments if not word.startswith("+")]
    options = Options(words, call.record.values)
    for setting in options.values("--config"):
        if re.search(r"runner|wrapper|rustc|linker|alias|rustdoc|source|registr", setting):
            call.ask("shell_escape", "It makes cargo use another program.")
    ask_if_foreign_folder(call)
    call.writes(*options.values("--target-dir"))
    if words[:1] == ["publish"] and "-n" in words:
        call.work("network", "It is a dry run.")
        return None
    if words[:1] == ["watch"]:
        return check_cargo_watch(call.part(words))
    return check_subcommands(call.part(words, name="cargo"))
