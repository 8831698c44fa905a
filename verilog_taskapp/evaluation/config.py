"""What an evaluation is asked to do: ``[eval]``, ``[policy]`` and ``[env]`` of a TOML file or the command's options."""

from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit, urlunsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from verilog_taskapp.contracts.config import Feedback, Heuristics, RewardConfig, SplitName, ToolMode

Mode = Literal["agent", "single-shot"]
JudgeName = Literal["golden", "classic"]
JudgeChoice = Literal["golden", "classic", "both"]

BOOTSTRAP_RESAMPLES = 2000
"""Enough for a 95 % interval whose ends move by less than a tenth of its width from seed to seed."""


class _Section(BaseModel):
    """Immutable, and a key that does not exist is an error: a misspelt option must not be a silent default."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class ModelSpec(_Section):
    """One model of the run. What is None here is as in ``[policy]``."""

    name: Annotated[str, Field(min_length=1)]
    """As the inference endpoint knows it."""
    label: str | None = None
    """As the results call it; the name unless given. Two entries must not have the same."""
    inference_url: str | None = None
    api_key_env: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = None
    temperature: Annotated[float, Field(ge=0)] | None = None
    max_tokens: Annotated[int, Field(ge=0)] | None = None
    extra_body: dict[str, Any] | None = None
    price_in: Annotated[float, Field(ge=0)] | None = None
    """Money per million prompt tokens."""
    price_out: Annotated[float, Field(ge=0)] | None = None
    """Money per million completion tokens."""

    @property
    def title(self) -> str:
        """The label, else the name."""
        return self.label or self.name


class EvalSection(_Section):
    """``[eval]``: how much is sampled, how it is judged and how it is run."""

    dataset: str | None = None
    """As `VERILOG_DATASET`; None: the setting."""
    split: SplitName = "all"
    """Part of the set; `all` unless given, as published numbers are of whole sets."""
    problems: tuple[str, ...] = ()
    """Only these ids of the split; empty: all of them."""
    n: Annotated[int, Field(ge=1)] = 1
    """Samples of each problem."""
    k: tuple[Annotated[int, Field(ge=1)], ...] = (1,)
    """The k of pass@k."""
    mode: Mode = "agent"
    judge: JudgeChoice = "golden"
    seed: Annotated[int, Field(ge=0)] = 0
    """The seeds of all samples and of the bootstrap are derived from it."""
    server: str | None = None
    """Base URL of a running service; None: in this process."""
    concurrency: Annotated[int, Field(ge=1)] = 8
    """Samples in flight."""
    retries: Annotated[int, Field(ge=0)] = 3
    """Further attempts of a sample after an infrastructure error."""
    bootstrap: Annotated[int, Field(ge=100)] = BOOTSTRAP_RESAMPLES
    """Resamples of an interval."""
    max_time_s: Annotated[float, Field(gt=0)] = 900.0
    """Wall-clock limit of one episode, which truncates it."""

    @field_validator("k")
    @classmethod
    def _sorted(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if not value:
            raise ValueError("name at least one k, such as k = [1]")
        return tuple(sorted(set(value)))

    @model_validator(mode="after")
    def _enough_samples(self) -> Self:
        if self.k[-1] > self.n:
            raise ValueError(f"pass@{self.k[-1]} needs at least {self.k[-1]} samples of each problem: n is {self.n}")
        return self


class PolicySection(_Section):
    """``[policy]``: the models and how they are sampled. None leaves a value to the service's settings."""

    models: Annotated[tuple[ModelSpec, ...], Field(min_length=1)]
    """Names, or tables with what differs for one model."""
    inference_url: str | None = None
    api_key_env: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = None
    """Name of the environment variable that holds the endpoint's key; never a key."""
    temperature: Annotated[float, Field(ge=0)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    max_tokens: Annotated[int, Field(ge=0)] | None = None
    """Completion tokens per model call; 0: no limit is sent."""
    max_steps: Annotated[int, Field(ge=1, le=25)] | None = None
    """Model turns of an agent's episode."""
    heuristics: Heuristics = "full"
    tool_mode: ToolMode = "json"
    stop: tuple[str, ...] = ()
    extra_body: dict[str, Any] | None = None
    sampling_seed: bool = True
    """Send each sample's seed with its model calls."""
    price_in: Annotated[float, Field(ge=0)] | None = None
    """Money per million prompt tokens."""
    price_out: Annotated[float, Field(ge=0)] | None = None
    """Money per million completion tokens."""

    @field_validator("models", mode="before")
    @classmethod
    def _names_are_models(cls, value: Any) -> Any:
        listed = [value] if isinstance(value, str | dict) else value
        if not isinstance(listed, list | tuple):
            return value
        return [{"name": one} if isinstance(one, str) else one for one in listed]

    @field_validator("models")
    @classmethod
    def _distinct(cls, value: tuple[ModelSpec, ...]) -> tuple[ModelSpec, ...]:
        titles = [one.title for one in value]
        if len(set(titles)) != len(titles):
            raise ValueError("two models have the same name: give one of them a label")
        return value

    @field_validator("stop", mode="before")
    @classmethod
    def _one_as_list(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    def of(self, model: ModelSpec) -> "PolicySection":
        """These values with the model's own in their place."""
        own = {name: value for name, value in model.model_dump(exclude={"name", "label"}).items() if value is not None}
        return self.model_copy(update={**own, "models": (model,)})


class EnvSection(_Section):
    """``[env]``: what an agent's episode tells and pays; None as the service's settings have it."""

    feedback: Feedback | None = None
    rewards: RewardConfig = Field(default_factory=RewardConfig)


class EvalConfig(_Section):
    """One evaluation."""

    eval: EvalSection = Field(default_factory=EvalSection)
    policy: PolicySection
    env: EnvSection = Field(default_factory=EnvSection)

    @property
    def judges(self) -> tuple[JudgeName, ...]:
        """Who gives a verdict on every design; the first decides."""
        return ("golden", "classic") if self.eval.judge == "both" else (self.eval.judge,)


HOW = ("server", "concurrency", "retries", "k", "bootstrap")
"""Keys of ``[eval]`` that do not change what a sample is: a resumed run may have others."""
PRICES = ("price_in", "price_out")


def what_is_measured(config: EvalConfig) -> dict[str, Any]:
    """The part of the configuration on which every sample depends, as JSON, without anything secret in a URL."""
    whole = config.model_dump(mode="json", exclude={"eval": set(HOW), "policy": set(PRICES)})
    for one in (whole["policy"], *whole["policy"]["models"]):
        for price in PRICES:
            one.pop(price, None)
        if one["inference_url"] is not None:
            one["inference_url"] = without_secrets(one["inference_url"])
    return whole


def how_it_is_run(config: EvalConfig) -> dict[str, Any]:
    """The rest: what a resumed run may change."""
    chosen: dict[str, Any] = {name: config.eval.model_dump(mode="json")[name] for name in HOW}
    if chosen["server"] is not None:
        chosen["server"] = without_secrets(chosen["server"])
    prices = {
        one.title: {name: getattr(config.policy.of(one), name) for name in PRICES} for one in config.policy.models
    }
    return {**chosen, "prices": prices}


def without_secrets(url: str) -> str:
    """`url` without user, password, query and fragment, which may hold a key."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
