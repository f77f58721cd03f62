"""String literals of various languages, and code that is loaded from elsewhere."""

from __future__ import annotations

import re

from hermes.policy.call import Call
from hermes.policy.outgoing import is_remote
from hermes.policy.patterns import regex
from hermes.policy.programs.python_code import strings
from hermes.policy.programs.running import own_program

LUA = frozenset(("lua", "luajit", "texlua"))
LONG = regex(r"\[(=*)\[((?:[^\[\]]|\[(?!=*\[)|\](?!=*\])){0,2000})\]\1\]")
SIGIL = (
    r"(?:\(([^()]{0,2000})\)|\{([^{}]{0,2000})\}|\[([^\[\]]{0,2000})\]|<([^<>]{0,2000})>"
    r"|([|/!])((?:(?!\5).){0,2000})\5)"
)
# Where a literal may begin: not in `s/q(x)/y/` and `$h{q}`.
BEGINS = r"(?:(?<=[\s(,=\[{])|^)"
SIGILS: dict[str, re.Pattern[str]] = {
    **dict.fromkeys(("perl", "raku"), regex(rf"{BEGINS}qq?\s?{SIGIL}")),
    "ruby": regex(rf"{BEGINS}\*?%[qQ]{SIGIL}"),
    **dict.fromkeys(("elixir", "iex"), regex(rf"{BEGINS}~[csCS]{SIGIL}")),
}
WORDS = regex(rf"{BEGINS}\*?%[wW]{SIGIL}")
PREFIX = regex(r"~[csCS](?=['\"])")
# Functions that run a text as code.
EVALUATES = regex(
    r"(?<![.\w:])(?:load|loadstring|loadfile|dofile|source|evaluate)\b"
    r"|\b(?:eval\w*|EVAL|instance_eval|class_eval|include_string|Function|load-string|eval-string"
    r"|Code\.(?:eval|compile)\w*|vm\.run\w*)\b"
)
EVALUATED = regex(r"(?<![.\w:])(?:evaluate|eval\w*)\s*\(")
# A file whose code is run.
TAKEN_IN = regex(
    r"(?<![.\w])(?:load|dofile|loadfile|source|include(?:_once)?|require(?:_once|_relative)?|import|do)"
    r"\s*\(?\s*(['\"])((?:/|~/|\.\./)[^'\"]*)\1"
)
IMPORTS = regex(
    r"\b(?:import|from|require|Worker|importScripts|include|source|dofile)\b\s*\(?\s*(?:new\s+URL\s*\()?"
    r"\s*['\"]((https?:|npm:|jsr:|data:|blob:)[^'\"]*)['\"]"
)
# A function called by a name that is assembled from pieces.
PIECED = regex(
    r"\$(\w+)\s*=\s*['\"][^;]{0,500};.{0,2000}?\$\1\s*\("
    r"|\(\s*['\"]\w*['\"]\s*\.\s*['\"][^()]{0,200}\)\s*\(",
    re.DOTALL,
)

# Sets the name of the process.
TITLE = regex(
    r"(?<![\w$])\$0\s*=(?!=|~)|\$PROGRAM_NAME\s*=(?!=)|\b\w*set_?proc(?:ess_)?_?title\s*\(|\bprocess\.title\s*=(?!=)"
)


def usual_quotes(name: str, code: str) -> str:
    """The code with all literals in common quotes."""
    if name in LUA:
        return LONG.sub(lambda found: _quoted(found[2]), code)
    if name == "ruby":
        code = WORDS.sub(lambda found: ", ".join(map(_quoted, _inside(found).split())), code)
    if sigil := SIGILS.get(name):
        return sigil.sub(lambda found: _quoted(_inside(found)), PREFIX.sub("", code))
    return code


def _inside(found: re.Match[str]) -> str:
    return next((found[place] for place in (1, 2, 3, 4, 6) if found[place] is not None), "")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "; ")
    return f'"{escaped}"'


def check_taken_in(call: Call, code: str, bare: str, *, fetches: bool) -> None:
    """Checks code that is loaded from elsewhere; `fetches`: its commands fetch something."""
    for found in TAKEN_IN.finditer(code):
        own_program(call, found[2])
    urls = (
        text for text in strings(code) if re.match(r"(?:https?|ftp)://", text) and is_remote(text)
    )
    imports = IMPORTS.search(code)
    if imports and imports[2] in ("data:", "blob:"):
        call.ask("obfuscated", "Its code runs code that is hidden in an address.")
    elif imports and (imports[2] in ("npm:", "jsr:") or is_remote(imports[1])):
        call.ask("remote_code", "Its code runs code from elsewhere.")
    elif (fetches and EVALUATES.search(bare)) or (EVALUATED.search(bare) and any(urls)):
        call.ask("remote_code", "Its code runs what it fetches from elsewhere.")
    if TITLE.search(bare):
        call.ask("obfuscated", "Its code takes another name among the processes.")
    if call.name == "php" and PIECED.search(code):
        call.ask("obfuscated", "Its code calls a function by a name that it puts together.")
