"""Parses a shell script into a tree, as bash would, or raises Unclear."""

from __future__ import annotations

import re

from hermes.codec.values import replace
from hermes.policy.patterns import regex
from hermes.policy.shell.lines import KEYWORD, Lines
from hermes.policy.shell.tree import (
    Assignment,
    Block,
    Command,
    Function,
    Pipeline,
    Redirect,
    Script,
    Simple,
    Text,
    Unclear,
    Word,
)

LONGEST = 100_000
ASSIGNMENT = regex(r"([A-Za-z_]\w*)(\[[^\]\n]*\])?(\+?)=", re.ASCII)
FUNCTION = regex(r"([^ \t\n'\"\\$`;|&<>()]+)([ \t]*\([ \t]*\))?")
KEY = regex(r"^\[[^\]=]*\]\+?=")
IN = regex(r"in(?=[ \t\n;])")
TIME_OPTION = regex(r"-p(?=\s)")
CASE_END = regex(r";;&|;;|;&")
TEST_END = regex(r"\]\](?=[\s;|&<>()]|$)")
DECLARING = frozenset(("declare", "typeset", "local", "export", "readonly"))


def parse(script: str, depth: int = 0) -> Script:
    """Parse the whole script; raise Unclear if that is not certain."""
    if len(script) > LONGEST:
        raise Unclear("too much text to follow")
    parser = _Parser(script, depth)
    tree = parser.script(frozenset())
    parser.at_end()
    return tree


class _Parser(Lines):
    def at_end(self) -> None:
        if self._at < len(self._text):
            raise Unclear(f"`{self._text[self._at]}` where no command ends")
        self._read_here_documents()

    def _inner(self, text: str) -> Script:
        self._deeper()
        found = parse(text, self._depth)
        self._depth -= 1
        return found

    def _nested(self, end: str) -> Script:
        self._deeper()
        found = self.script(frozenset((end,)))
        if not self._starts(end):
            raise Unclear("an open parenthesis")
        self._at += len(end)
        self._depth -= 1
        return found

    def script(self, ends: frozenset[str]) -> Script:
        commands: list[Command] = []
        operators: list[str] = []
        while True:
            self._lines()
            if self._at >= len(self._text) or self._ends(ends):
                break
            commands.append(self._pipeline())
            joiner = self._joiner()
            operators.append(joiner)
            if not joiner and not self._ends(ends) and self._at < len(self._text):
                raise Unclear(f"`{self._text[self._at]}` where no command ends")
        return Script(commands=tuple(commands), ends=tuple(operators))

    def _ends(self, ends: frozenset[str]) -> bool:
        if not ends:
            return False
        if ")" in ends and self._starts(")"):
            return True
        if self._starts(";;") or self._starts(";&"):
            return ";;" in ends
        found = KEYWORD.match(self._text, self._at)
        return bool(found and found[0] in ends)

    def _pipeline(self) -> Command:
        commands = [self._command()]
        while True:
            self._blanks()
            if self._starts("||") or not self._starts("|"):
                break
            self._at += 2 if self._starts("|&") else 1
            self._lines()
            commands.append(self._command())
        return commands[0] if len(commands) == 1 else Pipeline(commands=tuple(commands))

    def _command(self) -> Command:
        self._deeper()
        found = self._one_command()
        self._depth -= 1
        return found

    def _one_command(self) -> Command:
        self._blanks()
        if self._starts("(("):
            block = self._arithmetic_command()
            if block is not None:
                return self._with_redirects(block)
        if self._starts("("):
            self._at += 1
            return self._with_redirects(Block(kind="subshell", bodies=(self._nested(")"),)))
        keyword = KEYWORD.match(self._text, self._at)
        if keyword is None:
            return self._function() or self._simple()
        self._at = keyword.end()
        match keyword[0]:
            case "!" | "time":
                return self._after_prefix(keyword[0])
            case "coproc":
                return self._command()
            case "{":
                body = self.script(frozenset("}"))
                self._keyword("}")
                return self._with_redirects(Block(kind="group", bodies=(body,)))
            case "[[":
                return self._with_redirects(self._test())
            case "if":
                return self._with_redirects(self._if())
            case "while" | "until":
                condition = self.script(frozenset(("do",)))
                return self._with_redirects(Block(kind="loop", bodies=(condition, self._do())))
            case "for" | "select":
                return self._with_redirects(self._for())
            case "case":
                return self._with_redirects(self._case())
            case "function":
                return self._function(named=True) or self._simple()
            case other:
                raise Unclear(f"`{other}` in an unexpected place")

    def _after_prefix(self, prefix: str) -> Command:
        self._blanks()
        if prefix == "time" and TIME_OPTION.match(self._text, self._at):
            self._at += 2
        if self._at >= len(self._text) or self._char() in ";&|\n)":
            return Simple()
        return self._pipeline()

    def _do(self) -> Script:
        self._lines()
        if self._starts("{"):
            self._keyword("{")
            body = self.script(frozenset("}"))
            self._keyword("}")
            return body
        self._keyword("do")
        body = self.script(frozenset(("done",)))
        self._keyword("done")
        return body

    def _if(self) -> Block:
        bodies = [self.script(frozenset(("then",)))]
        self._keyword("then")
        while True:
            bodies.append(self.script(frozenset(("elif", "else", "fi"))))
            found = KEYWORD.match(self._text, self._at)
            if found is None:
                raise Unclear("a missing `fi`")
            self._at = found.end()
            if found[0] == "fi":
                return Block(kind="if", bodies=tuple(bodies))
            if found[0] == "elif":
                bodies.append(self.script(frozenset(("then",))))
                self._keyword("then")

    def _for(self) -> Block:
        self._blanks()
        if self._starts("(("):
            block = self._arithmetic_command()
            if block is None:
                raise Unclear("an unusual loop")
            self._joiner()
            return Block(kind="loop", words=block.words, bodies=(self._do(),))
        variable = self._literal_word()
        self._lines()
        words: list[Word] = []
        if IN.match(self._text, self._at):
            self._at += 2
            self._blanks()
            while word := self._word():
                words.append(word)
                self._blanks()
        else:
            words = [self._expansions("$@")]
        self._joiner()
        return Block(kind="for", variable=variable, words=tuple(words), bodies=(self._do(),))

    def _case(self) -> Block:
        self._blanks()
        words = [self._word()]
        self._lines()
        if not IN.match(self._text, self._at):
            raise Unclear("an unusual `case`")
        self._at += 2
        bodies: list[Script] = []
        while True:
            self._lines()
            found = KEYWORD.match(self._text, self._at)
            if found is not None and found[0] == "esac":
                self._at = found.end()
                return Block(kind="case", words=tuple(words), bodies=tuple(bodies))
            words += self._patterns()
            bodies.append(self.script(frozenset((";;", "esac"))))
            if found := CASE_END.match(self._text, self._at):
                self._at = found.end()

    def _patterns(self) -> list[Word]:
        if self._starts("("):
            self._at += 1
        patterns: list[Word] = []
        while True:
            self._blanks()
            patterns.append(self._word())
            self._blanks()
            sign = self._char()
            if sign not in ("|", ")"):
                raise Unclear("an unusual `case`")
            self._at += 1
            if sign == ")":
                return patterns

    def _test(self) -> Block:
        words: list[Word] = []
        while True:
            self._lines()
            if TEST_END.match(self._text, self._at):
                self._at += 2
                return Block(kind="test", words=tuple(words))
            word = self._word()
            if word:
                words.append(word)
            elif self._char() and self._char() in "()<>&|!":
                self._at += 1
            else:
                raise Unclear("an open test")

    def _arithmetic_command(self) -> Block | None:
        end = self._arithmetic_end(self._at + 2)
        if not end:
            return None
        inner = self._text[self._at + 2 : end]
        self._at = end + 2
        return Block(kind="test", words=(self._expansions(inner),))

    def _function(self, *, named: bool = False) -> Function | None:
        """Parse `name () …`, or after `function` also without the parentheses."""
        self._blanks()
        found = FUNCTION.match(self._text, self._at)
        if found is None or not (named or found[2]):
            return None
        self._at = found.end()
        self._lines()
        return Function(name=found[1], body=self._command())

    def _with_redirects(self, block: Block) -> Block:
        redirects: list[Redirect] = []
        while True:
            self._blanks()
            redirect = self._redirect()
            if redirect is None:
                break
            redirects.append(redirect)
        if not redirects:
            return block
        return replace(block, redirects=tuple(redirects))

    def _simple(self) -> Simple:
        assignments: list[Assignment] = []
        words: list[Word] = []
        redirects: list[Redirect] = []
        start = self._at
        while True:
            self._blanks()
            if redirect := self._redirect():
                redirects.append(redirect)
            elif self._may_assign(words) and (assignment := self._assignment(bool(words))):
                assignments.append(assignment)
            elif word := self._word():
                words.append(word)
            else:
                break
        if self._at == start or self._starts("("):
            sign = self._char() or "the end"
            raise Unclear(f"`{sign}` where a command should stand")
        return Simple(
            assignments=tuple(assignments), words=tuple(words), redirects=tuple(redirects)
        )

    @staticmethod
    def _may_assign(words: list[Word]) -> bool:
        if not words:
            return True
        first = words[0][0]
        return len(words[0]) == 1 and isinstance(first, Text) and first.text in DECLARING

    def _assignment(self, declared: bool) -> Assignment | None:
        """Parse an assignment. After `declare` and the like, only arrays: the other words are left
        as they are."""
        found = ASSIGNMENT.match(self._text, self._at)
        if found is None or (declared and not self._text.startswith("(", found.end())):
            return None
        self._at = found.end()
        if not self._starts("("):
            index = self._expansions(found[2][1:-1]) if found[2] else ()
            hidden = tuple(part for part in index if not isinstance(part, Text))
            return Assignment(name=found[1], value=self._word() + hidden, append=bool(found[3]))
        self._at += 1
        items: list[Word] = []
        while True:
            self._lines()
            if self._starts(")"):
                self._at += 1
                return Assignment(name=found[1], items=tuple(items), append=bool(found[3]))
            word = self._word()
            if not word:
                raise Unclear("an unusual array")
            items.append(self._without_key(word))

    @staticmethod
    def _without_key(word: Word) -> Word:
        """Return the value of `[key]=value` in an array."""
        first = word[0]
        if isinstance(first, Text) and not first.quoted:
            return (replace(first, text=KEY.sub("", first.text)), *word[1:])
        return word

    def _literal_word(self) -> str:
        word = self._word()
        if not word or not all(isinstance(part, Text) for part in word):
            raise Unclear("an unusual loop")
        return "".join(part.text for part in word if isinstance(part, Text))
