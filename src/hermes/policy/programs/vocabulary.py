"""What the words of a command line tell about programs and subcommands that no table names."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hermes.policy.patterns import regex
from hermes.policy.shell.state import UNKNOWN

# Subcommands that only look, whatever the program is.
LOOKS = frozenset(
    """
    list ls show get describe status info version help view cat search find query diff validate
    lint check verify plan preview inspect whoami logs log history tail doctor explain top stats
    stat whatis which where tree graph lookup head scan read print dump-config outdated audit
    count summary summarize report analyze analyse health ping test-connection dry-run template
    render docs doc about env contexts current-context why wait watch events usage df man completion
    lsd lsl lsf lsjson listremotes members health-check ready snapshots
    completions size checksum hash compare trace profile monitor synth symbols outline
    """.split()
)
# Alone, or at the end, these ask for a list.
THINGS = frozenset(
    """
    images services projects apps regions zones stacks tasks recipes providers resources ps
    containers volumes networks nodes pods contexts releases branches issues machines sites
    """.split()
)
# Subcommands that change, end or hand out something that is not only ours.
CHANGES = frozenset(
    """
    delete del destroy remove rm purge wipe nuke drop truncate flush reset revoke terminate kill
    stop restart reboot shutdown halt suspend pause evict drain cordon taint scale resize rollback
    undo rollout promote demote deploy publish unpublish release upload push sync ship apply
    create add
    set put post patch update upgrade edit replace import restore-backup attach detach assign grant
    bind unbind enable disable activate deactivate register deregister unregister approve reject
    merge close reopen transfer move mv rename tag untag label annotate lock unlock login logout
    signin auth authorize exec ssh attach cp copy send invoke call execute trigger run start submit
    cancel abort retry rotate renew reload reconcile up down provision deprovision teardown prune
    gc expire invalidate failover switchover impersonate accept invite share expose tunnel forward
    proxy connect join leave link unlink mount unmount format erase clear force fork transfer-out
    install uninstall bootstrap bootout adopt abandon archive yank deprecate subscribe publish-all
    """.split()
)
PLURAL = regex(r"[a-z-]{3,}[^sui]s")
SECRET = regex(
    r"(?i)\b(secrets?|tokens?|passwords?|passwd|credentials?|creds?|keys?|keychain|api-?keys?"
    r"|private-?keys?|kubeconfig|cookies?|variables?|vars|envs?|environments?)\b"
)
# Nothing comes back after these.
DESTROYS = frozenset("drop destroy wipe purge uninstall terminate nuke erase delete gc".split())
# Options by which a tool that works here also sends out what it has made.
SENDS = regex(
    r"^--?(?!(?:no|skip|dont|without|disable|allow|before|after|pre|post)-)(?:\w+-){0,2}?"
    r"(?:upload|publish|deploy|submit|notarize|push)"
    r"(?!-(?:dir|path|url|size|limit|timeout|folder|profile|port|target|rate|prefix|format|mode)\b)"
    r"(?:-[\w-]+)?(?:=(?!false|no|0)|$)"
)
# Options that make a program do something else than its work.
TURNED = regex(
    r"^--?(exec|execute|command|cmd|eval|shell|run-cmd|upload|send|push|post|publish|deploy|delete"
    r"|remove|destroy|purge|wipe|force|kill|listen|bind|host|proxy|remote|server|password|token"
    r"|daemon|install|uninstall|reverse|connect|to-host|webhook|overwrite-all)(=|$)"
)


def only_looks(words: Sequence[str]) -> bool:
    """Whether subcommands that no table names surely only look: the first verb decides."""
    for word in words[:4]:
        if SECRET.search(word) or UNKNOWN in word:
            return False
    for word in words[:4]:
        # DescribeInstances is describe-instances.
        word = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", word)
        whole = word.lower()
        first = re.split(r"[:_-]", whole)[0] if ":" not in whole else whole.rpartition(":")[2]
        if whole in LOOKS or (first in LOOKS and whole != first):
            return True
        if (whole in THINGS or PLURAL.fullmatch(whole)) and word == words[-1]:
            return "-" not in word
        if whole in CHANGES or first in CHANGES:
            return False
    return False


def destroying(words: Sequence[str]) -> str:
    """The first order that ends something for good, as a word or as a part: `schema:drop`."""
    for word in words:
        parts = re.split(r"[:_-]", word.lower())
        if not set(word) & set("./= ") and not DESTROYS.isdisjoint(parts):
            return word
    return ""
