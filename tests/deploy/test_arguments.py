"""The arguments of the Ray Serve application: checked, documented, and the same in every place that lists them."""

import re
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from verilog_taskapp.deploy.arguments import RayArguments

ROOT = Path(__file__).parents[2]


def test_the_config_file_lists_every_argument_with_its_default() -> None:
    config = yaml.safe_load((ROOT / "deploy/ray/serve.yaml").read_text("utf-8"))
    assert config["applications"][0]["args"] == RayArguments().model_dump()


def test_the_documentation_lists_every_argument_as_the_code_describes_it() -> None:
    text = (ROOT / "docs/deployment.md").read_text("utf-8")
    rows = re.findall(r"^\| `([a-z][a-z_]*)` \| (\S+) \| (.*) \|$", text, re.M)
    assert rows == [
        (name, f"{field.default:g}", field.description) for name, field in RayArguments.model_fields.items()
    ]


def test_arguments_of_the_command_line_are_read_as_numbers() -> None:
    given = RayArguments.model_validate({"min_replicas": "2", "num_cpus": "0.5"})
    assert (given.min_replicas, given.num_cpus) == (2, 0.5)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"replicas": 2}, "replicas"),
        ({"environment_api_key": "k"}, "environment_api_key"),
        ({"min_replicas": 9}, "max_replicas (8) is less than min_replicas (9)"),
        ({"max_ongoing_requests": 32}, "target_ongoing_requests (64) can never be reached"),
        ({"num_cpus": 0}, "num_cpus"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(arguments: dict[str, object], complaint: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(complaint)):
        RayArguments.model_validate(arguments)
