"""Settings of redaction, URL filtering, trusted folders and text scanning."""

from __future__ import annotations

from typing import Annotated, Literal

from hermes.codec.values import Value


class BlocklistSettings(Value):
    """Blocked websites."""

    enabled: Annotated[bool, "Enforce the list."] = False
    domains: Annotated[tuple[str, ...], "Domains, including subdomains, or patterns with `*`."] = ()
    shared_files: Annotated[tuple[str, ...], "Files with one domain or pattern per line."] = ()


class SecuritySettings(Value):
    redact_secrets: Annotated[
        bool, "Mask text that looks like a secret; configured secrets are always masked."
    ] = True
    allow_private_urls: Annotated[
        bool, "Allow URLs of this machine and private networks, but never metadata services."
    ] = False
    website_blocklist: BlocklistSettings = BlocklistSettings()
    trusted_dirs: Annotated[
        tuple[str, ...], "If set, files outside these folders are untrusted, like web pages."
    ] = ()
    context_scan: Annotated[
        Literal["block", "warn", "off"],
        "What happens to a project file that looks like a prompt injection.",
    ] = "block"
    trusted_hosts: Annotated[
        tuple[str, ...],
        "Hosts that may receive data without a question, even if untrusted text asks for it.",
    ] = ()
    write_safe_roots: Annotated[
        tuple[str, ...],
        "If set, files are written and deleted only below these folders.",
    ] = ()
