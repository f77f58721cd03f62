"""Tools of languages and of the system that fetch and install: what is new is a question."""

from __future__ import annotations

import re

from hermes.policy.call import Call, Check
from hermes.policy.options import Options
from hermes.policy.programs.running import own_program
from hermes.policy.programs.stages import for_tests
from hermes.policy.programs.verbs import Verbs, verbs
from hermes.policy.programs.workers import ask_elsewhere, check_worker
from hermes.policy.programs.wrappers import check_cargo_watch
from hermes.policy.shell.state import Stream

NEW = "package_install"


def _cargo(call: Call) -> Stream | None:
    words = [word for word in call.arguments if not word.startswith("+")]
    options = Options(
        words, "--config -Z --color --target-dir --manifest-path -C -p --package --bin"
    )
    for setting in options.values("--config"):
        if re.search(r"runner|wrapper|rustc|linker|alias|rustdoc|source|registr", setting):
            call.ask("shell_escape", "It makes cargo use another program.")
    ask_elsewhere(call)
    call.writes(*options.values("--target-dir"))
    if words[:1] == ["publish"] and "-n" in words:
        call.work("network", "It only shows what it would do.")
        return None
    if words[:1] == ["watch"]:
        return check_cargo_watch(call.part(words))
    return _CARGO(call.part(words, name="cargo"))


_CARGO = verbs(
    Verbs(
        taking="--config -Z --color --target-dir --manifest-path -C -p --package",
        reads="tree metadata search version pkgid locate-project read-manifest verify-project help "
        "report info audit deny outdated",
        works="""build b check c test t run r bench clippy fmt doc d clean update fetch vendor
        generate-lockfile package new init nextest fix rustc rustdoc expand llvm-cov tarpaulin
        miri watch insta xtask machete udeps hack make leptos tauri wasm component ndk criterion""",
        asks={
            "remote_state": "publish yank owner",
            "credentials": "login logout",
            "package_install": "install uninstall add remove rm binstall install-update",
        },
        otherwise="unknown_program",
    )
)


def _go(call: Call) -> Stream | None:
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
        return None
    known = "build test run fmt mod generate clean tool work get install fix telemetry"
    if verb in known.split():
        ask_elsewhere(call)
        call.work("network", "It builds or fetches what the project names.")
    elif verb:
        call.ask("unknown_program", f"`go {verb}` is not known.")
    return None


def _conda(call: Call) -> Stream | None:
    options = call.options("-f --file -n --name -p --prefix")
    files = options.values("-f", "--file")
    verb = options.operands[:2]
    if verb in (["env", "create"], ["env", "update"]) and files and all(map(call.here, files)):
        call.work("network", "It installs what the project names.")
        return None
    return _CONDA(call)


_CONDA = verbs(
    Verbs(
        reads="list info search config:--show env:list --version env:export",
        works="activate deactivate run",
        otherwise="package_install",
    )
)


def _conan(call: Call) -> Stream | None:
    names = call.options("-o -s -pr -if -of --build --options --settings --profile").operands
    places = names[1:]
    local = [each for each in places if each[:1] in "./" and "@" not in each and call.here(each)]
    if names[:1] == ["install"] and places and local == places:
        call.work("network", "It installs what the project names.")
        return None
    return _CONAN(call)


def _system(reads: str, works: str = "") -> Check:
    return verbs(Verbs(reads=reads, works=works, taking="-o -c -t", otherwise="package_install"))


def _versions(reads: str, works: str = "") -> Check:
    """`install` alone brings what a file of the project names."""
    check = _system(reads, works)

    def checked(call: Call) -> Stream | None:
        if call.arguments in (["install"], ["i"]) and call.here("."):
            call.work("network", "It installs what the project names.")
            return None
        return check(call)

    return checked


_MIX = verbs(
    Verbs(
        reads="help deps hex.info hex.outdated xref",
        works="",
        asks={
            "remote_state": "hex.publish",
            "package_install": "archive.install local.hex",
            "database": "ecto.drop ecto.reset ecto.rollback",
        },
        otherwise="",
        bare="work",
    )
)


def _mix(call: Call) -> Stream | None:
    if call.arguments[:1] and call.arguments[0].startswith("ecto.") and for_tests(call):
        call.work(reason="It works on the database of the tests.")
        return None
    return _MIX(call)


_CONAN = _system("search list inspect", "build")


def _dotnet(call: Call) -> Stream | None:
    words = call.options().operands
    if words[:2] and words[:2] in (["nuget", "push"], ["nuget", "delete"]):
        call.ask("remote_state", "It publishes the project.")
    elif (
        words[:1] == ["add"]
        or words[:2] == ["tool", "install"]
        or words[:2] == ["workload", "install"]
    ):
        call.ask(NEW, "It installs new packages.")
    return check_worker(call)


def _query(letters: str) -> Check:
    """dpkg -l, rpm -qa, pacman -Q: the first option tells."""

    def check(call: Call) -> Stream | None:
        first = next((word for word in call.arguments if word.startswith("-")), "")
        if not any(first.startswith(each) for each in letters.split()):
            call.ask(NEW, "It installs or removes packages.")
        return None

    return check


TOOLCHAINS: dict[str, Check] = {
    "cargo": _cargo,
    "go": _go,
    "dotnet": _dotnet,
    "gem": _system("list search info query environment outdated which contents help", "build"),
    **dict.fromkeys(
        ("apt", "apt-get", "aptitude"),
        _system("list show search policy depends rdepends changelog help download"),
    ),
    "apt-mark": _system("showhold showmanual showauto"),
    "apt-key": _system("list"),
    "brew": _system(
        "list ls info search outdated config doctor deps uses leaves home desc --version "
        "--prefix services:list cat formulae casks"
    ),
    **dict.fromkeys(
        ("yum", "dnf", "microdnf", "tdnf"),
        _system("list info search repolist check-update provides deplist repoquery history"),
    ),
    "snap": _system("list info find version changes connections services"),
    "flatpak": _system("list info search remotes history"),
    **dict.fromkeys(("conda", "mamba", "micromamba"), _conda),
    "corepack": _system(""),
    "volta": _system("list which"),
    "fnm": _system("list current ls", "use"),
    "mix": _mix,
    "opam": _system("list show switch:list env config var"),
    "pod": _system("env", "install update"),
    "luarocks": _system("list show"),
    "nuget": _system("list", "restore"),
    "vcpkg": _system("list search"),
    "conan": _conan,
    "asdf": _versions("list current where which plugin:list"),
    "mise": _versions("ls list current where which doctor", "run exec"),
    "dpkg": _query(
        "-l -L -s -S -c -I -p --list --get-selections --status --print --compare --verify -V "
        "--audit --version"
    ),
    "rpm": _query("-q -V --query --verify --version -K"),
    "pacman": _query("-Q -Ss -Si -F --version -Qi"),
    "apk": _query("--version info"),
}
