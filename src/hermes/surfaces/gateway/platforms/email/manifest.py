"""Email as `hermes gateway setup` shows it, without its code."""

from __future__ import annotations

from hermes.surfaces.gateway.platform import Abilities, Manifest, SettingField

MANIFEST = Manifest(
    name="email",
    title="Email",
    adapter="hermes.surfaces.gateway.platforms.email.adapter:Email",
    abilities=Abilities(
        max_chars=50_000,
        markup="plain",
        threads=True,
        files=True,
        max_upload_bytes=25_000_000,
        resolution="read_back",
        offers_pairing=False,
    ),
    fields=(
        SettingField(
            env="EMAIL_ADDRESS",
            label="Address",
            help="A mailbox for Hermes alone, not your own: Hermes answers what arrives there.",
        ),
        SettingField(
            env="EMAIL_PASSWORD",
            label="Password",
            help="The password of the mailbox; with two-factor login an app password.",
            is_secret=True,
        ),
        SettingField(env="EMAIL_IMAP_HOST", label="IMAP server", help="For example imap.mail.org."),
        SettingField(env="EMAIL_SMTP_HOST", label="SMTP server", help="For example smtp.mail.org."),
        SettingField(
            env="EMAIL_ALLOWED_USERS",
            label="Allowed senders",
            help="Addresses or @domains, separated by commas.",
            is_required=False,
        ),
        SettingField(
            env="EMAIL_AUTHSERV_ID",
            label="Authentication server",
            help="The name at the beginning of Authentication-Results headers of your provider.",
            is_required=False,
        ),
    ),
    credential="EMAIL_ADDRESS",
    steps=(
        "Make a mailbox for Hermes and allow IMAP for it.",
        "With two-factor login, make an app password.",
        "Name the people who may write to Hermes.",
    ),
    docs="platforms/email.md",
)
