"""Matrix as `hermes gateway setup` shows it, without its code."""

from __future__ import annotations

from hermes.surfaces.gateway.platform import Abilities, Manifest, SettingField

MANIFEST = Manifest(
    name="matrix",
    title="Matrix",
    adapter="hermes.surfaces.gateway.platforms.matrix.adapter:Matrix",
    abilities=Abilities(
        max_chars=16_000,
        markup="matrix-html",
        edits=True,
        deletes=True,
        typing_seconds=20.0,
        reactions=True,
        shows_state=True,
        choices="reactions",
        threads=True,
        files=True,
        max_upload_bytes=50_000_000,
        resolution="key",
        command_prefixes=("/", "!"),
    ),
    fields=(
        SettingField(
            env="MATRIX_HOMESERVER", label="Homeserver", help="For example https://matrix.org."
        ),
        SettingField(
            env="MATRIX_USER_ID",
            label="User id",
            help="The account of the bot, such as @hermes:matrix.org.",
            is_required=False,
        ),
        SettingField(
            env="MATRIX_PASSWORD",
            label="Password",
            help="The password of the account; not needed with an access token.",
            is_secret=True,
            is_required=False,
        ),
        SettingField(
            env="MATRIX_ACCESS_TOKEN",
            label="Access token",
            help="Instead of user id and password.",
            is_secret=True,
            is_required=False,
        ),
        SettingField(
            env="MATRIX_ALLOWED_USERS",
            label="Allowed users",
            help="User ids, separated by commas. Hermes accepts invitations from them.",
            is_required=False,
        ),
    ),
    credential="MATRIX_HOMESERVER",
    extra="matrix",
    steps=(
        "Register an account for the bot on your homeserver.",
        "Invite the bot to a room from the account of an allowed user.",
    ),
    docs="platforms/matrix.md",
)
