"""Every tunable of the service: one field each, read from its environment variable or an ``.env`` file.

Nothing is read at import time; `Settings()` reads the process environment once. Units are in the names
(``_s`` seconds, ``_bytes``, ``_chars``). ``.env.example`` and the README list the same variables; a test compares them.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from dotenv import dotenv_values
from pydantic import AliasChoices, Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

CommaSeparated = Annotated[tuple[str, ...], NoDecode]

Feedback = Literal["verdict", "hints", "waveform"]
MIB = 1024**2


def _cache_home() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return Path(base) if base else Path.home() / ".cache"


class Settings(BaseSettings):
    """The settings of one process; immutable once read."""

    model_config = SettingsConfigDict(
        env_prefix="VERILOG_",
        env_file_encoding="utf-8",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        populate_by_name=True,
        use_attribute_docstrings=True,
    )

    # --- authentication
    environment_api_key: SecretStr | None = Field(
        None, validation_alias=AliasChoices("ENVIRONMENT_API_KEY", "environment_api_key")
    )
    """The key that clients must send; without one the protected routes answer 503."""
    dev_environment_api_key: SecretStr | None = Field(
        None, validation_alias=AliasChoices("DEV_ENVIRONMENT_API_KEY", "dev_environment_api_key")
    )
    """Stands in for `ENVIRONMENT_API_KEY` while that is unset."""
    environment_api_key_aliases: SecretStr | None = Field(
        None, validation_alias=AliasChoices("ENVIRONMENT_API_KEY_ALIASES", "environment_api_key_aliases")
    )
    """Further valid keys, comma-separated."""
    no_auth: bool = False
    """Serve without keys; only accepted when bound to a loopback address."""

    # --- server
    host: str = "127.0.0.1"
    """Address to bind."""
    port: int = Field(8103, ge=0, le=65535)
    """TCP port."""
    cors_origins: CommaSeparated = ()
    """Origins that browsers may call from, comma-separated; `*` for any; empty: none."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severe level logged."""
    log_format: Literal["json", "text"] = "json"
    """`json`: one object a line; `text`: for people."""
    debug_env: bool = False
    """Switch `GET /debug/env` on (booleans only, never values)."""
    drain_s: float = Field(30.0, ge=0)
    """How long running rollouts may finish after SIGTERM."""
    max_body_bytes: int = Field(8 * MIB, gt=0)
    """Largest accepted request body."""
    max_rollouts: int = Field(1024, gt=0)
    """Rollouts in flight at once, in each process; more stand in line."""
    rollout_queue: int = Field(256, ge=0)
    """Rollouts that may stand in line; more are answered 429 with `Retry-After`."""
    batch_heartbeat_s: float = Field(10.0, gt=0)
    """Silence after which `POST /rollout/batch` sends a sign of life."""

    # --- problems
    dataset: str = "bundled"
    """`bundled`, `verilog-eval`, `hf:REPO[:SPLIT]`, `dir:PATH`, `jsonl:PATH` or `parquet:PATH`."""
    dataset_columns: dict[str, str] = {}
    """JSON map from our column names to the set's, e.g. `{"problem_id": "task"}`."""
    errata: bool = True
    """Apply the known corrections of published sets (VerilogEval v2); `false` takes them as they are."""
    max_instances: int | None = Field(None, gt=0)
    """Use only the first N problems of the set; empty: all."""

    # --- inference
    inference_url: str = "https://api.groq.com/openai/v1/chat/completions"
    """Chat-completions endpoint used when a request names none."""
    default_model: str = "qwen/qwen3-32b"
    """Model used when a request names none."""
    groq_api_key: SecretStr | None = Field(None, validation_alias=AliasChoices("GROQ_API_KEY", "groq_api_key"))
    """Sent to api.groq.com only."""
    openai_api_key: SecretStr | None = Field(None, validation_alias=AliasChoices("OPENAI_API_KEY", "openai_api_key"))
    """Sent to api.openai.com only."""
    inference_key_envs: CommaSeparated = ()
    """Names of variables that `policy.config.api_key_env` may name, comma-separated."""
    inference_hosts: CommaSeparated = ()
    """Hosts that a request may make the server contact, comma-separated (`*.x` for subdomains); empty: any."""
    inference_timeout_s: float = Field(90.0, gt=0)
    """Time-out of one model call."""
    inference_retries: int = Field(4, ge=0)
    """Further attempts after a retryable failure of a model call."""
    inference_backoff_s: float = Field(0.5, gt=0)
    """First wait between attempts; doubles with jitter up to 20 s."""
    proxy_openai_url: str = "https://api.openai.com/v1"
    """Upstream base URL of `/proxy/v1`; a vLLM or SGLang server works."""
    proxy_groq_url: str = "https://api.groq.com/openai/v1"
    """Upstream base URL of `/proxy/groq/v1`."""
    proxy_api_key_env: str | None = None
    """Variable that holds the key for a `/proxy/v1` upstream that is neither OpenAI nor Groq."""
    proxy_system_hint: bool = True
    """Inject the tool-format hint once into proxied conversations."""
    proxy_synthesize_tool_calls: bool = True
    """Add a `tool_calls` entry when the answer's text holds one of our tool calls."""

    # --- the agent loop
    temperature: float = Field(0.2, ge=0)
    """Sampling temperature when a request names none."""
    max_tokens: int = Field(768, ge=0)
    """Completion tokens per model call when a request names none; 0 leaves it out."""
    max_steps: int = Field(10, ge=1, le=25)
    """Model turns per episode when a request names none."""
    file_preview_chars: int = Field(600, ge=0)
    """Characters of each workspace file shown to the model per turn."""

    # --- environment
    reward_compile_success: float = 0.1
    """Paid for the first successful compile of an episode."""
    reward_simulate_pass: float = 1.0
    """Paid for the first passing simulation of an episode."""
    reward_submit_pass: float = 10.0
    """Paid for a passing submission."""
    reward_step_penalty: float = -0.01
    """Added at every step."""
    reward_partial: float = 0.0
    """Times the share of outputs without a mismatch, on a failing submission."""
    feedback: Feedback = "hints"
    """What `simulate` tells: `verdict`, `hints` or `waveform` (shows expected values)."""
    compile_message_chars: int = Field(4000, gt=0)
    """Compiler messages shown to the model; the first errors are kept."""
    design_output_chars: int = Field(1000, ge=0)
    """The design's own `$display` output shown to the model."""
    waveform_rows: int = Field(12, gt=0)
    """Rows of the waveform table around the first mismatch."""
    session_ttl_s: float = Field(600.0, gt=0)
    """An idle session expires after this."""
    max_sessions: int = Field(4096, gt=0)
    """Open sessions at once, over all workers; more are answered 429."""
    session_dir: Path | None = None
    """Keep sessions in this directory, across restarts; empty: in memory, or with several workers in the scratch."""
    outcome_rubric: Path | None = None
    """JSON or YAML file that replaces `rubrics/outcome.json`."""
    events_rubric: Path | None = None
    """JSON or YAML file that replaces `rubrics/events.json`."""

    # --- simulator
    iverilog: str = "iverilog"
    """The Icarus compiler: a name on PATH or a path; its `vvp` is taken from the same folder."""
    max_children: int = Field(0, ge=0)
    """Simulator processes at once (and as many again that run for over a second); 0: the number of cores."""
    compile_cpu_s: float = Field(10.0, gt=0)
    """CPU seconds of one compilation."""
    run_cpu_s: float = Field(10.0, gt=0)
    """CPU seconds of one simulation; a slow reference raises it to 5 times its own time."""
    wall_factor: float = Field(3.0, gt=1)
    """Wall-clock limit of a child, as a multiple of its CPU limit."""
    address_space_bytes: int = Field(512 * MIB, gt=0)
    """Memory of one child process."""
    file_size_bytes: int = Field(64 * MIB, gt=0)
    """Largest file that a child may write."""
    sandbox: Literal["required", "bubblewrap", "limits"] = "required"
    """`required`: Landlock and seccomp, or no start; `bubblewrap`: namespaces too; `limits`: neither (macOS)."""
    scratch_dir: Path | None = None
    """Where workspaces live; empty: /dev/shm where it is usable, else the temporary folder."""
    cache_dir: Path = Field(default_factory=lambda: _cache_home() / "verilog-taskapp")
    """Where golden traces, self-checks and rollout traces are kept."""
    verdict_cache: Literal["off", "memory", "disk"] = "memory"
    """Do equal work once: `off`, `memory` (of one process) or `disk` (in the cache directory, for all processes)."""
    verdict_cache_bytes: int = Field(128 * 1024**2, ge=0)
    """Room for its results; those not used for longest go first."""
    stimulus_key: SecretStr | None = Field(None, min_length=16)
    """Secret that the hidden stimuli come from, for machines without a common cache; empty: one kept in the cache."""

    # --- traces
    tracing_enabled: bool = Field(True, validation_alias=AliasChoices("TASKAPP_TRACING_ENABLED", "tracing_enabled"))
    """Store a trace of every rollout and session."""
    trace_db_url: SecretStr | None = Field(
        None,
        validation_alias=AliasChoices("VERILOG_TRACE_DB_URL", "TURSO_LOCAL_DB_URL", "SQLD_DB_PATH", "trace_db_url"),
    )
    """Where: a file, `sqlite:///FILE` or `postgresql://...`; empty: `traces/traces.db` in the cache directory."""
    trace_wait_s: float = Field(1.0, ge=0)
    """How long an answer waits for its trace to be committed before it says that it is not stored (yet)."""
    trace_queue: int = Field(4096, gt=0)
    """Traces that may wait for the database, in each process; more are dropped."""
    trace_queue_bytes: int = Field(64 * MIB, gt=0)
    """The same in memory."""
    trace_flush_s: float = Field(5.0, ge=0)
    """At the end of the process, how long waiting traces may take to be written."""
    trace_max_age_s: float = Field(0.0, ge=0)
    """Traces older than this are removed; 0: none."""
    trace_max_bytes: int = Field(8 * 1024 * MIB, ge=0)
    """Room for stored traces; the oldest go first; 0: no limit."""
    sft_output_dir: Path | None = Field(
        None, validation_alias=AliasChoices("TASKAPP_SFT_OUTPUT_DIR", "SFT_OUTPUT_DIR", "sft_output_dir")
    )
    """Also write the conversations of passing rollouts there as JSON lines, a file per run, for fine-tuning."""
    otel_endpoint: str | None = Field(
        None, validation_alias=AliasChoices("VERILOG_OTEL_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT", "otel_endpoint")
    )
    """Send OpenTelemetry spans to this OTLP/HTTP collector (extra `otel`); empty: none are made."""

    named_keys: dict[str, SecretStr] = Field({}, exclude=True, validation_alias=AliasChoices("named_keys"))
    """Values of the variables listed in ``inference_key_envs``; filled by `load_settings`, never printed."""

    @field_validator("cache_dir", "scratch_dir", "session_dir", "outcome_rubric", "events_rubric", "sft_output_dir")
    @classmethod
    def _expand_home(cls, value: Path | None) -> Path | None:
        return value.expanduser() if value is not None else None

    @field_validator("cors_origins", "inference_key_envs", "inference_hosts", mode="before")
    @classmethod
    def _split_commas(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @property
    def server_keys(self) -> tuple[str, ...]:
        """All keys that open the protected routes."""
        secrets = (self.environment_api_key or self.dev_environment_api_key, self.environment_api_key_aliases)
        joined = ",".join(secret.get_secret_value() for secret in secrets if secret is not None)
        return tuple(dict.fromkeys(key.strip() for key in joined.split(",") if key.strip()))


def load_settings(env_file: Path | None = None, **overrides: object) -> Settings:
    """Settings from the environment, then `env_file` (default ``.env`` here, if it exists).

    `overrides` that are not None win over both. Raises FileNotFoundError when a named `env_file` does not exist and
    pydantic's ValidationError, naming the field, for a value that does not fit.
    """
    if env_file is not None and not env_file.is_file():
        raise FileNotFoundError(f"no such env file: {env_file}")
    path = env_file or Path(".env")
    given: dict[str, Any] = {name: value for name, value in overrides.items() if value is not None}
    settings = Settings(_env_file=path, **given)
    names = (*settings.inference_key_envs, *((settings.proxy_api_key_env,) if settings.proxy_api_key_env else ()))
    variables = {**dotenv_values(path), **os.environ}
    keys = {name: SecretStr(value) for name in names if (value := variables.get(name))}
    return settings.model_copy(update={"named_keys": {**keys, **settings.named_keys}})


@dataclass(frozen=True)
class DocumentedSetting:
    """One line of the settings' documentation."""

    variable: str
    default: str
    """As it would be written in an ``.env`` file; empty for none."""
    description: str


def documented_settings() -> tuple[DocumentedSetting, ...]:
    """Every setting that has a variable, in the order of the class."""
    found = []
    for name, field in Settings.model_fields.items():
        if field.exclude:
            continue
        alias = field.validation_alias
        variable = alias.choices[0] if isinstance(alias, AliasChoices) else f"VERILOG_{name.upper()}"
        description = (field.description or "").replace("\n", " ")
        found.append(DocumentedSetting(str(variable), _written(field.default, name), description))
    return tuple(found)


def _written(default: object, name: str) -> str:
    if name == "cache_dir":
        return "~/.cache/verilog-taskapp"
    if default is None or default == () or default == {}:
        return ""
    return str(default).lower() if isinstance(default, bool) else str(default)
