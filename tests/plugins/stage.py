"""A home with plugins for tests: written, agreed to, loaded and called, as the program does it."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

from hermes.config.extension_settings import PluginEntrySettings
from hermes.plugins.contents import hash_of, read_contents
from hermes.plugins.discovery import FoundPlugin, SearchPaths
from hermes.plugins.permissions import PluginRules
from hermes.plugins.protocol import NO_CALLER, PluginCaller, PluginRequests
from hermes.plugins.registry import PluginRegistry, PluginState
from hermes.plugins.sandbox import PluginHost
from hermes.testing.clock import VirtualClock

CANARY = "canary-7f3a9-secret"


class Home:
    """`variables` is the environment of the host, with secrets that nobody asked for."""

    def __init__(self, root: Path) -> None:
        self.person = root / "person"
        self.root = self.person / ".hermes"
        self.plugins = self.root / "plugins"
        self.plugins.mkdir(parents=True)
        self.variables = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.person),
            "OPENAI_API_KEY": CANARY,
            "CANARY": CANARY,
        }
        for secret in (
            self.root / ".env",
            self.root / "hermes.db",
            self.person / "notes.txt",
            self.person / ".ssh" / "id_rsa",
        ):
            secret.parent.mkdir(exist_ok=True)
            secret.write_text(f"KEY={CANARY}\n")

    def write(self, key: str, code: str, manifest: str = "", **files: str) -> Path:
        """A plugin of the person's own; the manifest declares a tool `go` unless it is given."""
        folder = self.plugins / key
        folder.mkdir(parents=True, exist_ok=True)
        name = key.rpartition("/")[2]
        told = manifest or "provides_tools: [go]"
        (folder / "plugin.yaml").write_text(f"name: {name}\n{dedent(told)}\n")
        (folder / "__init__.py").write_text(dedent(code))
        for file, text in files.items():
            (folder / file).write_text(text)
        return folder

    def tool(self, key: str, body: str, **more: Any) -> Path:
        """A plugin with one tool `go`, whose handler is this."""
        lines = "\n".join(f"    {line}" for line in dedent(body).strip().splitlines())
        code = f"""
def go(args, **kw):
{lines}

def register(ctx):
    global CTX
    CTX = ctx
    ctx.register_tool("go", "test", {{"description": "Go.", "parameters": {{}}}}, go)
"""
        return self.write(key, code, **more)

    def agree(self, plugins: PluginRegistry, key: str) -> None:
        found = plugins.state(key).plugin
        hash = hash_of(read_contents(Path(found.path)))
        plugins.consents.agree(found, hash)

    def open(
        self,
        *keys: str,
        agree: bool = True,
        entries: dict[str, PluginEntrySettings] | None = None,
        serving: dict[str, Any] | None = None,
        taken: tuple[str, ...] = (),
        places: SearchPaths | None = None,
        scan: Any = lambda _text: ("", False),
        **rules: Any,
    ) -> PluginRegistry:
        whole = PluginRules(enabled=keys, entries=entries or {}, **rules)

        def serve(found: FoundPlugin) -> PluginRequests:
            return PluginRequests(found.name, whole.grants(found), **(serving or {}))

        def made() -> PluginRegistry:
            return PluginRegistry(
                whole,
                places or SearchPaths(user=str(self.plugins), pip=False, bundled=""),
                PluginHost(
                    home=str(self.root),
                    person=str(self.person),
                    variables=self.variables,
                    version="0.1.0",
                ),
                # A pause after a crash is as long as it was, however long a test takes.
                VirtualClock(),
                serve=serve,
                scan=scan,
                reserved_names=lambda: taken,
            )

        plugins = made()
        if agree:
            for key in keys:
                self.agree(plugins, key)
            plugins = made()
        return plugins


async def loaded(plugins: PluginRegistry) -> dict[str, PluginState]:
    await plugins.load(tuple(plugins.usable()))
    return {state.plugin.key: state for state in plugins.states}


async def called(
    plugins: PluginRegistry,
    key: str,
    arguments: Any = None,
    *,
    tool: str = "go",
    seconds: float = 60,
    caller: PluginCaller = NO_CALLER,
) -> Any:
    return await plugins.running(key).call(
        "tool", tool, arguments or {}, seconds=seconds, caller=caller
    )
