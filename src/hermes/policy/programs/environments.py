"""Programs that run another one in a version, or with variables, of their choice."""

from __future__ import annotations

from hermes.codec.values import Value
from hermes.policy.call import Call, Check
from hermes.policy.options import Options
from hermes.policy.shell.state import Stream


class Chooser(Value):
    """`verbs` start a command, `taking` are their options with a value. `named` words before the
    command say what is chosen; with `marked` the command stands behind `--`. What no table names
    is a `script` of the project for some."""

    verbs: str
    taking: str = ""
    named: int = 0
    marked: bool = False
    script: bool = False


CHOOSERS: dict[str, Chooser] = {
    **dict.fromkeys(
        ("mise", "rtx"), Chooser(verbs="exec x", taking="-C -E -j -c --command --cd", marked=True)
    ),
    **dict.fromkeys(
        "asdf rbenv pyenv nodenv goenv jenv plenv tfenv phpenv".split(), Chooser(verbs="exec")
    ),
    "volta": Chooser(verbs="run", taking="--node --npm --yarn --pnpm"),
    "fnm": Chooser(verbs="exec", taking="--using --log-level --node-dist-mirror --fnm-dir"),
    "nvm": Chooser(verbs="exec", named=1),
    "proto": Chooser(verbs="run", named=1, marked=True),
    **dict.fromkeys(
        ("conda", "mamba", "micromamba"), Chooser(verbs="run", taking="-n -p --name --prefix --cwd")
    ),
    **dict.fromkeys(("hatch", "rye"), Chooser(verbs="run", taking="-e --env", script=True)),
    "devbox": Chooser(verbs="run", taking="-c --config -e --env", script=True),
}


def choosing(check: Check) -> Check:
    """What runs in the chosen version counts; whatever else the program does is told by `check`."""

    def checked(call: Call) -> Stream | None:
        chooser = CHOOSERS[call.name]
        options = call.options(chooser.taking, permute=False)
        if options.operands[:1] and options.operands[0] in chooser.verbs.split():
            return _runs(call, chooser, options.operands[0])
        return check(call)

    return checked


def _runs(call: Call, chooser: Chooser, verb: str) -> Stream | None:
    words = call.arguments[call.arguments.index(verb) + 1 :]
    if chooser.marked:
        for text in Options(words, chooser.taking).values("-c", "--command"):
            return call.runs_text(text)
    if "--" in words and (chooser.marked or not _command(words, chooser)):
        at = words.index("--")
        inner = words[at + 1 :]
        if verb == "run" and chooser.named:
            # `proto run node -- -e …`: what stands behind is for the program that is named.
            inner = [*words[:at][:1], *inner]
    else:
        inner = [] if chooser.marked else _command(words, chooser)
    call.work(reason=f"`{call.name} {verb}` works in the project.")
    if not inner or (chooser.script and not call.follower.knows(inner[0])):
        return None
    return call.runs(inner)


def _command(words: list[str], chooser: Chooser) -> list[str]:
    operands = Options(words, chooser.taking, permute=False).operands
    if chooser.named and operands and not operands[0][:1].isdigit() and operands[0][:1] != "v":
        # Without a version, the one that the project names is meant.
        return operands
    return operands[chooser.named :]
