"""Orders the layers of the system prompt, once per session."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from hermes.codec.tokens import CHARS_PER_TOKEN
from hermes.codec.values import Value

_ATTACH = "To send a file, write MEDIA:/absolute/path on a line of its own."
_CHAT = f"Markdown is shown. Keep messages short; long ones are split. {_ATTACH}"
HINTS = {
    "cli": "You are in a terminal: short Markdown reads well, wide tables do not. "
    "Name files by their path.",
    "api": "Follow the format that the client asks for.",
    "acp": "You are in an editor: Markdown is shown; name files by path and line.",
    "telegram": f"You are in Telegram, at most 4096 characters a message; no tables. {_CHAT}",
    "discord": f"You are in Discord, at most 2000 characters a message; no tables. {_CHAT}",
    "slack": f"You are in Slack: *bold*, _italic_, `code`; no tables or headings. {_ATTACH}",
    "whatsapp": f"You are in WhatsApp: *bold*, _italic_; no tables, no headings. {_ATTACH}",
    "signal": f"You are in Signal: plain text with little mark-up. {_ATTACH}",
    "matrix": f"You are in Matrix. {_CHAT}",
    "mattermost": f"You are in Mattermost. {_CHAT}",
    "teams": f"You are in Microsoft Teams. {_CHAT}",
    "feishu": f"You are in Feishu. {_CHAT}",
    "dingtalk": f"You are in DingTalk. {_CHAT}",
    "wecom": f"You are in WeCom. {_CHAT}",
    "line": f"You are in LINE: plain text, no Markdown. {_ATTACH}",
    "email": f"You write an e-mail: plain text without Markdown, with a proper ending. {_ATTACH}",
    "sms": "You answer by SMS: at most 1600 characters, plain text, no Markdown, no links needed.",
    "voice": "Your answer is spoken: short sentences, no mark-up, no lists, numbers in words.",
    "webhook": "Nobody watches you work; your last message is delivered as the result.",
    "homeassistant": "You answer in a home: one or two plain sentences that can be spoken.",
    "cron": "Nobody is present: do not ask questions. Your last message is delivered as is; reply "
    "exactly [SILENT] to deliver nothing.",
    "batch": "Nobody is present: do not ask questions; finish the task yourself.",
}


def platform_hint(platform: str, own: Mapping[str, object]) -> str:
    """Return the hint for a surface. A user string is appended; a mapping may `replace` or
    `append`."""
    hint, custom = HINTS.get(platform, ""), own.get(platform)
    if isinstance(custom, str):
        return f"{hint} {custom}".strip()
    if isinstance(custom, Mapping):
        replaced = custom.get("replace")
        hint = str(replaced) if replaced is not None else hint
        return f"{hint} {custom.get('append') or ''}".strip()
    return hint


DEFAULT_IDENTITY = (
    "You are Hermes, a helpful and knowledgeable assistant who gets things done with tools. "
    "Be direct and useful rather than long. Say so when you are not sure."
)
COMPLETION = (
    "Finish the job: deliver a working result, not a plan or a stub, and check it with real "
    "output. If something blocks you, say exactly what failed. Never invent results."
)
PARALLEL = (
    "Call tools that do not depend on each other together in one reply; keep dependent steps apart."
)
ENFORCEMENT = (
    "When you say that you will do something, do it in the same reply. Keep going until the task "
    "is done; do not end with a promise. Use tools for arithmetic, time, files and git."
)
GOOGLE = (
    "Use absolute paths. Read before you edit. Prefer flags that make commands "
    "non-interactive. Be brief."
)
PERSISTENT = (
    "When a result is poor, try another way before giving up. Check the requirements of a step "
    "before it and the outcome before you claim it."
)
ENFORCED_FAMILIES = ("gpt", "codex", "gemini", "gemma", "grok", "glm", "qwen", "deepseek")
_FAMILY_NOTES = (
    (("gemini", "gemma"), GOOGLE),
    (("gpt", "codex", "grok"), PERSISTENT),
)
ABOUT_TOOLS = {
    "memory": "Save durable facts and corrections with memory at once.",
    "session_search": "When the user refers to earlier work, search for it before you ask.",
    "skill_manage": "After hard or corrected work save what you learned as a skill; repair a skill "
    "that was wrong before you finish.",
    "tool_search": "More tools exist than are listed: find them with tool_search, use them with "
    "tool_call.",
}
# Start of the last layer.
FACTS = "Conversation started:"
_MODEL, _PROVIDER = "Model: ", "Provider: "
# Size limits of blocks from other packages.
SLOT_CHARS = {"skills": 2_000, "memory": 4_500, "external_memory": 1_600}
_SLOT_SHARE = 0.05


class Layer(Value):
    """A named part of the system prompt; empty ones are dropped."""

    name: str
    text: str


class Slots(Value):
    """Blocks from other packages at session start: skill index, memory, external memory."""

    skills: str = ""
    memory: str = ""
    external_memory: str = ""


class PromptFacts(Value):
    """Facts about the environment of a session."""

    platform: str
    cwd: str
    system: str
    model: str
    provider: str
    now: float
    hint: str = ""
    platform_hint: str = ""
    # Empty for the default profile.
    profile: str = ""
    # In tokens.
    window: int = 0
    # Shown if it is set.
    session_id: str = ""


def build_layers(
    here: PromptFacts,
    *,
    soul: str = "",
    tools: Sequence[str] = (),
    completion: bool = True,
    parallel: bool = True,
    enforcement: str = "auto",
    extra: str = "",
    project: str = "",
    slots: Slots | None = None,
) -> tuple[Layer, ...]:
    """Return all non-empty layers, stable ones first and session-specific ones last."""
    brought = slots or Slots()
    # The skill index already says when to write one.
    covered = {"skill_manage"} if brought.skills else set()
    about = "\n".join(ABOUT_TOOLS[name] for name in ABOUT_TOOLS if name in {*tools} - covered)
    named = (
        ("identity", soul.strip() or DEFAULT_IDENTITY),
        ("completion", COMPLETION if tools and completion else ""),
        ("parallel calls", PARALLEL if tools and parallel else ""),
        ("about tools", about),
        ("tool use", _enforcement_text(here.model, enforcement) if tools else ""),
        ("skills index", fit_block("skills", brought.skills, here.window)),
        (
            "environment",
            f"You work on {here.system}, in the folder {here.cwd}. {here.hint}".strip(),
        ),
        ("profile", _PROFILE.format(here.profile) if here.profile else ""),
        ("platform", here.platform_hint),
        ("caller", extra.strip()),
        ("project files", project),
        ("memory", fit_block("memory", brought.memory, here.window)),
        ("external memory", fit_block("external_memory", brought.external_memory, here.window)),
        ("facts", _facts(here)),
    )
    return tuple(Layer(name=name, text=text) for name, text in named if text)


_PROFILE = (
    "You run as the profile {}. Leave skills, plugins, schedules and memories of other profiles "
    "alone unless you are told otherwise."
)


def fit_block(name: str, text: str, window: int) -> str:
    """Cut a block at a line end to its limit."""
    limit = SLOT_CHARS[name]
    if window:
        limit = min(limit, max(400, int(window * CHARS_PER_TOKEN * _SLOT_SHARE)))
    text = text.strip()
    if len(text) <= limit:
        return text
    kept = text[:limit].rpartition("\n")[0] or text[:limit]
    left = text[len(kept) :].count("\n")
    return f"{kept}\n[{max(1, left)} more lines are not shown]"


def join_layers(parts: Sequence[Layer]) -> str:
    return "\n\n".join(layer.text for layer in parts)


def with_model(text: str, model: str, provider: str) -> str:
    """Replace the lines that name the model and provider."""
    before, mark, facts = text.rpartition(f"\n\n{FACTS}")
    if not mark:
        return text
    named = {_MODEL: model, _PROVIDER: provider}
    lines = facts.split("\n")
    for n, line in enumerate(lines):
        for name, value in named.items():
            if line.startswith(name):
                lines[n] = f"{name}{value}"
    return before + mark + "\n".join(lines)


def _enforcement_text(model: str, wanted: str) -> str:
    """Return the text that tells a model to use tools. `wanted` is "auto", "true", "false" or
    comma-separated model names."""
    name, wanted = model.lower(), wanted.strip().lower()
    families: tuple[str, ...] = ENFORCED_FAMILIES
    if wanted not in ("auto", "true", "false"):
        families = tuple(part.strip() for part in wanted.strip("[]").split(",") if part.strip())
    if wanted == "false" or not (wanted == "true" or any(each in name for each in families)):
        return ""
    notes = (note for names, note in _FAMILY_NOTES if any(each in name for each in names))
    return " ".join((ENFORCEMENT, *notes))


def _facts(here: PromptFacts) -> str:
    # Only the date, so that the text stays cacheable all day.
    day = time.strftime("%A, %B %d, %Y", time.localtime(here.now))
    session = f"Session ID: {here.session_id}\n" if here.session_id else ""
    return f"{FACTS} {day}\n{session}{_MODEL}{here.model}\n{_PROVIDER}{here.provider}"
