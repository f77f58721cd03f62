"""Values of Python expressions, as far as the text of the code tells them."""

from __future__ import annotations

import ast
import base64
import codecs
from collections.abc import Callable
from functools import cache

from hermes.policy.call import Call
from hermes.policy.patterns import word_list, word_set
from hermes.policy.shell.state import SOME, UNKNOWN

DECODERS: dict[str, Callable[[str], bytes]] = {
    "b64decode": lambda text: base64.b64decode(text + "==="),
    "urlsafeb64decode": lambda text: base64.urlsafe_b64decode(text + "==="),
    "b32decode": base64.b32decode,
    "b16decode": lambda text: base64.b16decode(text, True),
    **dict.fromkeys(("fromhex", "unhexlify", "hex"), bytes.fromhex),
    "rot13": lambda text: codecs.decode(text, "rot13").encode("utf-8", "surrogatepass"),
}


@cache
def written_arguments() -> dict[str, tuple[int, ...]]:
    """Return, by function, which of its arguments are files that it writes."""
    entries = (entry.partition("=") for entry in word_list("python_writes"))
    return {name: tuple(map(int, places.split(","))) for name, _, places in entries}


class PythonValues:
    """The variables and imported names of a piece of code."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._names: dict[str, str] = {}
        self._values: dict[str, str] = {}
        self._lists: set[str] = set()
        self.strings: list[str] = []

    def bind_all(self, nodes: list[ast.AST]) -> None:
        """Collect literals, imported names and variables."""
        for node in nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
                self.strings.append(node.value)
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
            *written_arguments(),
        ):
            if full.startswith(module + "."):
                self._names[full.rpartition(".")[2]] = full

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if not isinstance(target, ast.Name):
            return
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            same = self._values.get(target.id, value.value) == value.value
            self._values[target.id] = value.value if same else UNKNOWN
        elif isinstance(value, ast.Attribute | ast.Call | ast.BinOp) and (
            name := self.dotted_name(value)
        ):
            self._names[target.id] = name
            if "Path" in name or name.startswith(("os.path.", "tempfile.")):
                text = self.text(value)
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
            if self.dotted_name(source.func) == "os.walk":
                self._bind_walk(target, self.first(source) if source.args else ".")
        elif isinstance(target, ast.Name) and isinstance(source, ast.Call):
            tail = self.dotted_name(source.func).rpartition(".")[2]
            if tail in ("rglob", "glob", "iterdir") and isinstance(source.func, ast.Attribute):
                module = self.dotted_name(source.func.value) == "glob"
                base = "." if module else self.text(source.func.value)
                self._values[target.id] = self.first(source) if module else f"{base}/{SOME}"
            elif tail in ("listdir", "scandir", "iglob"):
                base = self.first(source) if source.args else "."
                self._values[target.id] = f"{base}/{SOME}"

    def _bind_walk(self, target: ast.Tuple, base: str) -> None:
        """Bind the variables of `for root, folders, files in os.walk(".")`: all of it lies below
        that folder."""
        names = [each.id for each in target.elts if isinstance(each, ast.Name)]
        if len(names) == 3:
            self._values[names[0]] = f"{base}/{SOME}"
            self._lists.update(names[1:])

    def dotted_name(self, node: ast.expr) -> str:
        """Return the full name of a function, its module's alias undone; "?" for what has none."""
        match node:
            case ast.Name(id=name):
                return self._names.get(name, name)
            case ast.Attribute(value=value, attr=attr):
                return f"{self.dotted_name(value)}.{attr}"
            case ast.Call(func=func, args=[first, *rest]):
                name = self.dotted_name(func)
                if name in ("__import__", "importlib.import_module"):
                    return self.text(first)
                if name == "getattr" and rest:
                    return f"{self.dotted_name(first)}.{self.text(rest[0])}"
                return f"{name}()"
            case ast.Call(func=func):
                return f"{self.dotted_name(func)}()"
            case ast.BinOp(left=left):
                return self.dotted_name(left)
            case _:
                return "?"

    def text(self, node: ast.expr) -> str:
        """Return the value of an expression as far as its text tells."""
        match node:
            case ast.Constant(value=str() as text):
                return text
            case ast.Constant(value=bytes() as raw):
                return raw.decode("utf-8", "replace")
            case ast.Name(id=name) if name in self._values:
                return self._values[name]
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self.text(left) + self.text(right)
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return f"{self.text(left)}/{self.text(right)}"
            case ast.JoinedStr(values=values):
                return "".join(self.text(each) for each in values)
            case ast.Call(
                func=ast.Attribute(value=ast.Constant(value=str() as sign), attr="join"),
                args=[ast.List(elts=parts) | ast.Tuple(elts=parts)],
            ):
                return sign.join(self.text(each) for each in parts)
            case ast.Call(func=ast.Attribute(value=value, attr="joinpath" | "join"), args=args):
                owner = [] if self.dotted_name(value) == "os.path" else [value]
                return "/".join(self.text(each) for each in (*owner, *args))
            case ast.Call(args=args):
                return self._called_text(node, args)
            case ast.Subscript(value=value, slice=ast.Constant(value="HOME")):
                return self._call.paths.home if self._is_environment(value) else UNKNOWN
            case ast.Attribute(value=ast.Name(id="sys"), attr="executable"):
                return "python3"
            case ast.Attribute(value=value, attr="parent"):
                return f"{self.text(value)}/.."
            case _:
                return UNKNOWN

    def _is_environment(self, node: ast.expr) -> bool:
        return self.dotted_name(node) in word_set("python_environment")

    def first(self, node: ast.Call) -> str:
        return self.text(node.args[0]) if node.args else UNKNOWN

    def owner(self, node: ast.Call) -> str:
        """Return the path that a method is called on."""
        return self.text(node.func.value) if isinstance(node.func, ast.Attribute) else UNKNOWN

    def _called_text(self, node: ast.Call, args: list[ast.expr]) -> str:
        name = self.dotted_name(node.func)
        if (plain := self._decode(node, name)) is not None:
            self._call.ask("obfuscated", "Its code hides text inside other text.")
            return plain
        if name in word_set("python_temporary"):
            return f"/tmp/{SOME}"
        asked = self._is_environment(node.func) and self.first(node) == "HOME"
        if name.endswith("Path.home") or asked:
            return self._call.paths.home
        if name.endswith(("Path.cwd", "os.getcwd")):
            return self._call.state.cwd
        if name.endswith(("Path", "expanduser", "os.path.abspath", "str", "resolve", "fspath")):
            if args:
                return self.text(args[0])
            return self.owner(node)
        return UNKNOWN

    def _decode(self, node: ast.Call, name: str) -> str | None:
        """Return the decoded literal of a call such as b64decode."""
        tail = name.rpartition(".")[2]
        inner = node.func.value if isinstance(node.func, ast.Attribute) else None
        if tail in ("decode", "encode") and isinstance(inner, ast.Call):
            return self.text(inner)
        if tail in ("decode", "encode") and name.startswith(("codecs.", "base64.")):
            tail = self.text(node.args[1]) if len(node.args) > 1 else "b64decode"
        decode = DECODERS.get(tail.replace("-", "").replace("_", "").lower())
        if decode is None or not node.args:
            return None
        try:
            return decode(self.text(node.args[0])).decode("utf-8", "replace")
        except ValueError:
            return UNKNOWN
