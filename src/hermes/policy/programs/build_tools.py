"""Build tools, migrations and editors: ordinary work inside the workspace."""

from __future__ import annotations

import re

from hermes.policy.call import Call
from hermes.policy.exposure import SECRET_NAME, check_secret_names
from hermes.policy.patterns import regex
from hermes.policy.programs.filters import looks_like_key
from hermes.policy.programs.project_tools import OUTWARD, check_worker, is_foreign, targets_tests
from hermes.policy.programs.running import is_fetched, own_program
from hermes.policy.shell.state import UNKNOWN, Stream

# Holds the prefix given to `configure`; no shell variable has such a name.
PREFIX = "configure --prefix"
# Recipe lines: after a tab in a makefile, after spaces or as a list item in similar files.
_RECIPE = regex(
    r"\t[\s@+-]*(\S.*)|  +(?:- |cmd: )*[@+-]*(?!\s|[\w.-]+\s*[:?+!]?=[^=])(\S.*)|- cmd: (.*)"
)
_ASSIGNED = regex(r"\s*(?:export |override |private )*([\w.-]+)\s*([+!?]|:{0,3})=\s*(.*)")
_SHELLS_OUT = regex(r"\$[({]shell ((?:[^()]|\([^()]*\))*)[)}]")
_REFERENCE = regex(r"\$\(([^()$]*)\)|\$\{([^{}$]*)\}|\$([\w@<^?*%+|])")
# Replaces a dollar of the shell while those of make are expanded.
HELD = "\ufffa"
MOST_TURNS = 5
INSTALLS = regex(r"^(un)?install(-(?!deps|dev|tool|dependenc|requirement|test|local)|$)")


def check_targets(call: Call) -> None:
    """make and other task runners: targets with outward names are asked about."""
    dry = ("-n", "--dry-run", "--just-print", "--recon", "-q", "--question", "--list", "--summary")
    if call.name in ("make", "gmake", "just", "task") and call.options("-f -C").has(*dry):
        call.work(reason="It only shows what it would do.")
        return
    check_worker(call)
    options = call.options(
        "-f -C -I -j -l -o -W --file --makefile --directory --jobs --eval -E --justfile -d "
        "--working-directory --taskfile --dir" + (" -t" if call.name == "task" else "")
    )
    for name in options.values("-f", "--file", "--makefile", "--justfile", "-t", "--taskfile"):
        if name in ("-", "/dev/stdin"):
            _recipes(call, call.stdin)
        elif (written := call.state.files.get(call.path(name))) is not None:
            _recipes(call, written)
        else:
            own_program(call, name)
    for name in ("Makefile", "makefile", "GNUmakefile", "justfile", "Taskfile.yml"):
        if (written := call.state.files.get(call.path(name))) is not None:
            _recipes(call, written)
    folders = ("-C", "--directory", "--working-directory", "--dir")
    for folder in options.values(*folders, *(("-d",) if call.name in ("just", "task") else ())):
        if is_fetched(call, call.path(folder)):
            call.ask("remote_code", "It builds what was fetched from elsewhere.")
        elif not call.here(folder):
            call.ask("unknown_program", f"It runs what {folder} says, outside the workspace.")
    for text in options.values("--eval", "-E"):
        call.ask("shell_escape", "It gives make a rule of its own.")
        call.runs_text(text.partition(";")[2] or text)
    for word in options.operands:
        if re.match(r"(SHELL|MAKE|CC|CXX|LD|AR)=", word) and "/" in word:
            own_program(call, word.partition("=")[2])
        if OUTWARD.match(word):
            call.ask("remote_state", f"`{word}` sounds as if it changes something elsewhere.")
        if INSTALLS.match(word) and call.name in (
            "make",
            "gmake",
            "ninja",
            "meson",
            "cmake",
            "just",
        ):
            _installed(call, word, options.operands)


def _installed(call: Call, target: str, words: list[str]) -> None:
    """The target folder is given here or was given to `configure`."""
    places = [
        word.partition("=")[2] for word in words if re.match(r"(DESTDIR|PREFIX|prefix)=", word)
    ]
    places += call.state.variables.get(PREFIX, ())
    if not places or not all(map(call.here, places)):
        call.ask("overwrite", f"`{target}` puts files into the system.")
    call.writes(*places)


def _recipes(call: Call, rules: Stream) -> None:
    """Follows the recipes of a makefile that is input, new, or written by this script."""
    if not rules.known:
        call.ask("obfuscated", "It follows rules that are only known when it runs.")
    known: dict[str, str] = {}
    defining = False
    for line in rules.text.replace("\\\n", " ").split("\n"):
        defining = line.startswith("define ") or (defining and not line.startswith("endef"))
        for script in _SHELLS_OUT.findall(line):
            call.runs_text(_for_shell(script, known))
        if recipe := _RECIPE.match(line):
            call.runs_text(_for_shell(next(filter(None, recipe.groups()), ""), known))
        elif defining and not line.startswith("define "):
            call.runs_text(_for_shell(line.lstrip("@+-"), known))
        elif assigned := _ASSIGNED.match(line):
            name, how, value = assigned.groups()
            known[name] = f"{known.get(name, '')} {value}".strip() if how == "+" else value
            if how == "!":
                call.runs_text(_for_shell(value, known))
        elif ";" in line and ":" in line:
            call.runs_text(_for_shell(line.partition(";")[2], known))


def _for_shell(line: str, known: dict[str, str]) -> str:
    """A line of a recipe as make gives it to a shell."""

    def value(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        name = found[1] or found[2] or found[3] or ""
        if name.startswith("shell "):
            return f"$({name[6:]})"
        return known.get(name, UNKNOWN)

    for _ in range(MOST_TURNS):
        told = _REFERENCE.sub(value, line.replace("$$", HELD))
        if told.replace(HELD, "$$") == line:
            break
        line = told.replace(HELD, "$$")
    return line.replace("$$", "$")


def check_cmake(call: Call) -> None:
    check_worker(call)
    words = call.arguments
    if "--install" in words and "--prefix" not in " ".join(words):
        call.ask("overwrite", "It puts files into the system.")
    if words[:1] == ["-E"]:
        inner = words[1:]
        if inner[:1] in (["rm"], ["remove"], ["remove_directory"]):
            call.runs(["rm", "-rf", *(word for word in inner[1:] if not word.startswith("-"))])
        elif inner[:1] in (["env"], ["time"], ["chdir"]):
            call.runs(inner[2:] if inner[0] == "chdir" else [*inner[:1], *inner[1:]])
        elif inner[:1] and inner[0].startswith("copy"):
            call.writes(*inner[-1:])
    if words[:1] == ["-P"]:
        own_program(call, (words[1:2] or [""])[0])


def check_java(call: Call) -> None:
    options = call.arguments
    for place, word in enumerate(options):
        following = (options[place + 1 : place + 2] or [""])[0]
        if word in ("-cp", "-classpath", "--class-path", "-p", "--module-path"):
            for part in following.split(":"):
                if is_foreign(call, part):
                    own_program(call, part)
        if word.startswith(("-javaagent", "-agentpath", "-agentlib")):
            call.ask("shell_escape", "It loads code into Java.")
        if word == "-jar" and place + 1 < len(options):
            own_program(call, options[place + 1])
    call.work(reason="It runs a program of the project.")


def check_rake(call: Call) -> None:
    testing = targets_tests(call)
    kept = [word for word in call.arguments if not (testing and word.startswith("db:"))]
    check_worker(call.part(kept))
    for word in call.arguments:
        if not testing and re.match(
            r"db:(drop|reset|purge|truncate\w*|schema:load|setup|rollback|migrate:reset|migrate:down)",
            word,
        ):
            call.ask("database", f"`{word}` deletes data of the project's database.")
        if OUTWARD.match(word) or word in ("release",):
            call.ask("remote_state", f"`{word}` changes something elsewhere.")
    if (
        call.name == "rails"
        and "--help" not in call.arguments
        and call.arguments[:1]
        in (
            ["runner"],
            ["r"],
            ["dbconsole"],
        )
    ):
        call.ask("database", "It runs code on the project's database.")
    if call.arguments[:1] in (["console"], ["c"]) and (
        call.stdin.text.replace(UNKNOWN, "").strip() or "production" in call.arguments
    ):
        call.ask("database", "It runs code on the project's database.")


# They choose the database by the stage.
STAGED = ("knex", "sequelize")


def check_migrations(call: Call) -> None:
    """alembic, prisma, knex and others."""
    text = " ".join(call.arguments)
    testing = call.name in STAGED and targets_tests(call)
    if not testing and re.search(
        r"\b(downgrade|down|reset|rollback|drop|fresh|refresh|wipe|undo|revert|clean|push)\b", text
    ):
        call.ask("database", "It takes changes of the database back, and data with them.")
    call.work(reason="It works on the project's database.")


def check_php_tool(call: Call) -> Stream | None:
    text = " ".join(call.arguments)
    losing = re.search(r"\b(migrate:(fresh|reset|refresh|rollback)|db:wipe)\b", text)
    if "tinker" in call.arguments or (losing and not targets_tests(call)):
        call.ask("database", "It deletes data of the project's database.")
    return check_worker(call)


ENVIRONMENT = regex(r"\b(?:str)?env(?:\.|\[\W?|\()(\w+)")


def check_jq(call: Call) -> Stream | None:
    code = " ".join(call.arguments)
    check_secret_names(call, code)
    for found in ENVIRONMENT.finditer(code):
        if SECRET_NAME.search(found[1]):
            call.ask("credentials", f"It shows the secret that ${found[1]} holds.")
    options = call.options(call.record.values)
    call.reads(*options.operands[1:], *options.values("-f", "--from-file"))
    in_place = call.name == "yq" and options.has("-i", "--inplace", "--in-place")
    if in_place:
        call.writes(*options.operands[1:])
    return Stream(text=UNKNOWN, origin=call.stdin.origin if len(options.operands) < 2 else "file")


def check_reader(call: Call) -> Stream | None:
    """Changes nothing and prints no file contents."""
    if (
        call.name == "ps"
        and call.arguments[:1]
        and re.fullmatch(r"[a-zA-Z]*e[a-zA-Z]*", call.arguments[0])
    ):
        call.ask("credentials", "It shows the variables of other processes, secrets included.")
    if call.name in ("locate", "plocate", "mlocate") and any(map(looks_like_key, call.arguments)):
        call.ask("credentials", "It looks for keys outside the workspace.")
    if call.name == "getent" and {"shadow", "gshadow"} & set(call.arguments):
        call.ask("credentials", "It shows the system's passwords.")
    for option, name in zip(call.arguments, call.arguments[1:], strict=False):
        if re.match(r"--?(dump|out|write|save)", option):
            call.writes(name)
    if call.name == "printenv":
        return Stream(origin="environment")
    if call.name in ("tree", "shuf"):
        call.writes(*call.options("-o -n -L -I -P --output").values("-o", "--output"))
    return None


def check_code_view(call: Call) -> None:
    """Editors with a window."""
    options = call.options()
    if options.has("--version", "-v", "--help", "--list-extensions"):
        return
    opening = options.operands[:1] and options.operands[0] in ("tunnel", "serve-web", "serve")
    if not options.pairs and not opening and all(map(call.here, options.operands)):
        call.work(reason="It opens files of the workspace in an editor.")
        return
    if opening:
        call.ask("network_listen", "It opens a way in from outside.")
    if "--install-extension" in " ".join(call.arguments):
        call.ask("package_install", "It installs an extension.")
    call.ask("shell_escape", "It opens a window on this machine.")


def check_little_language(call: Call) -> None:
    """dc and m4 can start programs."""
    check_worker(call)
    texts = [*call.arguments, call.stdin.text if call.stdin.known else ""]
    for text in texts:
        for found in re.finditer(r"(?:^|\s)!\s*(\S.*)|\be?syscmd\(`?([^')]*)", text):
            call.ask("shell_escape", f"It makes `{call.name}` run another program.")
            call.runs_text(found[1] or found[2])
