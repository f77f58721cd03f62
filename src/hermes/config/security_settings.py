"""Settings of what nobody is asked about: secrets, addresses, folders and texts."""

from __future__ import annotations

from typing import Annotated, Literal

from hermes.codec.values import Value


class BlocklistSettings(Value):
    """Websites that are not visited."""

    enabled: Annotated[bool, "Use the list."] = False
    domains: Annotated[tuple[str, ...], "Names, with all below them, or patterns with `*`."] = ()
    shared_files: Annotated[tuple[str, ...], "Files with one name or pattern in each line."] = ()


class SecuritySettings(Value):
    redact_secrets: Annotated[
        bool, "Mask what looks like a secret; configured values are masked in any case."
    ] = True
    allow_private_urls: Annotated[
        bool, "Fetch from this machine and private networks too; metadata services never."
    ] = False
    website_blocklist: BlocklistSettings = BlocklistSettings()
    trusted_dirs: Annotated[
        tuple[str, ...], "If given, files elsewhere count as text of strangers, as web pages do."
    ] = ()
    context_scan: Annotated[
        Literal["block", "warn", "off"],
        "What becomes of a project file that reads like a prompt injection.",
    ] = "block"
    trusted_hosts: Annotated[
        tuple[str, ...],
        "Hosts that may be sent what a stranger's text asks for, without a question.",
    ] = ()
    write_safe_roots: Annotated[
        tuple[str, ...],
        "If given, files are written, changed and deleted below these folders only.",
    ] = ()
