"""The one table of settings. Each is an environment variable TEXELGRAD_<NAME>; docs/operations.md names them all."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, ValidationInfo, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from texelgrad.errors import Fault, Invalid
from texelgrad.spec_faults import faults_of

MIB = 1 << 20
_DATABASES = ("sqlite", "postgres", "postgresql", "postgresql+psycopg")
_BROKERS = ("redis", "rediss", "redis+socket")
_LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
_HOST = re.compile(r"\*|\[[0-9A-Fa-f:.]+\]|[\w.-]+")

HostList = Annotated[list[str], NoDecode]  # read here, so that a wrong one is refused like any other setting


class Settings(BaseSettings):
    """Read once where a process starts, then passed down; nothing else reads the environment."""

    model_config = SettingsConfigDict(env_prefix="TEXELGRAD_", extra="ignore", frozen=True)

    data_dir: Path = Field(
        default=Path("var"), description="Folder of the embedded database, sockets and logs."
    )
    database_url: str = Field(default="", description="SQLAlchemy URL. Empty: an SQLite file below data_dir.")
    broker_url: str = Field(
        default="", description="Redis URL. Empty: a private redis-server on a Unix socket."
    )
    host: str = Field(default="127.0.0.1", description="Address that the API listens on.")
    port: int = Field(default=8321, ge=0, le=65535, description="Port of the API; 0 takes a free one.")
    allowed_hosts: HostList = Field(
        default=["127.0.0.1", "localhost", "[::1]"],
        description="Host headers that the API answers to, without port, as a JSON list.",
    )
    queue: str = Field(default="gpu", description="Queue that jobs go to and that this worker serves.")
    owner_id: str = Field(default="local", description="Owner of everything made without an API key.")
    require_keys: bool | None = Field(
        default=None, description="Whether callers need an API key. Unset: on any address but loopback."
    )
    rate_per_minute: int = Field(
        default=6000, ge=0, description="Requests a minute for each API key; 0: no limit."
    )
    max_jobs: int = Field(
        default=0,
        ge=0,
        description="Queued and running jobs of one owner; 0: no limit. A key may say otherwise.",
    )
    max_stored_bytes: int = Field(
        default=0, ge=0, description="Bytes of one owner's data sets; 0: no limit. A key may say otherwise."
    )
    max_queued: int = Field(
        default=10_000, ge=1, description="Jobs that may wait in one queue; beyond it new ones get 503."
    )
    min_free_bytes: int = Field(
        default=256 * MIB,
        ge=0,
        description="Bytes that stay free on the disk of an SQLite database; else 503.",
    )

    lease_s: float = Field(default=15.0, gt=0, description="Seconds until a silent worker loses its attempt.")
    stall_s: float = Field(
        default=60.0, gt=0, description="Seconds without progress of a page until it is given up."
    )
    start_s: float = Field(
        default=60.0, gt=0, description="Seconds that Chromium has to start and prove its GPU."
    )
    idle_look_s: float = Field(
        default=5.0, gt=0, description="An idle worker looks for jobs so often without a hint."
    )
    keeper_period_s: float = Field(default=1.0, gt=0, description="Seconds between two rounds of the keeper.")
    max_hints: int = Field(default=100, ge=1, description="Hints that wait in one queue at most.")

    chromium: str = Field(
        default="", description="Path of Chromium. Empty: chromium-headless-shell, chromium, chrome."
    )
    chromium_user: str = Field(
        default="", description="User that runs Chromium where we are root. Empty: our own."
    )
    chromium_nice: int = Field(
        default=5,
        ge=0,
        le=19,
        description="How far Chromium, and so training, yields the CPU to everything else: 0 not at all, 19 wholly.",
    )
    allow_software: bool = Field(
        default=True, description="Train on software renderers too; such runs say so."
    )
    gpu_recipe: Literal["", "vulkan", "gl-egl", "default", "swiftshader"] = Field(
        default="", description="Name of the one launch recipe to use. Empty: try all in order."
    )

    max_upload_bytes: int = Field(default=1024 * MIB, ge=1, description="Largest upload, packed.")
    max_data_bytes: int = Field(default=2048 * MIB, ge=1, description="Largest data set, unpacked.")
    max_spec_bytes: int = Field(default=MIB, ge=1, description="Largest job spec.")
    max_parameters: int = Field(
        default=100_000_000, ge=1, description="Largest number of parameters of a model."
    )
    max_layers: int = Field(
        default=256, ge=1, le=256, description="Largest number of layers of a model, at most 256."
    )
    max_wall_s: int = Field(
        default=86_400, ge=1, description="Longest wall-clock limit that a job may ask for."
    )
    max_streams: int = Field(
        default=32, ge=1, description="Event streams that one API process serves at once."
    )
    webhook_hosts: HostList = Field(
        default=[], description="Hosts of this network that webhooks may call, by http too, as a JSON list."
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field(
        default="INFO", description="DEBUG, INFO, WARNING or ERROR."
    )

    @classmethod
    def load(cls, **given: Any) -> Self:
        """From the environment, `given` first. Raises Invalid with every fault, each by its variable's name."""
        try:
            return cls(**given)
        except ValidationError as error:
            raise Invalid([_by_variable(fault) for fault in faults_of(error, cls)]) from None

    @field_validator("database_url", "broker_url")
    @classmethod
    def _known_scheme(cls, url: str, info: ValidationInfo) -> str:
        schemes = _DATABASES if info.field_name == "database_url" else _BROKERS
        scheme, separator, _ = url.partition("://")
        if url and not (separator and scheme in schemes):
            raise ValueError(f"must start with one of {', '.join(f'{name}://' for name in schemes)}")
        return url

    @field_validator("allowed_hosts", "webhook_hosts", mode="before")
    @classmethod
    def _json_list(cls, hosts: Any) -> Any:
        if not isinstance(hosts, str):
            return hosts
        try:
            return json.loads(hosts)
        except ValueError:
            raise ValueError('must be a JSON list, such as ["train.example", "localhost"]') from None

    @field_validator("allowed_hosts", "webhook_hosts")
    @classmethod
    def _plain_hosts(cls, hosts: list[str]) -> list[str]:
        if wrong := [host for host in hosts if not _HOST.fullmatch(host)]:
            raise ValueError(
                f"{wrong[0]!r} is no host: leave out scheme, port and path, write IPv6 in brackets"
            )
        return hosts

    @field_validator("log_level", mode="before")
    @classmethod
    def _upper(cls, level: Any) -> Any:
        upper = level.upper() if isinstance(level, str) else ""
        return upper if upper in _LOG_LEVELS else level

    @field_validator("data_dir")
    @classmethod
    def _absolute(cls, path: Path) -> Path:
        """Children start in other folders: make the path mean the same everywhere."""
        return path.absolute()

    @property
    def database(self) -> str:
        """The SQLAlchemy URL in force."""
        url = self.database_url or f"sqlite:///{self.data_dir / 'texelgrad.db'}"
        scheme, _, rest = url.partition("://")
        return f"postgresql+psycopg://{rest}" if scheme in ("postgres", "postgresql") else url

    @property
    def redis_socket(self) -> Path:
        """Unix socket of the embedded redis-server; in the temporary folder where data_dir is too deep for one."""
        socket = self.data_dir / "redis.sock"
        if len(os.fsencode(socket)) < 100:  # sun_path holds 108 bytes with its NUL
            return socket
        digest = hashlib.sha256(os.fsencode(self.data_dir)).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"texelgrad-{digest}" / "redis.sock"

    @property
    def broker(self) -> str:
        """The Celery broker URL in force."""
        return self.broker_url or f"redis+socket://{self.redis_socket}"


def _by_variable(fault: Fault) -> Fault:
    """The fault as the user can mend it: the variable and its value in words."""
    name, _, index = fault.field.partition(".")
    message = fault.message.removeprefix("value error, ")
    where = f"TEXELGRAD_{name.upper()}"
    legal = f"empty{fault.legal}" if fault.legal and fault.legal.startswith(",") else fault.legal
    return Fault(f"{where}.{index}" if index else where, f"{fault.value!r}: {message}", fault.value, legal)
