"""What the words of a command line tell about programs and subcommands that no table names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from hermes.policy.call import Call
from hermes.policy.hosts import NEAR, far
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
# Subcommands that work on the project they are called in.
WORKS = frozenset(
    """
    build compile test tests spec fmt format lint fix bench benchmark run serve dev start watch
    clean check typecheck generate gen codegen new init scaffold bundle pack package convert
    transform minify optimize preview docs doc coverage cover install-deps restore assemble
    archive export
    extract render parse tokenize transpile translate startproject startapp migrate makemigrations
    collectstatic e2e unit integration snapshot index train eval evaluate predict repl shell-init
    select filter sort stats to from split merge join concat sample cut rename
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
PLURAL = re.compile(r"[a-z-]{3,}[^sui]s")
SECRET = re.compile(
    r"(?i)\b(secrets?|tokens?|passwords?|passwd|credentials?|creds?|keys?|keychain|api-?keys?"
    r"|private-?keys?|kubeconfig|cookies?|variables?|vars|envs?|environments?)\b"
)
# Names of tools say what they are for: luacheck, perltidy, sql-formatter, pdf2txt.
NAMED_FOR_WORK = re.compile(
    r"(?i)(lint|fmt|format(ter)?|check(er|style)?|tidy|beautif\w*|prettif\w*|valid(ate|ator)?"
    r"|tests?|spec|doc|docs|docgen|cov|bench|diff|stats?|info|parse|viewer?|[a-z]2[a-z]\w*"
    r"|-(build|gen|codegen|compile|bundle|graph|analy[sz]er?|convert(er)?|loader|runner))$"
    r"|^(lint|fmt|format|check|test|ls|bench|doc)[a-z]*-?"
)
# Programs that are made to break in, to crack or to hide, even when they are given local files.
ATTACKS = re.compile(
    r"(?i)crack|2john$|hashcat|^john|mimikatz|miner|xmrig|steg(hide|seek)|keylog|logkeys|shred|wipe"
    r"|erase|scrub|nuke|destroy|backdoor|exploit|payload|reverse|shell$|^msf|spoof|sniff|brute|dumper"
    r"|locker|encrypt|vpn|ransom|peas$|pwn|hack|evil|root(kit)?$|inject|stealer|exfil|tunnel|botnet|flood"
    r"|ddos|slowloris|hydra|fuzz|captur|record|grab|screenshot|scrot|^maim$|webcam|camera|^trust$|^dfu|flash"
)
# Kinds of files that projects are made of, and tools are made for.
KINDS = """
    c h cc cpp cxx hpp hh m mm rs go py pyi ipynb rb erb pl pm lua r R jl js mjs cjs jsx ts tsx
    vue svelte astro java kt kts scala clj cljs groovy gradle swift dart ex exs erl hrl hs ml
    mli fs fsx cs vb nim zig v sv vhd vhdl asm s f f90 pas adb ads d cr elm sol wat wasm cu cl
    glsl hlsl proto thrift graphql gql sql html htm css scss sass less xml xsl svg json jsonl
    json5 yaml yml toml ini cfg conf properties csv tsv parquet avro orc arrow feather npy npz
    h5 hdf5 nc md mdx rst adoc txt tex bib org typ pdf docx xlsx pptx epub png jpg jpeg gif webp
    bmp tiff ico mp3 wav flac ogg mp4 mkv webm ttf otf woff woff2 glb gltf obj stl blend scad
    fbx po pot tf tfvars hcl nix bzl cmake mk o a elf hex bin uf2 map lock diff patch log dot gv
    puml mmd drawio snap feature robot bats
    dts dtsi dtb srec ihex s19 axf ld lds kicad_pcb kicad_sch gbr drl step stp iges 3mf gcode ply
    las laz shp geojson gpkg kml nii dcm fasta fastq fa fq bam cram vcf bed gff gtf pdb cif mol sdf
    xyz mps lp cnf smt2 tla als dhall jsonnet libsonnet cue rego star bicep thy agda lean idr
    psd ai sketch fig xcf aseprite tmx tscn gd unity prefab uasset vox mid midi musicxml ly sf2 srt
    vtt ass kdl ron pkl http hurl rest dockerfile sum mod
""".split()
PROJECT_FILE = re.compile(
    r"(?:[\w@+-][\w.@+*?{},\[\]-]*/|\*\*/|\./)*[\w@+*?{},\[\]-][\w.@+*?{},\[\]-]*"
    r"\.(?:" + "|".join(KINDS) + r")"
)
FOLDERS = frozenset(
    """src lib app apps test tests spec docs doc content packages examples scripts tools cmd pkg
    internal include public assets site policy schema models data notebooks""".split()
)
OF_FORGE = re.compile(
    r"(?:\./)?\.(?:github|gitlab|circleci|vscode|devcontainer|storybook|changeset)(/|$)"
)
# Nothing comes back after these.
DESTROYS = frozenset("drop destroy wipe purge uninstall terminate nuke erase delete gc".split())
# Options by which a tool that works here also sends out what it has made.
SENDS = re.compile(
    r"^--?(?!(?:no|skip|dont|without|disable|allow|before|after|pre|post)-)(?:\w+-){0,2}?"
    r"(?:upload|publish|deploy|submit|notarize|push)"
    r"(?!-(?:dir|path|url|size|limit|timeout|folder|profile|port|target|rate|prefix|format|mode)\b)"
    r"(?:-[\w-]+)?(?:=(?!false|no|0)|$)"
)
# Options of a program that nothing else is known about, by which it ends or hands out something.
ENDS = re.compile(
    r"^--?(?!(?:no|skip|dont|without|disable|never|exclude|ignore|warn|fail|list|show|check)-)"
    r"(?:[\w]+-)*?(?:"
    r"(?:delete|destroy|purge|wipe|erase|nuke|uninstall|send|revoke|terminate|factory-reset)(?:-[\w-]+)?"
    r"|(?:clear|reset|remove|clean|flush|drop|empty|forget)-(?:all|everything|history|data|trash|it-all)"
    r")(?:=(?!false|no|0)|$)"
)
# Programs that keep secrets, by their names.
KEEPS_SECRETS = re.compile(
    r"(?i)keepass|passw|passage|secret|vault|token(?!i)|cred(?!o)|wallet|keyring|keychain|warden"
    r"|^rbw$|\daws$|okta|lastpass|dashlane|enpass|(^|-)pass(-|$)|authenticator|totp"
)
# Names of programs that say what they change: update-ca-trust, add-apt-repository, vm-destroy.
NAMED_FOR_CHANGE = frozenset(
    """update upgrade add del delete remove rm destroy wipe purge set unset install uninstall kill
    enable disable reset revoke grant deploy publish push upload shutdown reboot flush drop mount
    umount send transfer paste pastebin gist share sync reconfigure register erase format clear
    """.split()
)
# Behind these stands what a tool makes.
MAKES = re.compile(r"^(?:-o|--out|--output|--output-file|--outfile)$")
PLAIN_WORD = re.compile(r"[\w@+*?{},\[\]./:=-]+")
# Options that make a program do something else than its work.
TURNED = re.compile(
    r"^--?(exec|execute|command|cmd|eval|shell|run-cmd|upload|send|push|post|publish|deploy|delete"
    r"|remove|destroy|purge|wipe|force|kill|listen|bind|host|proxy|remote|server|password|token"
    r"|daemon|install|uninstall|reverse|connect|to-host|webhook|overwrite-all)(=|$)"
)


def first_verbs(words: Sequence[str]) -> list[str]:
    """The words in the place of a subcommand, each with its parts: `sites:list`, `list-units`."""
    found: list[str] = []
    for word in words[:3]:
        if "/" in word or "." in word or not word[:1].isalpha():
            break
        found += [word.lower(), *re.split(r"[:_-]", word.lower())]
    return found


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


def changing(words: Sequence[str]) -> str:
    """The first subcommand that changes something shared, or nothing."""
    return next((word for word in first_verbs(words) if word in CHANGES and word not in WORKS), "")


def plain_tool(call: Call) -> bool:
    """A program that no table names, but whose name or subcommand says that it looks or works
    here, and no word of which leads out of the workspace."""
    words = call.options().operands
    if any(UNKNOWN in word or far(word) or _turned(word) for word in call.arguments):
        return False
    if KEEPS_SECRETS.search(call.name) or any("0.0.0.0" in word for word in call.arguments):
        return False
    made = {value for option, value in pairwise(call.arguments) if MAKES.match(option)}
    values = [
        part
        for word in call.arguments
        if word not in made or not word.startswith("/tmp/")
        for part in (word, word.partition("=")[2])
    ]
    if any(word[:1] in ("/", "~") or word.startswith("..") for word in values) and not all(
        call.here(word) for word in values if word[:1] in ("/", "~") or word.startswith("..")
    ):
        return False
    if SECRET.search(" ".join((call.name, *words[:4]))):
        return False
    if not NAMED_FOR_CHANGE.isdisjoint(re.split(r"[-_.]", call.name.lower())[:2]):
        return False
    verb = words[0].lower() if words else ""
    if verb in LOOKS or verb in WORKS or only_looks(words):
        return not changing(words[1:])
    if ATTACKS.search(call.name) or changing(words):
        return False
    if not all(PLAIN_WORD.fullmatch(word) for word in call.arguments):
        return False
    long = [word.lstrip("-") for word in call.arguments if re.match(r"--?[a-z]{3}", word)]
    told = {re.split(r"[-=]", word)[0] for word in long}
    if not told.isdisjoint(LOOKS | {"versions"}) and all(
        word.startswith("-") for word in call.arguments
    ):
        return True
    if any(
        "." in word.strip("./") and not NEAR.match(word) and not _of_project(word)
        for word in words
        if word not in made
    ):
        return False
    return bool(NAMED_FOR_WORK.search(call.name)) or any(map(_of_project, words))


def _turned(word: str) -> bool:
    return word[:1] == "-" and bool(TURNED.match(word) or SENDS.match(word) or ENDS.match(word))


def _of_project(word: str) -> bool:
    """A file or folder such as projects have: `src`, `src/a.v`, `.`, `**/*.md`."""
    if word in (".", "./...") or word.rstrip("/") in FOLDERS or NEAR.match(word):
        return True
    if OF_FORGE.match(word) and ".." not in word:
        return True
    return bool(PROJECT_FILE.fullmatch(word))


def destroying(words: Sequence[str]) -> str:
    """The first order that ends something for good, as a word or as a part: `schema:drop`."""
    for word in words:
        parts = re.split(r"[:_-]", word.lower())
        if not set(word) & set("./= ") and not DESTROYS.isdisjoint(parts):
            return word
    return ""
