"""Checks Python code by its calls: files, processes, network."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from functools import cache

from hermes.policy.call import Call
from hermes.policy.exposure import check_secret_names
from hermes.policy.outgoing import NEAR
from hermes.policy.patterns import PythonCalls, load_regex, vocabulary, word_list, word_set
from hermes.policy.programs.python_values import PythonValues, written_arguments
from hermes.policy.shell.state import ENDLESS_FILES, UNKNOWN

SILENT = load_regex("python_silent_call")


@cache
def _asked_calls() -> dict[str, PythonCalls]:
    return {name: each for each in vocabulary().python_asked for name in each.calls.split()}


def follow_python(call: Call, code: str) -> bool:
    """Follow Python code; return whether it could be parsed."""
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    call.work(reason="It runs inline Python code.")
    check_secret_names(call, code)
    nodes = [node for node in _nodes(tree) if type(node) in READ]
    forks = "fork" in code or "Popen" in code
    values = PythonValues(call)
    values.bind_all(nodes)
    reader = _Reader(call, values)
    for node in nodes:
        if isinstance(node, ast.Call):
            reader.visit_call(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            reader.visit_text(node.value)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            reader.visit_joined(node)
        elif isinstance(node, ast.Attribute) and node.attr in ("__globals__", "__subclasses__"):
            call.ask("obfuscated", "Its code calls functions indirectly.")
        elif forks and isinstance(node, LOOPS) and _forks(node):
            call.never("power", "it is a fork bomb")
    return True


def _nodes(tree: ast.AST) -> list[ast.AST]:
    """Return all nodes of a tree, several times faster than `ast.walk`."""
    found = [tree]
    for node in found:
        for part in vars(node).values():
            kind = type(part)
            if kind is list:
                found += [each for each in part if isinstance(each, ast.AST)]
            elif kind is int or kind is str:
                continue
            elif isinstance(part, ast.AST):
                found.append(part)
    return found


LOOPS = (ast.While, ast.For, ast.ListComp, ast.GeneratorExp, ast.SetComp)
# The node types that matter.
READ = frozenset(
    (
        *LOOPS,
        *(ast.Import, ast.ImportFrom, ast.Assign, ast.withitem, ast.comprehension),
        *(ast.Call, ast.Constant, ast.Attribute, ast.BinOp),
    )
)


def _forks(loop: ast.AST) -> bool:
    """Whether a loop copies the process, or without an end starts others and waits for none."""
    nodes = _nodes(loop)
    names = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    if "fork" in names or not (isinstance(loop, ast.While) and isinstance(loop.test, ast.Constant)):
        return "fork" in names
    waits = names & {"wait", "communicate", "sleep", "join", "run"}
    return "Popen" in names and not waits and not any(isinstance(n, ast.Break) for n in nodes)


def _is_among(name: str, names: Collection[str]) -> bool:
    """Whether the name or one of its modules is listed."""
    while name not in names:
        name, dot, _ = name.rpartition(".")
        if not dot:
            return False
    return True


class _Reader:
    def __init__(self, call: Call, values: PythonValues) -> None:
        self._call = call
        self._dotted_name = values.dotted_name
        self._text = values.text
        self._first = values.first
        self._owner = values.owner
        self._strings = values.strings

    def visit_call(self, node: ast.Call) -> None:
        name = self._dotted_name(node.func)
        tail = name.rpartition(".")[2]
        if name in ("__import__", "importlib.import_module", "getattr"):
            constant = node.args and isinstance(
                node.args[-1 if name == "getattr" else 0], ast.Constant
            )
            if not constant and len(node.args) < 3:
                self._call.ask("obfuscated", "Its code calls functions by computed names.")
        elif name in word_set("python_runs_code"):
            self._follow_evaluated(node, name)
        elif name in word_set("python_runs_text"):
            self._runs_text(self._text(node.args[0]) if node.args else UNKNOWN)
        elif name in word_set("python_runs_words") or re.match(r"os\.(exec|spawn)", name):
            self._runs_words(node, name)
        elif asked := _asked_calls().get(name):
            self._call.ask(asked.category, asked.reason)
            if name == "os.kill" and node.args and ast.unparse(node.args[0]) == "-1":
                self._call.never("process_kill", "it kills every process")
        elif name in ("sys.path.insert", "sys.path.append", "site.addsitedir") and node.args:
            if not self._call.here(self._text(node.args[-1])):
                self._call.ask("shell_escape", "Its code loads code from outside the workspace.")
        elif tail == "fork":
            self._call.ask("unclear", "Its code starts copies of itself.")
        else:
            self._touches(node, name, tail)

    def _touches(self, node: ast.Call, name: str, tail: str) -> None:
        call = self._call
        deletes = name in word_set("python_deletes")
        if deletes or (tail in word_set("python_path_deletes") and not name.startswith("re.")):
            path = self._text(node.args[0]) if deletes and node.args else self._owner(node)
            call.deletes(path, recursive="rmtree" in name)
        elif name in written_arguments():
            for index in written_arguments()[name]:
                call.writes(self._text(node.args[index]) if index < len(node.args) else UNKNOWN)
        elif name in ("open", "io.open", "codecs.open") or (tail == "open" and "Path" in name):
            self._opens(node, name)
        elif tail in word_set("python_path_writes"):
            call.writes(self._owner(node))
        elif tail in ("read_text", "read_bytes"):
            self._reads_whole(self._owner(node))
        elif tail in ("read", "readlines") and not node.args and "open()" in name:
            opened = node.func.value if isinstance(node.func, ast.Attribute) else None
            self._reads_whole(self._first(opened) if isinstance(opened, ast.Call) else UNKNOWN)
        elif tail in ("join", "joinpath"):
            self.visit_joined(node)
        elif tail in ("rename", "replace") and name.rpartition(".")[0].endswith(
            word_list("python_paths")
        ):
            call.writes(self._owner(node), *(self._text(each) for each in node.args[:1]))
        else:
            self._reaches(node, name)

    def _reaches(self, node: ast.Call, name: str) -> None:
        call = self._call
        if _is_among(name, word_set("python_listens")):
            call.ask("network_listen", "Its code opens a port to other machines.")
        elif _is_among(name, word_set("python_network_modules")):
            if SILENT.match(name):
                return
            fetches = name in word_set("python_fetches") and len(node.args) == 1
            plain = fetches and {each.arg for each in node.keywords} <= {"timeout"}
            if node.args and NEAR.match(self._text(node.args[0])):
                call.work(reason="Its code connects to a local program.")
            elif plain and UNKNOWN not in self._text(node.args[0]):
                call.work("network", f"Its code fetches {self._text(node.args[0])}.")
            else:
                call.ask("network_out", "Its code connects to another machine.")

    def _opens(self, node: ast.Call, name: str) -> None:
        first = 0 if "Path" in name else 1
        modes = [self._text(each) for each in node.args[first : first + 1]]
        modes += [self._text(each.value) for each in node.keywords if each.arg == "mode"]
        path = self._owner(node) if "Path" in name else self._first(node)
        if any(set(mode) & set("wax+" + UNKNOWN) for mode in modes):
            append = all("a" in mode for mode in modes)
            self._call.writes(path, append=append)
        else:
            self._call.reads(path)

    def _follow_evaluated(self, node: ast.Call, name: str) -> None:
        text = self._first(node)
        if name in ("eval", "compile") and UNKNOWN not in text and follow_python(self._call, text):
            return
        if UNKNOWN not in text:
            follow_python(self._call, text)
        self._call.ask("obfuscated", "Its code runs code that is known only at run time.")

    def _runs_text(self, text: str) -> None:
        self._call.runs_text(text)
        if UNKNOWN in text:
            # It may be assembled from any literal in the code.
            texts = self._strings[:40]
            for each in texts:
                self._call.probes(each)
            if len(texts) > 1:
                self._call.probes(" ".join(texts))

    def _runs_words(self, node: ast.Call, name: str) -> None:
        words = node.args[0] if node.args else None
        if "spawn" in name and name.startswith("os.spawn"):
            words = node.args[1] if len(node.args) > 1 else None
        if isinstance(words, ast.List | ast.Tuple):
            self._call.runs([self._text(each) for each in words.elts])
        elif name.startswith(("os.exec", "os.spawn", "os.posix", "pty.", "asyncio.")):
            listed = [each for each in node.args if isinstance(each, ast.List | ast.Tuple)]
            named = listed[0].elts if listed else node.args
            self._call.runs([self._text(each) for each in named] or [UNKNOWN])
            self._call.ask("shell_escape", "Its code replaces itself with another program.")
        else:
            self._runs_text(self._text(words) if words is not None else UNKNOWN)

    def _reads_whole(self, path: str) -> None:
        self._call.reads(path)
        if path in ENDLESS_FILES:
            self._call.ask("disk", "Its code reads from a source that never ends.")

    def visit_joined(self, node: ast.expr) -> None:
        """Read a path that the code puts together."""
        path = self._text(node)
        if path[:1] in ("/", "~", "."):
            self._call.reads(path)

    def visit_text(self, text: str) -> None:
        """Read a literal that looks like a path."""
        if 3 < len(text) < 200 and " " not in text and ("/" in text or text[0] in "~."):
            self._call.reads(text)


def strings(code: str) -> Iterator[str]:
    """Yield the string literals in code of any language."""
    for found in re.finditer(r"'((?:[^'\\\n]|\\.)*)'|\"((?:[^\"\\\n]|\\.)*)\"", code):
        yield found[1] if found[1] is not None else found[2]
