"""The service as an autoscaling Ray Serve application.

    serve run verilog_taskapp.deploy.ray_serve:app num_cpus=1 max_replicas=2

or by a config file, see ``deploy/ray/serve.yaml``. Every replica is one process with the whole service in it; its
settings are those of `verilog_taskapp.settings`, read from the environment of the node that the replica runs on.
"""

import math

import httpx
import ray
from fastapi import FastAPI
from ray import serve
from ray.serve import Application, Deployment
from ray.serve.config import AutoscalingConfig, BackpressureConfig

from verilog_taskapp.app import create_app
from verilog_taskapp.deploy.arguments import RayArguments
from verilog_taskapp.deploy.ray_sessions import RayBackend
from verilog_taskapp.environment.world import World
from verilog_taskapp.http.logs import configure_logging
from verilog_taskapp.sessions.store import simulator_of
from verilog_taskapp.settings import load_settings

DEPLOYMENT = "TaskApp"
"""Name under which a Serve config may override the deployment's options."""
KILL_MARGIN_S = 5.0
"""Between the end of a drain and the kill: simulators are stopped and directories removed in it."""
WAIT_LOOP_S = 1.0
"""How often a draining replica looks whether its requests are finished."""
LOOK_BACK_S = 15.0
"""Autoscaling follows the mean load of this time: a trainer's batch is there all at once, and Ray's own 30 s miss it.
It has to be more than the 10 s between two measurements."""
HEALTH_TIMEOUT_S = 30.0
"""A health check that takes longer has failed; the answer comes from memory."""


def build() -> FastAPI:
    """The application of one replica; evaluated in it, never in the driver."""
    assigned = ray.get_runtime_context().get_assigned_resources().get("CPU", 0.0)
    settings = load_settings()
    if settings.max_children == 0 and assigned:
        settings = settings.model_copy(update={"max_children": math.ceil(assigned)})
    configure_logging(settings)
    return create_app(settings, session_backend=None if settings.session_dir else sessions_of_all_replicas)


def sessions_of_all_replicas(world: World) -> RayBackend:
    """What keeps the sessions, unless ``VERILOG_SESSION_DIR`` names a directory, which only one node has."""
    application = serve.get_replica_context().app_name
    return RayBackend(application, simulator_of(world), world.settings.session_ttl_s)


class TaskApp:
    """A replica."""

    app: FastAPI
    """Set by `ray.serve.ingress`."""

    async def check_health(self) -> None:
        """Ask ``/ready``; raises RuntimeError with its reasons. Ray replaces a replica that stays unhealthy."""
        transport = httpx.ASGITransport(app=self.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://replica", trust_env=False) as client:
            answer = await client.get("/ready")
        if answer.status_code != httpx.codes.OK:
            raise RuntimeError(f"not ready: {answer.text}")


def app(arguments: RayArguments) -> Application:
    """The application that ``serve run`` and Serve configs name."""
    application: Application = deployment(arguments).bind()
    return application


def deployment(arguments: RayArguments) -> Deployment:
    """How Ray Serve runs the replicas."""
    configured = serve.deployment(
        name=DEPLOYMENT,
        ray_actor_options={"num_cpus": arguments.num_cpus},
        autoscaling_config=AutoscalingConfig(
            min_replicas=arguments.min_replicas,
            max_replicas=arguments.max_replicas,
            target_ongoing_requests=arguments.target_ongoing_requests,
            look_back_period_s=LOOK_BACK_S,
            upscale_delay_s=arguments.upscale_delay_s,
            downscale_delay_s=arguments.downscale_delay_s,
        ),
        max_ongoing_requests=arguments.max_ongoing_requests,
        max_queued_requests=arguments.max_queued_requests,
        backpressure_config=BackpressureConfig(status_code=429, retry_after_s=arguments.retry_after_s),
        graceful_shutdown_timeout_s=arguments.drain_s + KILL_MARGIN_S,
        graceful_shutdown_wait_loop_s=WAIT_LOOP_S,
        health_check_period_s=arguments.health_check_period_s,
        health_check_timeout_s=HEALTH_TIMEOUT_S,
    )
    return configured(serve.ingress(build)(TaskApp))
