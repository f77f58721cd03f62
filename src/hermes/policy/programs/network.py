"""Programs that talk to other machines: fetching is work, sending is asked about."""

from __future__ import annotations

import re

from hermes.policy.call import Call, Options
from hermes.policy.patterns import regex
from hermes.policy.programs.filters import decode_stream
from hermes.policy.programs.subcommands import only_reads
from hermes.policy.shell.state import NOTHING, SOME, UNKNOWN, Stream


def _made(call: Call, verb: str, name: str) -> None:
    """Overwriting a key is judged; creating a new one is not."""
    new = call.here(name) and not call.paths.exists(call.path(name), unknown=True)
    if new and verb in ("genrsa", "genpkey", "req", "ecparam", "dsaparam", "gendsa", "rand"):
        call.touches(name)
    else:
        call.writes(name)


def check_openssl(call: Call) -> Stream | None:
    words = call.arguments
    verb = words[0] if words else ""
    options = Options(words[1:], "-in -out -k -K -iv -pass -connect -key -keyout -days -subj")
    if verb == "s_client" and call.stdin.known and call.stdin.text.strip() in ("", "Q", "QUIT"):
        call.work("network", "It asks another machine for its certificate.")
        return FETCHED
    if verb in ("s_client", "s_server", "s_time", "ocsp"):
        call.ask("network_out", "It opens a connection to another machine.")
        return FETCHED
    for place, word in enumerate(words[:-1]):
        if word in ("-in", "-key", "-inkey", "-CAkey"):
            call.reads(words[place + 1])
        elif word in ("-out", "-keyout"):
            _made(call, verb, words[place + 1])
    if "-engine" in words or "-provider-path" in words:
        call.ask("shell_escape", "It loads code into openssl.")
    if (verb == "base64" or "-base64" in words or "-a" in words) and "-d" in words:
        source = call.stdin if "-in" not in words else Stream(origin="file")
        import base64

        return decode_stream(source, lambda text: base64.b64decode(text + b"==="))
    public = {"-pubout", "-pubin", "-noout", "-check", "-modulus"} & set(words)
    if verb in ("rsa", "pkey", "ec", "dsa", "pkcs8", "pkcs12") and "-in" in words and not public:
        call.ask("credentials", "It shows or changes a private key.")
    if options.operands and verb == "dgst":
        call.reads(*options.operands)
    return Stream(origin=call.stdin.origin)


FETCHED = Stream(origin="network")
LOOPBACK = regex(
    r"^(?:\w+://)?(?:[^/@]*@)?(localhost|127(?:\.\d+){3}|\[?::1\]?|0\.0\.0\.0|[\w-]+\.localhost)"
    r"(?=[:/?#]|$)"
)
# Ports of databases and registries with an HTTP interface.
STORES = regex(r":(9200|9201|5984|8086|8123|8500|2379|15672|6333|7700|8983|2375|5000)(/|$)")
METADATA = regex(r"169\.254\.\d|metadata\.google|100\.100\.100\.200|fd00:ec2")
SENDS = tuple(
    (
        "-d --data --data-raw --data-binary --data-urlencode --data-ascii --json -F --form "
        "--form-string -T --upload-file"
    ).split()
)


def check_curl(call: Call) -> Stream | None:
    options = call.options(call.record.values)
    urls = [*options.operands, *options.values("--url")]
    local = bool(urls) and all(LOOPBACK.match(each) for each in urls)
    bodies = options.values(*SENDS)
    method = (options.value("-X", "--request") or "GET").upper()
    sends = bool(bodies) and not options.has("-G", "--get")
    files = [each for body in bodies for each in re.findall(r"@([^;,\s]+)", body)]
    call.reads(*(each for each in files if each != "-"), *options.values("-T", "--upload-file"))
    call.reads(*options.values("--key", "--cert", "-E", "--netrc-file"))
    changes = sends or method not in ("GET", "HEAD", "OPTIONS")
    if changes and not (local and all(map(call.here, files))):
        call.ask("network_out", f"It sends data to {_shown(urls)}.")
    losing = method == "DELETE" or re.search(r"delete|drop|truncate|flush|_close", " ".join(urls))
    if local and losing and any(STORES.search(url) for url in urls):
        call.ask("database", "It deletes data of a database.")
    _address(call, urls, local=local)
    secret = [
        *options.values(
            "-H", "--header", "-u", "--user", "-b", "--cookie", "--oauth2-bearer", "-A", "-e"
        ),
        *bodies,
    ]
    if any(UNKNOWN in each or SOME in each for each in secret) and not local:
        call.ask("network_out", f"It sends a value that only the run tells to {_shown(urls)}.")
    if (options.value("-u", "--user", "-n") and not local) or options.has("-n", "--netrc"):
        call.ask("credentials", "It signs in with a password.")
    if options.values("--unix-socket", "--abstract-unix-socket"):
        call.ask("container", "It talks to a service of this machine through its socket.")
    if options.values("-K", "--config"):
        call.ask("unclear", "It takes its orders from a file.")
    call.work("network", f"It fetches from {_shown(urls)}.")
    return _curl_output(call, options, urls)


def _curl_output(call: Call, options: Options, urls: list[str]) -> Stream:
    folder = options.value("--output-dir") or "."
    targets = options.values("-o", "--output")
    if options.has("-O", "--remote-name", "--remote-name-all"):
        targets += [url.partition("?")[0].rstrip("/").rpartition("/")[2] for url in urls]
    for side in options.values("-D", "--dump-header", "-c", "--cookie-jar", "--trace", "--stderr"):
        call.writes(side)
    for target in targets:
        name = target if target.startswith(("/", "~")) else f"{folder}/{target}"
        call.writes(name)
        call.state.files[call.path(name)] = FETCHED
    return NOTHING if targets and "-" not in targets else FETCHED


def _shown(urls: list[str]) -> str:
    return ", ".join(urls).replace(UNKNOWN, "…") or "another machine"


def _address(call: Call, urls: list[str], *, local: bool) -> None:
    for url in urls:
        if METADATA.search(url):
            call.ask("credentials", f"The address {url} gives out the keys of this machine.")
        if (UNKNOWN in url or SOME in url) and not local and not _plain(call, url):
            call.ask("network_out", "It puts a value that only the run tells into an address.")
        if url.startswith("file:"):
            call.reads(url.removeprefix("file://"))


def _plain(call: Call, word: str) -> bool:
    """Whether the unknown part of an address is a harmless environment variable."""
    return word in call.state.plain and "?" not in word and "=" not in word


def check_wget(call: Call) -> Stream | None:
    options = call.options(call.record.values)
    urls = options.operands
    local = bool(urls) and all(LOOPBACK.match(each) for each in urls)
    bodies = options.values("--post-data", "--body-data")
    files = options.values("--post-file", "--body-file")
    call.reads(*files)
    method = (options.value("--method") or "GET").upper()
    if files or ((bodies or method not in ("GET", "HEAD")) and not local):
        call.ask("network_out", f"It sends data to {_shown(urls)}.")
    if options.values("-e", "--execute") or options.has("--use-askpass"):
        call.ask("shell_escape", "It gives wget orders of another kind.")
    if any(UNKNOWN in each for each in options.values("--header", "--user", "--password")):
        call.ask("network_out", "It sends a value that only the run tells.")
    _address(call, urls, local=local)
    call.work("network", f"It fetches from {_shown(urls)}.")
    target = options.value("-O", "--output-document")
    if target == "-":
        return FETCHED
    folder = options.value("-P", "--directory-prefix") or "."
    names = [target] if target else [url.partition("?")[0].rpartition("/")[2] for url in urls]
    for name in names:
        path = name if name.startswith(("/", "~")) or target else f"{folder}/{name}"
        call.writes(path)
        call.state.files[call.path(path)] = FETCHED
    return NOTHING


def check_httpie(call: Call) -> Stream | None:
    words = call.options(call.record.values).operands
    method = words[0].upper() if words and words[0].isupper() else ""
    urls = words[1:2] if method else words[:1]
    items = words[2:] if method else words[1:]
    local = bool(urls) and bool(LOOPBACK.match(urls[0]) or urls[0].startswith(":"))
    data = [each for each in items if re.search(r"[^=:]=|:=|@", each) and "==" not in each]
    if not local and (method not in ("", "GET", "HEAD") or data):
        call.ask("network_out", f"It sends data to {_shown(urls)}.")
    _address(call, urls, local=local)
    call.work("network", f"It fetches from {_shown(urls)}.")
    return FETCHED


def check_out(call: Call) -> Stream:
    asked = only_reads(call, ordered=True) and not {"config", "alias"} & set(call.arguments)
    if asked and "stores" in call.record.flags:
        call.work("network", "It looks at what is stored elsewhere.")
        return FETCHED
    call.ask(call.record.category, call.record.reason)
    call.reads(*(word for word in call.arguments if not word.startswith("-") and ":" not in word))
    return FETCHED


def check_nc(call: Call) -> Stream:
    options = call.options(call.record.values, permute=True)
    for program in options.values("-e", "-c", "--exec", "--sh-exec", "--lua-exec"):
        call.ask("shell_escape", "It gives others a command of this machine.")
        call.runs_text(program)
    if options.has("-l", "--listen") or re.search(r"(^| )-\w*l", " ".join(call.arguments)):
        call.ask("network_listen", "It opens a port for others.")
    elif options.has("-z"):
        call.work("network", "It looks whether a port is open.")
    else:
        call.ask("network_out", "It opens a connection to another machine.")
    return FETCHED


def check_socat(call: Call) -> Stream:
    text = " ".join(call.arguments)
    if "LISTEN" in text.upper():
        call.ask("network_listen", "It opens a port for others.")
    for found in re.finditer(r"(?i)\b(?:exec|system):([^,\s]+)", text):
        call.runs_text(found[1].strip("\"'"))
    call.ask("network_out", "It joins two connections.")
    return FETCHED


FORGE = regex(r"^git@(github\.com|gitlab\.com|bitbucket\.org|codeberg\.org|ssh\.dev\.azure\.com)$")


def check_ssh(call: Call) -> Stream:
    options = call.options(call.record.values, permute=False)
    if options.has("-V", "-G", "-Q") and not options.values("-o", "-F"):
        return NOTHING
    _ssh_settings(call, options)
    if options.has("-R", "-D", "-L", "-w", "-W"):
        call.ask("network_listen", "It opens a way through to other machines.")
    host, command = (options.operands[:1] or [""])[0], options.operands[1:]
    if call.name == "ssh" and FORGE.match(host) and not command and not options.values("-o", "-F"):
        call.work("network", "It asks a forge whether it knows the key.")
        return FETCHED
    call.ask("network_out", f"It works on another machine ({host or 'unknown'}).")
    if command[:1] == ["--"]:
        command = command[1:]
    text = " ".join(command) or call.stdin.text.replace(UNKNOWN, "")
    if text.strip():
        elsewhere = call.state.copy()
        elsewhere.cwd = UNKNOWN
        call.follower.text(text, elsewhere, call.stdin if command else NOTHING)
    return FETCHED


def _ssh_settings(call: Call, options: Options) -> None:
    for setting in options.values("-o"):
        name = re.split(r"[=\s]", setting, maxsplit=1)[0]
        value = setting[len(name) :].lstrip(" \t=")
        if name.lower() in (
            "proxycommand",
            "localcommand",
            "knownhostscommand",
            "permitlocalcommand",
        ):
            call.ask("shell_escape", f"{name} makes it run a command here.")
            call.runs_text(value)
    if options.values("-F"):
        call.ask("shell_escape", "It takes its settings from another file.")


def check_scp(call: Call) -> Stream:
    options = call.options(call.record.values)
    _ssh_settings(call, options)
    for program in options.values("-S"):
        call.ask("shell_escape", f"It uses `{program}` for its connections.")
        call.runs_text(program)
    names = options.operands
    call.reads_all(*(each for each in names[:-1] if ":" not in each))
    call.ask("network_out", "It copies files to or from another machine.")
    if names and ":" not in names[-1]:
        call.writes(names[-1])
    return NOTHING


def check_rsync(call: Call) -> Stream:
    options = call.options(call.record.values)
    for program in options.values("-e", "--rsh", "--rsync-path"):
        if not re.fullmatch(r"ssh( -[\w]+( [\w./~-]+)?)*", program):
            call.ask("shell_escape", f"It uses `{program}` for its connections.")
            call.runs_text(program)
    names = options.operands
    remote = [each for each in names if re.match(r"[^/]+:|rsync://", each)]
    dry = options.has("-n", "--dry-run")
    if remote and not dry:
        call.ask("network_out", f"It copies files to or from {remote[0]}.")
    call.reads_all(*(each for each in names[:-1] if each not in remote))
    if len(names) > 1 and names[-1] not in remote and not dry:
        call.writes(names[-1])
        if any(word.startswith("--del") for word in call.arguments) or options.has(
            "--remove-source-files"
        ):
            call.deletes(names[-1], recursive=True)
    return NOTHING


def check_lookup(call: Call) -> Stream:
    """ping, dig and others, unless an unknown value is part of the name."""
    if any((UNKNOWN in word or SOME in word) and not _plain(call, word) for word in call.arguments):
        call.ask("network_out", "It puts a value that only the run tells into a name it asks for.")
    call.work("network", "It asks about a name on the network.")
    return FETCHED


RUNS_MORE = regex(r"^--?(exec|on-download|on-bt-download|postprocessor-args|netrc|cookies)")


def check_fetcher(call: Call) -> Stream | None:
    """aria2c, yt-dlp, lynx -dump: they fetch and write files."""
    options = call.options(call.record.values)
    if any(RUNS_MORE.match(word) for word in call.arguments):
        call.ask("shell_escape", "It makes what it fetches the business of another program.")
    if options.values("-i", "-c"):
        call.reads(*options.values("-i", "-c"))
    _address(call, options.operands, local=False)
    places = options.values("-o", "-d", "-P", "--dir", "--out", "--output", "--paths")
    call.writes(*places)
    for name in (*places, *(url.rpartition("/")[2] for url in options.operands)):
        call.state.files[call.path(name)] = FETCHED
    if call.name in ("lynx", "w3m", "links", "elinks") and not any(
        word.startswith(("-dump", "-source")) for word in call.arguments
    ):
        call.ask("network_out", "It opens pages, and sends what is typed into them.")
    call.work("network", f"It fetches from {_shown(options.operands)}.")
    return FETCHED


def check_load_test(call: Call) -> None:
    """ab, wrk, hey: many requests, allowed only to this machine."""
    urls = [word for word in call.arguments if "://" in word or "localhost" in word]
    if not urls or not all(LOOPBACK.match(url) for url in urls):
        call.ask("network_out", "It sends many requests to another machine.")
    call.work()
