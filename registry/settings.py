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

    In `command`, `url` and `env`, $NAME is replaced by that environment variable.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: list[str] = []
    url: str = ""
    env: dict[str, str] = {}

    @model_validator(mode="after")
    def _check_transport(self) -> Self:
        if bool(self.command) == bool(self.url):
            raise ValueError("give either a command or a url")
        return self


class CheckSettings(BaseModel):
    """A tool that checks whether an action was done already: its answer then contains `finds`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tool: str = Field(min_length=1)
    arguments: dict[str, Any] = {}
    finds: str = Field("{id}", min_length=1)


class ActionSettings(McpServerSettings):
    """A tool of an MCP server that receives each briefing.

    In `arguments` and `check`, {id}, {date} and {text} are replaced by those of the briefing. A list element that
    contains {part} is repeated for each part of the text.
    """

    name: str = Field(min_length=1)
    tool: str = Field(min_length=1)
    arguments: dict[str, Any] = {}
    check: CheckSettings | None = None


class RetentionPolicy(BaseModel):
    """A rule that forgets the conversations without a message for some days; all given conditions must hold."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    days: int = Field(strict=True, ge=1, le=36_500, description="days without a message")  # strict: true is not 1
    project: str | None = Field(None, min_length=1, description="path or folder name; * and ? match any characters")
    owner: str | None = Field(None, min_length=1, description="only conversations of this person")

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
        description="A replica of CTXR_DATABASE_URL for searches and reads. The original answers while the replica is"
        " down, or has not yet replayed what this process wrote.",
    )
    host: str = Field(default="127.0.0.1", description="Address that `ctxr serve` listens on.")
    port: int = Field(default=8765, ge=1, le=65535, description="Port that `ctxr serve` listens on.")
    public_url: str = Field(
        default="",
        description="Address under which browsers and clients reach the server through a TLS proxy, such as"
        " https://memory.example.org.",
    )
    allowed_origins: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Comma-separated origins whose pages and scripts may use the HTTP API, such as"
        " https://editor.example.org. They can read and change everything in this registry.",
    )
    tls_cert: str = Field(
        default="", description="File with the server's certificate chain; the server then uses TLS itself."
    )
    tls_key: str = Field(default="", description="File with the certificate's key.")
    local_secret: Literal["auto", "on", "off"] = Field(
        default="auto",
        description="Whether this machine's user, too, needs a secret over HTTP, which is in the home folder's"
        " `local-secret`: `on`, `off`, or `auto`: only if other people have accounts on this machine.",
    )
    oauth_issuer: str = Field(
        default="",
        description="Address of an OAuth authorization server whose tokens are accepted at `/mcp`, too. Needs the"
        " extra `oauth`.",
    )
    oauth_audience: str = Field(
        default="", description="Audience that these tokens must have; empty: CTXR_PUBLIC_URL followed by /mcp."
    )
    oauth_client_id: str = Field(
        default="",
        description="This server's client id at CTXR_OAUTH_ISSUER. People then sign in to the pages there, by OpenID"
        " Connect. Needs CTXR_OAUTH_GROUPS.",
    )
    oauth_client_secret: SecretStr = Field(
        default=SecretStr(""), description="The secret of that client; empty for a public client."
    )
    oauth_groups: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Permissions of the members of the issuer's groups (claim `groups`), such as `staff=write`,"
        " `ops=admin` or, for one project, `billing=read:/srv/billing`; comma-separated, in config.toml a"
        " list. Other people of the issuer get no access.",
    )
    requests_per_minute: int = Field(
        default=0,
        ge=0,
        description="Requests per minute that each token may make to a server, at once up to a minute's worth."
        " Further ones are refused with status 429 and the time to retry. 0: no limit. `ctxr token create"
        " --per-minute` sets it for a token.",
    )
    timeout_s: float = Field(default=30.0, gt=0, description="Seconds an operation may take.")
    start_note: Literal["on", "off"] = Field(
        default="on",
        description="Whether a new chat gets, through the client's hooks, a note about the latest conversations of"
        " its folder.",
    )
    hints: Literal["on", "off"] = Field(
        default="on",
        description="Whether a prompt gets a few lines of a past conversation that clearly answers it, and a command"
        " or edit a one-line warning if a past conversation speaks against it.",
    )
    hints_off: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Clients and folders without hints, such as `codex` or `/home/kim/secret`; comma-separated, in"
        " config.toml a list.",
    )
    embed_model: str = Field(
        default="built-in",
        description="Model for search by meaning: `built-in`, the name of a model at CTXR_EMBED_BASE_URL, or a folder"
        " with an ONNX model; `off`: search by words only.",
    )
    embed_base_url: str = Field(
        default="",
        description="OpenAI-compatible endpoint, such as http://localhost:11434/v1, to which messages are sent for"
        " embedding. Empty: the model runs in this process.",
    )
    embed_query_model: str = Field(
        default="", description="The endpoint's model for questions, if it is another one than for messages."
    )
    embed_query_prefix: str | None = Field(
        default=None, description="Text that the model expects before a question; unset: the known one of the model."
    )
    embed_passage_prefix: str | None = Field(
        default=None, description="Text that the model expects before a message; unset: the known one of the model."
    )
    embed_api_key: SecretStr = Field(default=SecretStr(""), description="The endpoint's API key, if it needs one.")
    llm_base_url: str = Field(
        default="",
        description="OpenAI-compatible endpoint, such as http://localhost:11434/v1, that writes summaries and"
        " briefings; conversations are sent to it. Empty: they are composed of the conversations' own"
        " sentences.",
    )
    llm_model: str = Field(default="", description="The endpoint's name of the model.")
    llm_api_key: SecretStr = Field(default=SecretStr(""), description="The endpoint's API key, if it needs one.")
    llm_timeout_s: float = Field(default=20.0, gt=0, description="Seconds that an answer waits for the model.")
    log_format: LogFormat = Field(
        default="text",
        description="Format of the log of `ctxr serve` on stderr: `text`: warnings and errors; `json`: also a line"
        " for each execution, with its id. Neither contains texts of messages.",
    )
    prices: Literal["on", "off"] = Field(
        default="on",
        description="Whether tokens are shown with their list price; `off` for subscriptions. `prices.toml` in the"
        " home folder adds prices and overrides the built-in ones.",
    )
    keep_executions_days: int = Field(
        default=90,
        ge=0,
        le=36_500,
        description="Days that executions are stored; 0: for ever. An ordinary one keeps its details while it is among"
        " the newest 200.",
    )
    retention: tuple[RetentionPolicy, ...] = Field(
        default=(),
        description="Policies by which `ctxr serve` forgets conversations for good; best as `[[retention]]` in"
        " config.toml. `ctxr forget --by-policy --dry-run` shows what they select now.",
    )
    remote_url: str = Field(
        default="",
        description="Address of another registry, such as https://memory.example.org, with which new messages are"
        " exchanged in both directions. While it cannot be reached, both work on, and exchange later.",
    )
    token: SecretStr = Field(default=SecretStr(""), description="The token for CTXR_REMOTE_URL.")
    never_keep: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Conversations and files that are never stored: `source:NAME`, `project:FOLDER`, `channel:NAME`,"
        " `path:FILE`, with `*` and `?`; comma-separated, in config.toml a list. Channels named `private`"
        " or `private_…` are never stored.",
    )
    unmasked_projects: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Folders whose secrets are stored unmasked, with `*` and `?`; comma-separated, in config.toml a"
        " list.",
    )
    actions: tuple[ActionSettings, ...] = Field(
        default=(),
        description="Tools of other MCP servers that receive each briefing; best as `[[actions]]` in config.toml.",
    )
    notion: McpServerSettings | None = Field(
        default=None,
        description="Notion's MCP server, from which `ctxr sync --source notion` reads pages; best as `[notion]` in"
        " config.toml.",
    )

    @field_validator("never_keep", "unmasked_projects", "allowed_origins", "hints_off", "oauth_groups", mode="before")
    @classmethod
    def _listed(cls, given: object) -> object:
        return [item.strip() for item in given.split(",") if item.strip()] if isinstance(given, str) else given

    @field_validator("never_keep")
    @classmethod
    def _rules(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        if wrong := [rule for rule in given if not _RULE.match(rule)]:
            raise ValueError(
                f"{wrong[0]!r} is not a rule; allowed: source:NAME, project:FOLDER, channel:NAME, path:FILE"
            )
        return given

    @field_validator("oauth_groups")
    @classmethod
    def _group_rules(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        if wrong := [rule for rule in given if not GROUP_RULE.fullmatch(rule)]:
            raise ValueError(f"{wrong[0]!r} is not a rule; allowed: GROUP=read|write|admin, or GROUP=LEVEL:PROJECT")
        return given

    @field_validator("allowed_origins")
    @classmethod
    def _origins(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for origin in given:
            parts = urlsplit(origin)
            if parts.scheme not in ("https", "http") or origin != f"{parts.scheme}://{parts.netloc}":
                raise ValueError(
                    f"{origin!r} is not an origin; allowed: scheme and host, such as https://editor.example.org"
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
        raise InvalidRequest("The configuration is not usable.", f"{exc}: it must be JSON") from exc
    except (OSError, ValueError) as exc:
        raise InvalidRequest("config.toml could not be read.", str(exc)) from exc


def _problem(found: Mapping[str, Any]) -> str:
    if not found["loc"]:
        return str(found["msg"])
    if len(found["loc"]) > 1 or not isinstance(found["input"], str | int | float):
        return f"CTXR_{'.'.join(map(str, found['loc'])).upper()}: {found['msg']}"
    message = str(found["msg"]).partition(", unable to parse")[0]
    return f"CTXR_{str(found['loc'][0]).upper()}: {message}, given {found['input']!r}"
