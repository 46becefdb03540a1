"""The settings, read once at the start of a program."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from platformdirs import user_data_path
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    TomlConfigSettingsSource,
)

from registry.errors import InvalidRequest
from registry.log import LogFormat

_RULE = re.compile("(source|project|channel|path):.")
GROUP_RULE = re.compile("(?P<group>.+)=(?P<level>read|write|admin)(:(?P<project>.+))?")


def default_home() -> Path:
    return user_data_path("context-registry", appauthor=False)


class McpServerSettings(BaseModel):
    """An MCP server: `command` starts it over stdio, or `url` is where it is.

    In `command`, `url` and `env` a $NAME stands for that variable of the environment.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: list[str] = []
    url: str = ""
    env: dict[str, str] = {}

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if bool(self.command) == bool(self.url):
            raise ValueError("either a command or a url")
        return self


class CheckSettings(BaseModel):
    """The tool that tells whether something was done already: then its answer holds `finds`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tool: str = Field(min_length=1)
    arguments: dict[str, Any] = {}
    finds: str = Field("{id}", min_length=1)


class ActionSettings(McpServerSettings):
    """A tool of an MCP server that receives each briefing.

    In `arguments` and in `check`, {id}, {date} and {text} stand for the briefing's; what holds {part} in a list stands
    there once for each part of the text.
    """

    name: str = Field(min_length=1)
    tool: str = Field(min_length=1)
    arguments: dict[str, Any] = {}
    check: CheckSettings | None = None


class RetentionPolicy(BaseModel):
    """A rule by which conversations are forgotten: nothing was said in them for some days; all that is given holds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    days: int = Field(strict=True, ge=1, le=36_500, description="days without a word")  # true is no number of days
    project: str | None = Field(None, min_length=1, description="path or folder name, with * and ? for any letters")
    owner: str | None = Field(None, min_length=1, description="the person whose own conversations they are")

    def __str__(self) -> str:
        parts = [f"quiet for {self.days} days"]
        parts += [f"{name} {value}" for name in ("project", "owner") if (value := getattr(self, name))]
        return ", ".join(parts)


class Settings(BaseSettings):
    """Environment variables with the prefix `CTXR_`, then `config.toml` in the home folder, then these defaults."""

    model_config = SettingsConfigDict(env_prefix="CTXR_", env_ignore_empty=True, frozen=True, extra="ignore")

    home: Path = Field(default_factory=default_home, description="Folder of the registry and its config.toml.")
    database_url: str = Field(
        default="", description="postgresql://… for a shared registry; empty: SQLite in the home folder."
    )
    database_read_url: str = Field(
        default="",
        description="A replica of CTXR_DATABASE_URL that answers searches and reads; who has just written is answered"
        " by the original until the replica has it, and everybody while the replica is away.",
    )
    host: str = Field(default="127.0.0.1", description="Address that `ctxr serve` listens on.")
    port: int = Field(default=8765, ge=1, le=65535, description="Port that `ctxr serve` listens on.")
    public_url: str = Field(
        default="",
        description="Address of the proxy that does TLS for the server, such as https://memory.example.org: what"
        " browsers and clients know it by.",
    )
    allowed_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Origins whose pages and scripts may use the HTTP API, such as https://editor.example.org; with"
        " commas between them. Whatever runs there may read and write what this registry keeps.",
    )
    tls_cert: str = Field(default="", description="File of the server's certificate chain: then it does TLS itself.")
    tls_key: str = Field(default="", description="File of the certificate's key.")
    local_secret: Literal["auto", "on", "off"] = Field(
        default="auto",
        description="Whether this machine's user, too, needs a secret over HTTP, kept in the home folder's"
        " `local-secret`: `auto` where other people have accounts here, `on`, `off`.",
    )
    oauth_issuer: str = Field(
        default="",
        description="Address of an OAuth authorization server whose tokens open `/mcp`, too. Needs the extra `oauth`.",
    )
    oauth_audience: str = Field(
        default="", description="What these tokens must be made for; empty: CTXR_PUBLIC_URL followed by /mcp."
    )
    oauth_client_id: str = Field(
        default="",
        description="This server's client id at CTXR_OAUTH_ISSUER: then people sign in to the pages there, by OpenID"
        " Connect. Needs CTXR_OAUTH_GROUPS.",
    )
    oauth_client_secret: SecretStr = Field(
        default=SecretStr(""), description="The secret of that client; empty for a public one."
    )
    oauth_groups: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="What the members of the issuer's groups (claim `groups`) may do, such as `staff=write`,"
        " `ops=admin` or `billing=read:/srv/billing`, for a project; with commas between them, in config.toml a list."
        " Then nobody else of the issuer comes in.",
    )
    requests_per_minute: int = Field(
        default=0,
        ge=0,
        description="Requests a minute that each token may make to a server, a minute's worth at once; more are refused"
        " with 429 and when to ask again. 0: any number. `ctxr token create --per-minute` gives a token its own.",
    )
    timeout_s: float = Field(default=30.0, gt=0, description="Seconds an operation may take.")
    start_note: Literal["on", "off"] = Field(
        default="on",
        description="Whether a new chat gets a note of its folder's latest conversations, from clients' hooks.",
    )
    hints: Literal["on", "off"] = Field(
        default="on",
        description="Whether a prompt that a past conversation clearly answers gets a few lines of it, and a command or"
        " edit that one speaks against a line.",
    )
    hints_off: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Clients and folders without hints, such as `codex` or `/home/kim/secret`; with commas between"
        " them, in config.toml a list.",
    )
    embed_model: str = Field(
        default="built-in",
        description="Model that also finds what was said in other words: `built-in`, the endpoint's name"
        " of one, or a folder with one in ONNX; `off`: words alone.",
    )
    embed_base_url: str = Field(
        default="",
        description="OpenAI-compatible endpoint, such as http://localhost:11434/v1; messages are sent to it. Empty: the"
        " model runs here.",
    )
    embed_query_model: str = Field(
        default="", description="The endpoint's model for what is asked, where it has another one for that."
    )
    embed_query_prefix: str | None = Field(
        default=None, description="What the model wants in front of what is asked; unset: what it is known to want."
    )
    embed_passage_prefix: str | None = Field(
        default=None, description="What the model wants in front of what was said; unset: what it is known to want."
    )
    embed_api_key: SecretStr = Field(default=SecretStr(""), description="The endpoint's key, where it wants one.")
    llm_base_url: str = Field(
        default="",
        description="OpenAI-compatible endpoint, such as http://localhost:11434/v1, that writes summaries and"
        " briefings; conversations are sent to it. Empty: none does, they are made of what was said.",
    )
    llm_model: str = Field(default="", description="The endpoint's name of the model that writes.")
    llm_api_key: SecretStr = Field(default=SecretStr(""), description="The endpoint's key, where it wants one.")
    llm_timeout_s: float = Field(default=20.0, gt=0, description="Seconds an answer waits for the model.")
    log_format: LogFormat = Field(
        default="text",
        description="What `ctxr serve` writes to stderr: `text`, warnings and errors; `json`, also a line for each run,"
        " with its execution's id. Neither holds what was said.",
    )
    prices: Literal["on", "off"] = Field(
        default="on",
        description="Whether tokens are shown with their list price; `off` for those who pay a subscription."
        " `prices.toml` in the home folder adds prices and replaces those that the program knows.",
    )
    keep_executions_days: int = Field(
        default=90,
        ge=0,
        le=36_500,
        description="Days executions are kept one by one, then only as figures; 0: for ever. An ordinary one keeps its"
        " details while it is among the newest 200.",
    )
    retention: tuple[RetentionPolicy, ...] = Field(
        default=(),
        description="Policies by which `ctxr serve` forgets conversations for good; best as `[[retention]]` in"
        " config.toml. `ctxr forget --by-policy --dry-run` says what they name now.",
    )
    remote_url: str = Field(
        default="",
        description="Address of a registry elsewhere, such as https://memory.example.org: what is new here goes there,"
        " and what is new there comes here. Without a line to it both go on, and nothing is lost.",
    )
    token: SecretStr = Field(default=SecretStr(""), description="The token that opens CTXR_REMOTE_URL.")
    never_keep: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="What is never kept: `source:NAME`, `project:FOLDER`, `channel:NAME`, `path:FILE`, with `*` and"
        " `?`; separated by commas, in config.toml a list. Channels called `private` or `private_…` never are.",
    )
    unmasked_projects: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(), description="Folders whose secrets are kept as they are; listed in the same way."
    )
    actions: tuple[ActionSettings, ...] = Field(
        default=(),
        description="Tools of other MCP servers that get each briefing; best as `[[actions]]` in config.toml.",
    )
    notion: McpServerSettings | None = Field(
        default=None,
        description="Notion's MCP server, through which `ctxr sync --source notion` reads its pages; best as `[notion]`"
        " in config.toml.",
    )

    @field_validator("never_keep", "unmasked_projects", "allowed_origins", "hints_off", "oauth_groups", mode="before")
    @classmethod
    def _listed(cls, given: object) -> object:
        return [item.strip() for item in given.split(",") if item.strip()] if isinstance(given, str) else given

    @field_validator("never_keep")
    @classmethod
    def _rules(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        if wrong := [rule for rule in given if not _RULE.match(rule)]:
            raise ValueError(f"{wrong[0]!r} is no rule; allowed: source:NAME, project:FOLDER, channel:NAME, path:FILE")
        return given

    @field_validator("oauth_groups")
    @classmethod
    def _group_rules(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        if wrong := [rule for rule in given if not GROUP_RULE.fullmatch(rule)]:
            raise ValueError(f"{wrong[0]!r} is no rule; allowed: GROUP=read|write|admin, or GROUP=LEVEL:PROJECT")
        return given

    @field_validator("allowed_origins")
    @classmethod
    def _origins(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for origin in given:
            parts = urlsplit(origin)
            if parts.scheme not in ("https", "http") or origin != f"{parts.scheme}://{parts.netloc}":
                raise ValueError(
                    f"{origin!r} is no origin; allowed: scheme and host, such as https://editor.example.org"
                )
        return given

    @field_validator("home")
    @classmethod
    def _expand(cls, home: Path) -> Path:
        return home.expanduser()

    @field_validator("public_url", "oauth_issuer", "remote_url")
    @classmethod
    def _address(cls, given: str) -> str:
        parts = urlsplit(given)
        if given and not (parts.hostname and parts.scheme in ("https", "http")):
            raise ValueError("an address such as https://memory.example.org")
        if parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
            raise ValueError("an address that begins with https://, unless it is this machine's own")
        return given.rstrip("/")

    @model_validator(mode="after")
    def _check_combinations(self) -> Self:
        if bool(self.tls_cert) != bool(self.tls_key):
            raise ValueError("CTXR_TLS_CERT and CTXR_TLS_KEY go together")
        if self.oauth_issuer and not (self.public_url or self.oauth_audience):
            raise ValueError("CTXR_OAUTH_ISSUER needs CTXR_PUBLIC_URL, or CTXR_OAUTH_AUDIENCE")
        if (self.oauth_client_id or self.oauth_groups) and not self.oauth_issuer:
            raise ValueError("CTXR_OAUTH_CLIENT_ID and CTXR_OAUTH_GROUPS need CTXR_OAUTH_ISSUER")
        if self.oauth_client_id and not self.public_url:
            raise ValueError("CTXR_OAUTH_CLIENT_ID needs CTXR_PUBLIC_URL, to which the issuer sends browsers back")
        if self.oauth_client_id and not self.oauth_groups:
            raise ValueError("CTXR_OAUTH_CLIENT_ID needs CTXR_OAUTH_GROUPS, which say who may do what")
        if self.embed_base_url and self.embed_model in ("", "built-in"):
            raise ValueError("CTXR_EMBED_BASE_URL needs CTXR_EMBED_MODEL, the endpoint's name of a model")
        if self.llm_base_url and not self.llm_model:
            raise ValueError("CTXR_LLM_BASE_URL needs CTXR_LLM_MODEL, the endpoint's name of a model")
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments, then the environment, then the home folder's config.toml."""
        home = init_settings().get("home") or env_settings().get("home") or default_home()
        config = Path(str(home)).expanduser() / "config.toml"
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, config)

    @property
    def url(self) -> str:
        return self.database_url or f"sqlite:///{self.home / 'registry.db'}"


def read_settings(**given: Any) -> Settings:
    """Return the settings of this process; InvalidRequest names the invalid variable."""
    try:
        return Settings(**given)
    except ValidationError as exc:
        problems = map(_problem, exc.errors())
        raise InvalidRequest("The configuration is not usable.", "; ".join(problems)) from exc
    except SettingsError as exc:  # a variable with invalid JSON, such as CTXR_ACTIONS
        raise InvalidRequest("The configuration is not usable.", f"{exc}: it has to be JSON") from exc
    except (OSError, ValueError) as exc:
        raise InvalidRequest("config.toml could not be read.", str(exc)) from exc


def _problem(found: Mapping[str, Any]) -> str:
    if not found["loc"]:
        return str(found["msg"])
    if len(found["loc"]) > 1 or not isinstance(found["input"], str | int | float):
        return f"CTXR_{'.'.join(map(str, found['loc'])).upper()}: {found['msg']}"
    message = str(found["msg"]).partition(", unable to parse")[0]
    return f"CTXR_{str(found['loc'][0]).upper()}: {message}, given {found['input']!r}"
