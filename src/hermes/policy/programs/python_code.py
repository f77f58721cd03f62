"""Checks Python code by its calls: files, processes, network."""

from __future__ import annotations

import ast
import base64
import codecs
import re
from collections.abc import Callable, Collection, Iterator
from functools import cache

from hermes.policy.call import Call
from hermes.policy.exposure import check_secret_names
from hermes.policy.outgoing import NEAR
from hermes.policy.patterns import PythonCalls, load_regex, vocabulary, word_list, word_set
from hermes.policy.shell.state import SOME, UNKNOWN

SILENT = load_regex("python_silent_call")
DECODERS: dict[str, Callable[[str], bytes]] = {
    "b64decode": lambda text: base64.b64decode(text + "==="),
    "urlsafeb64decode": lambda text: base64.urlsafe_b64decode(text + "==="),
    "b32decode": base64.b32decode,
    "b16decode": lambda text: base64.b16decode(text, True),
    **dict.fromkeys(("fromhex", "unhexlify", "hex"), bytes.fromhex),
    "rot13": lambda text: codecs.decode(text, "rot13").encode("utf-8", "surrogatepass"),
}


@cache
def _writes() -> dict[str, tuple[int, ...]]:
    """Return, by function, which of its arguments are files that it writes."""
    entries = (entry.partition("=") for entry in word_list("python_writes"))
    return {name: tuple(map(int, places.split(","))) for name, _, places in entries}


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
    reader = _Reader(call)
    reader.imports(nodes)
    for node in nodes:
        if isinstance(node, ast.Call):
            reader.visit_call(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            reader.visit_text(node.value)
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
        *(ast.Call, ast.Constant, ast.Attribute),
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
    def __init__(self, call: Call) -> None:
        self._call = call
        self._names: dict[str, str] = {}
        self._values: dict[str, str] = {}
        self._strings: list[str] = []
        self._lists: set[str] = set()

    def imports(self, nodes: list[ast.AST]) -> None:
        for node in nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
                self._strings.append(node.value)
            if isinstance(node, ast.Import):
                for alias in node.names:
                    top = alias.name if alias.asname else alias.name.partition(".")[0]
                    self._names[alias.asname or top] = top
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    self._names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                    if alias.name == "*":
                        self._star(node.module or "")
            elif isinstance(node, ast.Assign) and len(node.targets) == 1:
                self._bind(node.targets[0], node.value)
            elif isinstance(node, ast.withitem) and node.optional_vars is not None:
                self._bind(node.optional_vars, node.context_expr)
            elif isinstance(node, ast.For | ast.comprehension):
                self._bind_items(node.target, node.iter)

    def _star(self, module: str) -> None:
        for full in (
            *word_set("python_runs_text"),
            *word_set("python_runs_words"),
            *word_set("python_deletes"),
            *_writes(),
        ):
            if full.startswith(module + "."):
                self._names[full.rpartition(".")[2]] = full

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if not isinstance(target, ast.Name):
            return
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            same = self._values.get(target.id, value.value) == value.value
            self._values[target.id] = value.value if same else UNKNOWN
        elif isinstance(value, ast.Attribute | ast.Call) and (name := self._dotted_name(value)):
            self._names[target.id] = name
            if "Path" in name or name.startswith(("os.path.", "tempfile.")):
                text = self._text(value)
                same = self._values.get(target.id, text) == text
                self._values[target.id] = text if same else UNKNOWN

    def _bind_items(self, target: ast.expr, source: ast.expr) -> None:
        """Bind the variable of a loop like `for path in Path("src").rglob("*.py")` to something
        below that folder."""
        if isinstance(source, ast.Call) and isinstance(source.func, ast.Name) and source.args:
            # sorted(…), list(…), enumerate(…)
            self._bind_items(target, source.args[0])
        elif isinstance(target, ast.Name) and isinstance(source, ast.Name):
            if source.id in self._lists:
                self._values[target.id] = SOME
        elif isinstance(target, ast.Tuple) and isinstance(source, ast.Call):
            if self._dotted_name(source.func) == "os.walk":
                self._bind_walk(target, self._first(source) if source.args else ".")
        elif isinstance(target, ast.Name) and isinstance(source, ast.Call):
            tail = self._dotted_name(source.func).rpartition(".")[2]
            if tail in ("rglob", "glob", "iterdir") and isinstance(source.func, ast.Attribute):
                module = self._dotted_name(source.func.value) == "glob"
                base = "." if module else self._text(source.func.value)
                self._values[target.id] = self._first(source) if module else f"{base}/{SOME}"
            elif tail in ("listdir", "scandir", "iglob"):
                base = self._first(source) if source.args else "."
                self._values[target.id] = f"{base}/{SOME}"

    def _bind_walk(self, target: ast.Tuple, base: str) -> None:
        """Bind the variables of `for root, folders, files in os.walk(".")`: all of it lies below
        that folder."""
        names = [each.id for each in target.elts if isinstance(each, ast.Name)]
        if len(names) == 3:
            self._values[names[0]] = f"{base}/{SOME}"
            self._lists.update(names[1:])

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
        elif name in _writes():
            for index in _writes()[name]:
                call.writes(self._text(node.args[index]) if index < len(node.args) else UNKNOWN)
        elif name in ("open", "io.open", "codecs.open") or (tail == "open" and "Path" in name):
            self._opens(node, name)
        elif tail in word_set("python_path_writes"):
            call.writes(self._owner(node))
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

    def _first(self, node: ast.Call) -> str:
        return self._text(node.args[0]) if node.args else UNKNOWN

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

    def visit_text(self, text: str) -> None:
        """Read a literal that looks like a path."""
        if 3 < len(text) < 200 and " " not in text and ("/" in text or text[0] in "~."):
            self._call.reads(text)

    def _owner(self, node: ast.Call) -> str:
        """Return the path that a method is called on."""
        return self._text(node.func.value) if isinstance(node.func, ast.Attribute) else UNKNOWN

    def _dotted_name(self, node: ast.expr) -> str:
        """Return the full name of a function, its module's alias undone; "?" for what has none."""
        match node:
            case ast.Name(id=name):
                return self._names.get(name, name)
            case ast.Attribute(value=value, attr=attr):
                return f"{self._dotted_name(value)}.{attr}"
            case ast.Call(func=func, args=[first, *rest]):
                name = self._dotted_name(func)
                if name in ("__import__", "importlib.import_module"):
                    return self._text(first)
                if name == "getattr" and rest:
                    return f"{self._dotted_name(first)}.{self._text(rest[0])}"
                return f"{name}()"
            case ast.Call(func=func):
                return f"{self._dotted_name(func)}()"
            case ast.BinOp(left=left):
                return self._dotted_name(left)
            case _:
                return "?"

    def _text(self, node: ast.expr) -> str:
        """Return the value of an expression as far as its text tells."""
        match node:
            case ast.Constant(value=str() as text):
                return text
            case ast.Constant(value=bytes() as raw):
                return raw.decode("utf-8", "replace")
            case ast.Name(id=name) if name in self._values:
                return self._values[name]
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._text(left) + self._text(right)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return f"{self._text(left)}/{self._text(right)}"
            case ast.JoinedStr(values=values):
                return "".join(self._text(each) for each in values)
            case ast.Call(func=ast.Attribute(value=value, attr="joinpath" | "join"), args=args):
                parts = [self._text(each) for each in args]
                owner = [] if self._dotted_name(value) == "os.path" else [self._text(value)]
                return "/".join([*owner, *parts])
            case ast.Call(args=args):
                return self._called_text(node, args)
            case ast.Attribute(value=ast.Name(id="sys"), attr="executable"):
                return "python3"
            case ast.Attribute(value=value, attr="parent"):
                return f"{self._text(value)}/.."
            case _:
                return UNKNOWN

    def _called_text(self, node: ast.Call, args: list[ast.expr]) -> str:
        name = self._dotted_name(node.func)
        if (plain := self._decode(node, name)) is not None:
            self._call.ask("obfuscated", "Its code hides text inside other text.")
            return plain
        if name in word_set("python_temporary"):
            return f"/tmp/{SOME}"
        if name.endswith("Path.home"):
            return self._call.paths.home
        if name.endswith(("Path.cwd", "os.getcwd")):
            return self._call.state.cwd
        if name.endswith(("Path", "expanduser", "os.path.abspath", "str", "resolve", "fspath")):
            if args:
                return self._text(args[0])
            return self._owner(node)
        return UNKNOWN

    def _decode(self, node: ast.Call, name: str) -> str | None:
        """Return the decoded literal of a call such as b64decode."""
        tail = name.rpartition(".")[2]
        inner = node.func.value if isinstance(node.func, ast.Attribute) else None
        if tail in ("decode", "encode") and isinstance(inner, ast.Call):
            return self._text(inner)
        if tail in ("decode", "encode") and name.startswith(("codecs.", "base64.")):
            tail = self._text(node.args[1]) if len(node.args) > 1 else "b64decode"
        decode = DECODERS.get(tail.replace("-", "").replace("_", "").lower())
        if decode is None or not node.args:
            return None
        try:
            return decode(self._text(node.args[0])).decode("utf-8", "replace")
        except ValueError:
            return UNKNOWN


def strings(code: str) -> Iterator[str]:
    """Yield the string literals in code of any language."""
    for found in re.finditer(r"'((?:[^'\\\n]|\\.)*)'|\"((?:[^\"\\\n]|\\.)*)\"", code):
        yield found[1] if found[1] is not None else found[2]
