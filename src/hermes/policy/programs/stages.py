"""Which stage a command works for: what happens to the database of the tests is ordinary."""

from __future__ import annotations

from hermes.policy.call import Call
from hermes.policy.patterns import regex

# Variables by which frameworks are told their stage.
STAGES = (
    *("RAILS_ENV", "RACK_ENV", "NODE_ENV", "APP_ENV", "MIX_ENV", "FLASK_ENV", "HANAMI_ENV"),
    *("CAKE_ENV", "SYMFONY_ENV", "DJANGO_ENV"),
)
SETTINGS = ("DJANGO_SETTINGS_MODULE", "DJANGO_CONFIGURATION")
FOR_TESTS = regex(r"(?i)tests?|testing")
TEST_MODULE = regex(r"(?i)(?:[\w.]*[._])?tests?(?:ing)?(?:[._](?:settings|local|ci))?")
TOLD = regex(r"--(?P<name>env|environment|settings)=(?P<value>\S+)|(?P<word>[A-Z_]+)=(\S+)")
# They name a database whatever the stage is.
ADDRESS = regex(r"(?i)(?:DATABASE|DB|MYSQL|PG|POSTGRES|MONGO|REDIS)\w*(?:URL|URI|DSN|HOST|ADDR)$")


def for_tests(call: Call) -> bool:
    """By its variables or its own words it works for the tests, and nothing says otherwise."""
    given = {name: values for name, values in call.state.variables.items() if name.isupper()}
    told = [found for word in call.arguments if (found := TOLD.fullmatch(word))]
    for found in told:
        if found["word"]:
            given[found["word"]] = (*given.get(found["word"], ()), found[4])
    if any(ADDRESS.search(name) for name in given):
        return False
    stages = [value for name in STAGES for value in given.get(name, ())]
    modules = [value for name in SETTINGS for value in given.get(name, ())]
    for found in told:
        if found["name"] == "settings":
            modules.append(found["value"])
        elif found["name"]:
            stages.append(found["value"])
    named = [FOR_TESTS.fullmatch(each) for each in stages]
    named += [TEST_MODULE.fullmatch(each) for each in modules]
    return bool(named) and all(named)
