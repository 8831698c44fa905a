"""What Ray Serve is told, without a cluster: the options of the deployment, the config files, the health check."""

import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from fastapi import FastAPI, Response

from verilog_taskapp.deploy.arguments import RayArguments

if TYPE_CHECKING:
    from ray.serve import Deployment

pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed: pip install '.[ray]'")
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True, scope="module")
def imported() -> None:
    """Ray warns of its own use of other projects when it is imported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import_module("ray.serve.schema")


def configs() -> dict[str, str]:
    service = yaml.safe_load((ROOT / "deploy/kubernetes/rayservice.yaml").read_text("utf-8"))
    return {
        "serve.yaml": (ROOT / "deploy/ray/serve.yaml").read_text("utf-8"),
        "rayservice.yaml": service["spec"]["serveConfigV2"],
    }


@pytest.mark.parametrize("name", configs())
def test_the_config_fits_ray_s_own_schema(name: str) -> None:
    from ray.serve.schema import ServeDeploySchema

    config = ServeDeploySchema.model_validate(yaml.safe_load(configs()[name]))
    (application,) = config.applications
    assert application.import_path == "verilog_taskapp.deploy.ray_serve:app"
    assert application.runtime_env == {}, "settings are the nodes' environment: Ray shows this one to everybody"
    assert RayArguments.model_validate(application.args)
    assert config.http_options.request_timeout_s is None, "rollouts have their own deadlines"


def test_the_import_path_names_the_application() -> None:
    from ray.serve import Application

    from verilog_taskapp.deploy.ray_serve import app

    assert isinstance(app(RayArguments()), Application)


def described(**arguments: object) -> "Deployment":
    from verilog_taskapp.deploy.ray_serve import deployment

    return deployment(RayArguments.model_validate(arguments))


def test_every_argument_reaches_ray() -> None:
    options = described(
        min_replicas=2,
        max_replicas=5,
        num_cpus=3,
        target_ongoing_requests=7,
        max_ongoing_requests=11,
        max_queued_requests=13,
        retry_after_s=17,
        drain_s=19,
        upscale_delay_s=23,
        downscale_delay_s=29,
        health_check_period_s=31,
    )
    assert options.name == "TaskApp"
    assert options.ray_actor_options is not None
    assert options.ray_actor_options["num_cpus"] == 3
    assert (options.max_ongoing_requests, options.max_queued_requests) == (11, 13)
    config = options._deployment_config
    scaling = config.autoscaling_config
    assert scaling is not None
    assert (scaling.min_replicas, scaling.max_replicas, scaling.target_ongoing_requests) == (2, 5, 7)
    assert (scaling.upscale_delay_s, scaling.downscale_delay_s) == (23, 29)
    assert config.backpressure_config.model_dump() == {"status_code": 429, "retry_after_s": 17}
    assert config.graceful_shutdown_timeout_s > 19
    assert config.health_check_period_s == 31


@pytest.mark.parametrize("status", [200, 503])
async def test_a_replica_is_healthy_while_it_says_that_it_is_ready(status: int) -> None:
    from verilog_taskapp.deploy.ray_serve import TaskApp

    replica = TaskApp()
    replica.app = FastAPI()

    @replica.app.get("/ready")
    def ready() -> Response:
        return Response('{"reasons": ["the simulator is gone"]}', status)

    if status == 200:
        await replica.check_health()
    else:
        with pytest.raises(RuntimeError, match="the simulator is gone"):
            await replica.check_health()
