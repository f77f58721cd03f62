"""Telegram as `hermes gateway setup` shows it, without its code."""

from __future__ import annotations

from hermes.surfaces.gateway.platform import Abilities, Manifest, SettingField

MANIFEST = Manifest(
    name="telegram",
    title="Telegram",
    adapter="hermes.surfaces.gateway.platforms.telegram.adapter:Telegram",
    abilities=Abilities(
        max_chars=4096,
        counting="utf16",
        markup="telegram-html",
        edits=True,
        deletes=True,
        typing_seconds=4.0,
        reactions=True,
        threads=True,
        choices="buttons",
        files=True,
        voice_notes=True,
        max_upload_bytes=50 * 1024 * 1024,
        resolution="none",
        max_menu_commands=60,
    ),
    fields=(
        SettingField(
            env="TELEGRAM_BOT_TOKEN",
            label="Bot token",
            help="@BotFather shows it after /newbot.",
            is_secret=True,
        ),
        SettingField(
            env="TELEGRAM_ALLOWED_USERS",
            label="Allowed users",
            help="Numeric user ids, separated by commas; @userinfobot tells yours. Without one, "
            "people who write to the bot get a pairing code.",
            is_required=False,
        ),
        SettingField(
            env="TELEGRAM_HOME_CHANNEL",
            label="Home chat",
            help="The chat id for scheduled messages; /sethome in a chat sets it later.",
            is_required=False,
        ),
    ),
    credential="TELEGRAM_BOT_TOKEN",
    steps=(
        "Open a chat with @BotFather in Telegram and send /newbot.",
        "Choose a name and a user name that ends with `bot`, then copy the token.",
        "For groups: send /setprivacy to @BotFather and disable privacy, or make the bot an "
        "administrator; otherwise it sees only commands and replies.",
    ),
    docs="platforms/telegram.md",
)
