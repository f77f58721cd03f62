"""The abilities, quirks and prices of models, as data."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, TypeVar

from msgspec import Meta

from hermes.codec.values import JsonObject, Value, replace
from hermes.core.messages import Usage

PriceSource = Literal["official_docs_snapshot", "provider_models_api", "user_override", "none"]
Dollars = Annotated[float, Meta(ge=0)]
_MILLION = 1_000_000


class Rates(Value):
    """US dollars per million tokens. Cache rates default to the input rate."""

    input: Dollars
    output: Dollars
    cache_read: Dollars | None = None
    cache_write: Dollars | None = None

    def cost_of(self, usage: Usage) -> float:
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        spent = usage.input * self.input + usage.output * self.output
        return (spent + usage.cache_read * read + usage.cache_write * write) / _MILLION


R = TypeVar("R", bound=Rates)


class ModelPrice(Rates):
    """The rates of a model."""

    version: str = ""  # the date of the price
    above: int = 0  # prompts of more tokens cost `beyond` entirely
    beyond: Rates | None = None

    def scaled_by(self, factor: float) -> ModelPrice:
        """Return all rates multiplied by a factor."""
        beyond = _scale(self.beyond, factor) if self.beyond is not None else None
        return replace(_scale(self, factor), beyond=beyond)

    def cost(self, usage: Usage) -> float:
        """Return the dollars for one call. Reasoning counts as output."""
        if self.beyond is not None and usage.prompt > self.above:
            return self.beyond.cost_of(usage)
        return self.cost_of(usage)


def _scale(rates: R, factor: float) -> R:
    read = None if rates.cache_read is None else rates.cache_read * factor
    write = None if rates.cache_write is None else rates.cache_write * factor
    input, output = rates.input * factor, rates.output * factor
    return replace(rates, input=input, output=output, cache_read=read, cache_write=write)


FREE = ModelPrice(input=0, output=0)


class PriceSheet(Value):
    """The published prices of one maker."""

    version: str
    vendors: tuple[str, ...]  # those that charge these prices
    models: dict[str, ModelPrice]
    slugs: tuple[str, ...] = ()  # the maker's names at aggregators that pass the prices on


WireName = Literal["chat", "responses", "messages"]
OutputField = Literal["max_tokens", "max_completion_tokens"]
EffortStyle = Literal[
    "none", "responses", "adaptive", "budget", "envelope", "envelope_on", "flat", "template",
    "think", "toggle", "toggle_effort", "enable_thinking", "google",
]  # fmt: skip
MarkStyle = Literal["off", "envelope", "native"]
CacheTtl = Literal["5m", "1h"]
Replay = Literal["none", "sealed", "reasoning_content", "reasoning_details", "extra_content"]
SchemaStyle = Literal["full", "reduced"]


class ModelProfile(Value):
    """The default of every field suits an unknown model.

    window         tokens of prompt and reply together
    max_output     output limit in tokens; None is unknown
    usual_output   the output limit to request by default; None leaves it to the endpoint
    output_field   the chat format's name of the output limit
    effort         how the reasoning effort is encoded
    efforts        the effort levels the model supports, weakest first; empty: none
    marks          where prompt-cache marks go
    replay         how earlier reasoning is sent back to its issuer
    developer      the system text has the role `developer` in the chat format
    images         images may be sent
    image_results  images may be part of a tool result
    tools          tools may be offered; None is unknown
    tool_calls     the style of calls written as text; "" if the endpoint has native calls
    streams        the endpoint can stream
    patterns       tool schemas may contain `pattern` and `format`
    schemas        the JSON Schema subset for tool schemas
    ascii          non-ASCII is escaped, control characters are replaced
    says_name      the system text ends with the model's name, which it would misreport
    conversation_field, conversation_header
                   the field and header for the conversation id, used for cache routing
    conversation   that id; "" derives it from the start of the conversation
    predict        the messages format names the model in the path, as Vertex AI requires
    initiator      the header that distinguishes user requests ("user") from follow-ups ("agent")
    omit           top-level request fields that the endpoint refuses
    extra          top-level request fields that the endpoint requires
    price          None is unknown; `price_source` is its origin
    included       calls cost nothing: a subscription or a local model
    """

    window: int = 256_000
    max_output: int | None = None
    usual_output: int | None = None
    output_field: OutputField = "max_tokens"
    effort: EffortStyle = "none"
    efforts: tuple[str, ...] = ("low", "medium", "high")
    marks: MarkStyle = "off"
    replay: Replay = "none"
    developer: bool = False
    images: bool = True
    image_results: bool = True
    tools: bool | None = None
    tool_calls: str = ""
    streams: bool = True
    patterns: bool = True
    schemas: SchemaStyle = "full"
    ascii: bool = False
    says_name: bool = False
    conversation_field: str = ""
    conversation_header: str = ""
    predict: bool = False
    conversation: str = ""
    initiator: str = ""
    omit: tuple[str, ...] = ()
    extra: JsonObject = {}
    price: ModelPrice | None = None
    price_source: PriceSource = "none"
    included: bool = False


UNKNOWN_WINDOW = 256_000


class Family(Value):
    """What models with similar names have in common; None means unknown. models.toml explains the
    other fields."""

    match: tuple[str, ...] = ()  # parts of model names
    vendors: tuple[str, ...] = ()  # limits the family to models of these vendors; empty for all
    window: int | None = None
    output: int | None = None
    reasons: bool | None = None
    thinking: Literal["none", "adaptive", "budget"] | None = None
    effort: EffortStyle | None = None
    efforts: tuple[str, ...] | None = None
    envelope: bool | None = None
    caches: bool | None = None
    output_field: OutputField | None = None
    developer: bool | None = None
    replay: Replay | None = None
    images: bool | None = None
    tools: bool | None = None
    tool_calls: str | None = None
    schemas: SchemaStyle | None = None
    temperature: Literal["free", "omitted"] | None = None


def merge_families(families: Iterable[Family], model: str, vendor: str = "") -> Family:
    """Merge all that is known about a model by its name. A longer match beats a shorter one, a
    vendor-specific match beats both, and the first listed wins a tie. Dots in names count as
    hyphens; a slash is put in front so that a match can anchor at the start."""
    name = "/" + model.lower().replace(".", "-")
    matches: list[tuple[bool, int, int, Family]] = []
    for position, family in enumerate(families):
        if family.vendors and vendor not in family.vendors:
            continue
        longest = 0
        for word in family.match:
            if len(word) > longest and word in name:
                longest = len(word)
        if longest:
            matches.append((bool(family.vendors), longest, -position, family))
    matches.sort(key=lambda row: row[:3])
    fields: dict[str, object] = {}
    for *_, family in matches:
        for field in Family.__struct_fields__[2:]:
            if (value := getattr(family, field)) is not None:
                fields[field] = value
    return Family(**fields)  # type: ignore[arg-type]
