"""The manifests: valid for every Kubernetes they claim to work on, and telling the same story as the code."""

import json
import re
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from kubernetes_validate import ValidationError
from kubernetes_validate.utils import all_versions

from tests.support import serving, settings_in
from verilog_taskapp.settings import documented_settings

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "kubernetes"
VERSIONS = [version for version in all_versions() if tuple(map(int, version.split("."))) >= (1, 30)]
"""What ``taskapp.yaml`` says it needs, up to the newest schema there is."""
FOREIGN = {"PodMonitor", "RayService"}
"""Kinds that other projects define."""


def documents(name: str) -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all((FOLDER / name).read_text("utf-8")) if document]


def one(name: str, kind: str) -> dict[str, Any]:
    found = [document for document in documents(name) if document["kind"] == kind]
    assert len(found) == 1
    return found[0]


OBJECTS = {
    f"{path.name}: {document['kind']}": document
    for path in sorted(FOLDER.glob("*.yaml"))
    for document in documents(path.name)
    if "kind" in document
}
SERVICE_POD = one("taskapp.yaml", "Deployment")["spec"]["template"]
RAY = one("rayservice.yaml", "RayService")["spec"]
RAY_GROUPS = [RAY["rayClusterConfig"]["headGroupSpec"], *RAY["rayClusterConfig"]["workerGroupSpecs"]]
PODS = {"service": SERVICE_POD, "ray head": RAY_GROUPS[0]["template"], "ray worker": RAY_GROUPS[1]["template"]}
KEYED_PODS = {name: pod for name, pod in PODS.items() if name != "ray head"}


def container(pod: dict[str, Any]) -> dict[str, Any]:
    found: list[dict[str, Any]] = pod["spec"]["containers"]
    assert len(found) == 1
    return found[0]


def environment(pod: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {variable["name"]: variable for variable in container(pod)["env"]}


def mebibytes(quantity: str) -> int:
    factor = {"Mi": 1, "Gi": 1024}[quantity[-2:]]
    return int(quantity[:-2]) * factor


@pytest.mark.parametrize("version", [VERSIONS[0], VERSIONS[-1]])
@pytest.mark.parametrize("name", [name for name, document in OBJECTS.items() if document["kind"] not in FOREIGN])
def test_every_object_fits_the_schema_and_has_no_field_that_is_not_in_it(name: str, version: str) -> None:
    kubernetes_validate.validate(OBJECTS[name], version, strict=True)


@pytest.mark.parametrize("version", [VERSIONS[0], VERSIONS[-1]])
@pytest.mark.parametrize("name", PODS)
def test_every_pod_template_fits_the_schema(name: str, version: str) -> None:
    template = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "x"}, "template": PODS[name]}
    kubernetes_validate.validate(template, version, strict=True)


def test_the_schema_would_notice_a_misspelt_field_and_a_wrong_type() -> None:
    for path, value in ((("readinesProbe",), {}), (("ports", 0, "containerPort"), "http")):
        broken = json.loads(json.dumps(one("taskapp.yaml", "Deployment")))
        place: Any = container(broken["spec"]["template"])
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = value
        with pytest.raises(ValidationError):
            kubernetes_validate.validate(broken, VERSIONS[-1], strict=True)


def test_selectors_find_the_pods_and_ports_have_their_names() -> None:
    labels = SERVICE_POD["metadata"]["labels"].items()
    deployment, service = one("taskapp.yaml", "Deployment"), one("taskapp.yaml", "Service")
    budget, monitor = one("taskapp.yaml", "PodDisruptionBudget"), one("monitoring.yaml", "PodMonitor")
    for selector in (
        deployment["spec"]["selector"]["matchLabels"],
        service["spec"]["selector"],
        budget["spec"]["selector"]["matchLabels"],
        monitor["spec"]["selector"]["matchLabels"],
    ):
        assert selector.items() <= labels
    ports = {port["name"] for port in container(SERVICE_POD)["ports"]}
    assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
    assert {endpoint["port"] for endpoint in monitor["spec"]["podMetricsEndpoints"]} <= ports
    target = one("autoscaling.yaml", "HorizontalPodAutoscaler")["spec"]["scaleTargetRef"]
    assert (target["kind"], target["name"]) == ("Deployment", deployment["metadata"]["name"])


def test_the_port_is_the_image_s() -> None:
    assert f"VERILOG_PORT={container(SERVICE_POD)['ports'][0]['containerPort']}" in (ROOT / "Dockerfile").read_text()


def test_a_pod_is_killed_only_after_its_drain() -> None:
    pause_s = container(SERVICE_POD)["lifecycle"]["preStop"]["sleep"]["seconds"]
    drain_s = float(environment(SERVICE_POD)["VERILOG_DRAIN_S"]["value"])
    assert SERVICE_POD["spec"]["terminationGracePeriodSeconds"] >= pause_s + 2 * drain_s + 10


@pytest.mark.parametrize("name", PODS)
def test_pods_run_as_an_ordinary_user_without_privileges(name: str) -> None:
    pod = PODS[name]["spec"]["securityContext"]
    assert pod["runAsNonRoot"]
    assert pod["runAsUser"] > 0
    assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
    inside = container(PODS[name])["securityContext"]
    assert not inside["allowPrivilegeEscalation"]
    assert inside["capabilities"] == {"drop": ["ALL"]}


def test_the_user_is_the_image_s() -> None:
    user = SERVICE_POD["spec"]["securityContext"]["runAsUser"]
    assert f"USER {user}:{user}" in (ROOT / "Dockerfile").read_text()


def test_whatever_the_service_writes_goes_to_a_volume() -> None:
    assert container(SERVICE_POD)["securityContext"]["readOnlyRootFilesystem"]
    mounts = {mount["mountPath"]: mount["name"] for mount in container(SERVICE_POD)["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in SERVICE_POD["spec"]["volumes"]}
    assert set(mounts) == {"/dev/shm", environment(SERVICE_POD)["VERILOG_CACHE_DIR"]["value"], "/tmp"}
    assert volumes[mounts["/dev/shm"]]["emptyDir"]["medium"] == "Memory"


def test_the_memory_is_enough_for_scratch_and_simulators_at_their_limits() -> None:
    from verilog_taskapp.settings import Settings

    children_mib = Settings().address_space_bytes // 1024**2
    for pod, server_mib in ((SERVICE_POD, 512), (PODS["ray worker"], 1024)):
        limits = container(pod)["resources"]["limits"]
        scratch = next(volume for volume in pod["spec"]["volumes"] if volume["name"] == "scratch")
        needed = mebibytes(scratch["emptyDir"]["sizeLimit"]) + server_mib + int(limits["cpu"]) * children_mib
        assert mebibytes(limits["memory"]) >= needed


@pytest.mark.parametrize("name", KEYED_PODS)
def test_keys_come_from_the_secret_and_nowhere_else(name: str) -> None:
    for variable in environment(KEYED_PODS[name]).values():
        if re.search(r"_KEY$", variable["name"]):
            assert variable["valueFrom"]["secretKeyRef"]["name"] == "verilog-taskapp"
            assert "value" not in variable
    assert {"ENVIRONMENT_API_KEY", "VERILOG_STIMULUS_KEY"} <= environment(KEYED_PODS[name]).keys()


@pytest.mark.parametrize("name", PODS)
def test_every_variable_is_a_setting_or_another_project_s(name: str) -> None:
    known = {setting.variable for setting in documented_settings()}
    foreign = {"HF_HOME", "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH", "RAY_USAGE_STATS_ENABLED"}
    assert environment(PODS[name]).keys() <= known | foreign


def test_the_ray_service_has_the_fields_of_its_definition_and_no_others() -> None:
    # ray.io/v1 as KubeRay defines it; the pod templates are checked against Kubernetes' own schema above
    assert OBJECTS["rayservice.yaml: RayService"]["apiVersion"] == "ray.io/v1"
    assert RAY.keys() == {"serveConfigV2", "rayClusterConfig"}
    assert isinstance(RAY["serveConfigV2"], str)
    cluster = RAY["rayClusterConfig"]
    assert cluster.keys() == {
        "rayVersion",
        "enableInTreeAutoscaling",
        "authOptions",
        "headGroupSpec",
        "workerGroupSpecs",
    }
    assert cluster["headGroupSpec"].keys() == {"rayStartParams", "template"}
    for group in cluster["workerGroupSpecs"]:
        assert group.keys() == {"groupName", "minReplicas", "maxReplicas", "rayStartParams", "template"}
    for group in RAY_GROUPS:
        assert all(isinstance(value, str) for value in group["rayStartParams"].values())


def test_the_ray_version_is_that_of_its_image() -> None:
    image = (ROOT / "deploy/ray/Dockerfile").read_text()
    versions = re.findall(r"^FROM rayproject/ray:([\d.]+)-|ray\[serve\]==([\d.]+)", image, re.M)
    assert {one or other for one, other in versions} == {RAY["rayClusterConfig"]["rayVersion"]}


async def test_the_metrics_that_pods_are_added_by_are_the_service_s(tmp_path: Path) -> None:
    scaling = one("autoscaling.yaml", "HorizontalPodAutoscaler")["spec"]["metrics"]
    wanted = [metric["pods"]["metric"]["name"] for metric in scaling if metric["type"] == "Pods"]
    adapted = yaml.safe_load((FOLDER / "prometheus-adapter-values.yaml").read_text())["rules"]["custom"]
    assert [rule["name"]["as"] for rule in adapted] == wanted
    assert [rule["seriesQuery"].partition("{")[0] for rule in adapted] == wanted
    async with serving(settings_in(tmp_path)) as service:
        path = one("monitoring.yaml", "PodMonitor")["spec"]["podMetricsEndpoints"][0]["path"]
        exported = (await service.client.get(path)).text
    for name in wanted:
        assert re.search(rf"^{name}[ {{]", exported, re.M), exported


def test_every_file_is_documented() -> None:
    told = (ROOT / "docs/deployment.md").read_text("utf-8")
    files = [path.relative_to(ROOT) for path in (ROOT / "deploy").rglob("*") if path.is_file()]
    assert len(files) >= 7
    assert not [path for path in files if str(path) not in told]


def test_the_ray_cluster_has_room_for_all_replicas() -> None:
    arguments = yaml.safe_load(RAY["serveConfigV2"])["applications"][0]["args"]
    for group in RAY["rayClusterConfig"]["workerGroupSpecs"]:
        cores = int(container(group["template"])["resources"]["limits"]["cpu"])
        assert group["maxReplicas"] * (cores // arguments["num_cpus"]) >= arguments["max_replicas"]
        assert group["minReplicas"] * (cores // arguments["num_cpus"]) >= arguments["min_replicas"]
