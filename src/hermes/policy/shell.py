"""Reads the plain part of the shell language; what is more than plain is named, never guessed."""

from __future__ import annotations

from hermes.codec.values import Value

OPERATORS = ("&&", "||", ";;", "|&", ";", "|", "&", "\n")
SPECIAL = {
    "`": "a command substitution",
    "(": "a subshell or a function",
    ")": "a subshell or a function",
    "{": "a group or a brace expansion",
    "}": "a group or a brace expansion",
}
KEYWORDS = frozenset(
    """
    if then else elif fi for while until do done case esac select function time coproc [[ !
    """.split()
)


class Redirect(Value):
    """`target` is a word, or "&1" and the like."""

    operator: str
    target: str


class Simple(Value):
    """One plain command. `quoted` tells which words had quotes and so are not patterns;
    `joined_by` is the operator before it ("" for the first)."""

    words: tuple[str, ...]
    quoted: tuple[bool, ...]
    redirects: tuple[Redirect, ...] = ()
    joined_by: str = ""


class Unclear(Exception):
    """The script holds something whose effect cannot be told from its text."""


def parse(script: str, variables: dict[str, str]) -> tuple[Simple, ...]:
    """The simple commands of a script in order, or Unclear. Only the given variables are known."""
    return _Reader(script, variables).read()


class _Reader:
    def __init__(self, script: str, variables: dict[str, str]) -> None:
        self._text = script.replace("\\\n", "")
        self._at = 0
        self._variables = variables
        self._found: list[Simple] = []
        self._words: list[str] = []
        self._quoted: list[bool] = []
        self._redirects: list[Redirect] = []
        self._joined_by = ""

    def read(self) -> tuple[Simple, ...]:
        while self._at < len(self._text):
            self._step()
        self._end_command("")
        return tuple(self._found)

    def _step(self) -> None:
        char = self._text[self._at]
        if char in " \t":
            self._at += 1
        elif char == "#":
            self._at = (self._text + "\n").index("\n", self._at)
        elif self._redirect():
            pass
        elif operator := self._operator():
            self._at += len(operator)
            self._end_command(operator)
        else:
            word, quoted = self._word()
            self._add_word(word, quoted)

    def _operator(self) -> str:
        return next((op for op in OPERATORS if self._text.startswith(op, self._at)), "")

    def _add_word(self, word: str, quoted: bool) -> None:
        if not self._words and not quoted and word in KEYWORDS:
            raise Unclear(f"`{word}`")
        self._words.append(word)
        self._quoted.append(quoted)

    def _end_command(self, operator: str) -> None:
        if operator in ("&", ";;", "|&"):
            raise Unclear(f"`{operator}`")
        if self._words or self._redirects:
            self._found.append(
                Simple(
                    words=tuple(self._words),
                    quoted=tuple(self._quoted),
                    redirects=tuple(self._redirects),
                    joined_by=self._joined_by,
                )
            )
        elif operator not in ("\n", ";", ""):
            raise Unclear("an operator without a command")
        self._words, self._quoted, self._redirects = [], [], []
        self._joined_by = operator

    def _redirect(self) -> bool:
        """A redirection with an optional number before it; here-documents are unclear."""
        start = self._at
        while self._at < len(self._text) and self._text[self._at].isdigit():
            self._at += 1
        rest = self._text[self._at :]
        if rest.startswith(("<<", "<(", ">(", "<>")):
            raise Unclear("a here-document or process substitution")
        operator = next(
            (op for op in ("&>>", "&>", ">>", ">|", ">&", "<&", ">", "<") if rest.startswith(op)),
            "",
        )
        if not operator:
            self._at = start
            return False
        self._at += len(operator)
        while self._at < len(self._text) and self._text[self._at] in " \t":
            self._at += 1
        target, _ = self._word()
        if operator in (">&", "<&") and (target.isdigit() or target == "-"):
            target = "&" + target
        self._redirects.append(Redirect(operator=operator, target=target))
        return True

    def _word(self) -> tuple[str, bool]:
        parts: list[str] = []
        quoted = False
        while self._at < len(self._text):
            char = self._text[self._at]
            if char in " \t\n;|&<>":
                break
            if char == "'":
                quoted = True
                parts.append(self._single())
            elif char == '"':
                quoted = True
                parts.append(self._double())
            elif char == "\\":
                quoted = True
                parts.append(self._text[self._at + 1 : self._at + 2])
                self._at += 2
            elif char == "$":
                parts.append(self._dollar())
            elif char in SPECIAL:
                raise Unclear(SPECIAL[char])
            else:
                parts.append(char)
                self._at += 1
        if not parts and not quoted:
            raise Unclear("a missing word")
        return "".join(parts), quoted

    def _single(self) -> str:
        end = self._text.find("'", self._at + 1)
        if end < 0:
            raise Unclear("an open quote")
        text = self._text[self._at + 1 : end]
        self._at = end + 1
        return text

    def _double(self) -> str:
        parts: list[str] = []
        self._at += 1
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == '"':
                self._at += 1
                return "".join(parts)
            if char == "\\" and self._text[self._at + 1 : self._at + 2] in ('"', "\\", "$", "`"):
                parts.append(self._text[self._at + 1])
                self._at += 2
            elif char == "$":
                parts.append(self._dollar())
            elif char == "`":
                raise Unclear(SPECIAL["`"])
            else:
                parts.append(char)
                self._at += 1
        raise Unclear("an open quote")

    def _dollar(self) -> str:
        """A known variable's value; a dollar sign that stands for itself stays."""
        end = self._at + 1
        while end < len(self._text) and (self._text[end].isalnum() or self._text[end] == "_"):
            end += 1
        name = self._text[self._at + 1 : end]
        if not name:
            after = self._text[end : end + 1]
            if after in ("", " ", "\t", "\n", '"', "/", "|", ";", ")"):
                self._at += 1
                return "$"
            raise Unclear("an expansion")
        if name not in self._variables:
            raise Unclear(f"the variable ${name}")
        self._at = end
        return self._variables[name]
