"""openssl: keys and certificates, encoded text, and connections to see who is at the other end."""

from __future__ import annotations

from hermes.policy.call import Call
from hermes.policy.options import Options
from hermes.policy.programs.filters import decoded
from hermes.policy.shell.state import Stream

FETCHED = Stream(origin="network")


def _made(call: Call, verb: str, name: str) -> None:
    """A key that is new holds no secret yet, one that is overwritten did."""
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

        return decoded(source, lambda text: base64.b64decode(text + b"==="))
    public = {"-pubout", "-pubin", "-noout", "-check", "-modulus"} & set(words)
    if verb in ("rsa", "pkey", "ec", "dsa", "pkcs8", "pkcs12") and "-in" in words and not public:
        call.ask("credentials", "It shows or changes a private key.")
    if options.operands and verb == "dgst":
        call.reads(*options.operands)
    return Stream(origin=call.stdin.origin)
