"""The arguments of the Ray Serve application, as ``args`` in a Serve config or ``name=value`` after ``serve run``."""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class RayArguments(BaseModel):
    """How many replicas there are and how they stop; what the service itself does is told by its own settings.

    Keys never belong here: arguments are shown by Ray's dashboard and written to its logs.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    min_replicas: int = Field(1, ge=1)
    """Replicas that always run."""
    max_replicas: int = Field(8, ge=1)
    """Replicas at most; the cluster must have `num_cpus` for each."""
    num_cpus: float = Field(2.0, gt=0)
    """Cores reserved for a replica; it runs as many simulators at once unless `VERILOG_MAX_CHILDREN` says otherwise."""
    target_ongoing_requests: float = Field(64.0, gt=0)
    """Requests in flight per replica that autoscaling aims at: rollouts per second of a replica times seconds each."""
    max_ongoing_requests: int = Field(512, ge=1)
    """Requests in flight per replica at most; further ones wait in the proxy."""
    max_queued_requests: int = Field(2048, ge=-1)
    """Requests that may wait in each proxy; more are answered 429 with Retry-After; -1: no limit."""
    retry_after_s: float = Field(5.0, ge=0)
    """Retry-After of those."""
    drain_s: float = Field(60.0, ge=0)
    """How long a replica that has to go may finish its requests; what still runs then is cut off and can be retried."""
    upscale_delay_s: float = Field(10.0, ge=0)
    """How long the load must be above the target before replicas are added."""
    downscale_delay_s: float = Field(300.0, ge=0)
    """How long the load must be below the target before replicas go."""
    health_check_period_s: float = Field(10.0, gt=0)
    """Time between two health checks of a replica; it is replaced after three failures."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.max_replicas < self.min_replicas:
            raise ValueError(f"max_replicas ({self.max_replicas}) is less than min_replicas ({self.min_replicas})")
        if self.target_ongoing_requests > self.max_ongoing_requests:
            raise ValueError(
                f"target_ongoing_requests ({self.target_ongoing_requests:g}) can never be reached: "
                f"max_ongoing_requests is {self.max_ongoing_requests}"
            )
        return self
