"""Hints for the model about each surface: mark-up, length, files."""

from __future__ import annotations

from collections.abc import Mapping

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
    """Returns the hint for a surface. A user string is appended; a mapping may `replace` or
    `append`."""
    hint, given = HINTS.get(platform, ""), own.get(platform)
    if isinstance(given, str):
        return f"{hint} {given}".strip()
    if isinstance(given, Mapping):
        replaced = given.get("replace")
        hint = str(replaced) if replaced is not None else hint
        return f"{hint} {given.get('append') or ''}".strip()
    return hint
