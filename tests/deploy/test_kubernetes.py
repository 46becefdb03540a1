"""Test the Kubernetes manifests: valid by the published schemas, and consistent with the image and each other."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from tests.image import last_stage

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"
SCHEMAS: dict[str, Any] = json.loads((Path(__file__).parent / "custom_resources.json").read_text(encoding="utf-8"))
"""Schemas of custom resources."""
CHART = {"Chart.yaml", "values.yaml", "templates"}
Manifest = dict[str, Any]


def kustomization() -> Manifest:
    read: Manifest = yaml.safe_load((FOLDER / "kustomization.yaml").read_text(encoding="utf-8"))
    return read


def manifests() -> Iterator[Manifest]:
    for name in kustomization()["resources"]:
        yield from yaml.safe_load_all((FOLDER / name).read_text(encoding="utf-8"))


def name_of(manifest: Manifest) -> str:
    return f"{manifest['kind']} {manifest['metadata']['name']}"


@pytest.fixture(scope="module")
def named() -> dict[str, Manifest]:
    """Return all manifests by kind and name."""
    return {name_of(one): one for one in manifests()}


def check(manifest: Manifest) -> None:
    """Raise unless a schema allows the manifest; a kind without a schema is refused."""
    own = SCHEMAS.get(f"{manifest['apiVersion']}/{manifest['kind']}")
    if own:
        jsonschema.validate(manifest, own)
    else:
        kubernetes_validate.validate(manifest, "1.33", strict=True)


def test_every_manifest_is_valid() -> None:
    for manifest in list(manifests()):
        check(manifest)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("Deployment server", ("spec", "replica")),
        ("Cluster database", ("spec", "instance")),
        ("Gateway server", ("spec", "listener")),
        ("HTTPRoute server", ("spec", "rule")),
        ("ServiceMonitor server", ("spec", "endpoint")),
    ],
)
def test_a_misspelt_field_is_found(named: dict[str, Manifest], name: str, path: tuple[str, str]) -> None:
    wrong = json.loads(json.dumps(named[name]))
    wrong[path[0]][path[1]] = wrong[path[0]].pop(f"{path[1]}s")
    with pytest.raises((jsonschema.ValidationError, kubernetes_validate.ValidationError)):
        check(wrong)


def test_every_file_is_in_the_kustomization() -> None:
    listed = {*kustomization()["resources"], "kustomization.yaml"}
    assert listed | CHART == {file.name for file in FOLDER.iterdir()}


@pytest.mark.skipif(not shutil.which("kubectl"), reason="no kubectl")
def test_kubectl_builds_the_kustomization() -> None:
    done = subprocess.run(["kubectl", "kustomize", FOLDER], capture_output=True, text=True, check=True)
    built = list(yaml.safe_load_all(done.stdout))
    assert {one["metadata"].get("namespace", "context-registry") for one in built} == {"context-registry"}
    for manifest in built:
        check(manifest)


RENDER = """
import json, sys
import helm_python
folder, values = sys.argv[1], json.loads(sys.argv[2])
lint = helm_python.lint(folder)
with helm_python.Chart.load(folder) as chart:
    rendered = chart.render(values, name="registry", namespace="context-registry")
print(json.dumps({"lint": lint, "rendered": "".join(rendered.values())}))
"""


def rendered(**values: Any) -> list[Manifest]:
    """Render the chart with these values by Helm, in a separate process."""
    if importlib.util.find_spec("helm_python") is None:
        pytest.skip("helm-python-sdk is there for Linux on x86-64")
    command = [sys.executable, "-c", RENDER, str(FOLDER), json.dumps(values)]
    output = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert output["lint"]["errors"] == []
    assert [one["error"] for one in output["lint"]["messages"]] == ["icon is recommended"]
    return [one for one in yaml.safe_load_all(output["rendered"]) if one]


def test_helm_installs_the_same_objects(named: dict[str, Manifest]) -> None:
    image = kustomization()["images"][0]
    expected = json.loads(
        json.dumps(list(named.values())).replace(
            '"image": "context-registry"', f'"image": "{image["newName"]}:{image["newTag"]}"'
        )
    )
    assert rendered() == [one for one in expected if one["kind"] != "Namespace"]


def test_every_line_marked_as_yours_is_a_value_of_the_chart() -> None:
    mine = {
        "host": "chats.team.test",
        "image": "images.team.test/registry:2",
        "backups": {"path": "s3://ours", "endpoint": "https://s3.team.test"},
        "gateway": {"class": "cilium", "namespace": "cilium-system", "certificates": "our-ca"},
        "issuer": "198.51.100.7/32",
        "monitoring": False,
    }
    built = rendered(**mine)
    for manifest in built:
        check(manifest)
    text = json.dumps(built)
    for given in (*mine.values(), *mine["backups"].values(), *mine["gateway"].values()):  # type: ignore[attr-defined]
        assert not isinstance(given, str) or given in text, given
    for default in ("example.org", "s3://context-registry", '"envoy', "letsencrypt", "192.0.2"):
        assert default not in text
    assert "ServiceMonitor" not in {one["kind"] for one in built}
    marked = [line for name in kustomization()["resources"] for line in lines_marked_yours(name)]
    defaults = yaml.safe_load((FOLDER / "values.yaml").read_text(encoding="utf-8"))
    known = [value for given in defaults.values() for value in (given.values() if isinstance(given, dict) else [given])]
    assert not [line for line in marked if not any(str(value) in line for value in known)]


def lines_marked_yours(name: str) -> list[str]:
    return [line for line in (FOLDER / name).read_text(encoding="utf-8").splitlines() if "# yours" in line]


def test_the_server_runs_as_the_images_user_without_other_rights(named: dict[str, Manifest]) -> None:
    pod = named["Deployment server"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert "useradd --create-home --uid 10001 ctxr" in "\n".join(last_stage())
    assert (pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"]) == (True, 10001)
    assert pod["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "readOnlyRootFilesystem": True,
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    assert "VOLUME /var/lib/ctxr" in last_stage()
    assert [mount["mountPath"] for mount in container["volumeMounts"]] == ["/var/lib/ctxr", "/tmp"]


def test_the_server_is_reached_and_probed_at_its_port(named: dict[str, Manifest]) -> None:
    (container,) = named["Deployment server"]["spec"]["template"]["spec"]["containers"]
    assert container["ports"] == [{"name": "http", "containerPort": 8765}]
    probes = [container[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")]
    assert [(probe["path"], probe["port"]) for probe in probes] == [
        ("/health", "http"),
        ("/health", "http"),
        ("/ready", "http"),
    ]
    allowed = named["NetworkPolicy server"]["spec"]["ingress"][0]["ports"]
    assert allowed == [{"protocol": "TCP", "port": 8765}]
    (address,) = [one["value"] for one in container["env"] if one["name"] == "CTXR_PUBLIC_URL"]
    host = address.removeprefix("https://")
    assert {one["hostname"] for one in named["Gateway server"]["spec"]["listeners"]} == {host}
    for name, listener in (("server", "https"), ("server-http", "http")):
        route = named[f"HTTPRoute {name}"]["spec"]
        assert route["hostnames"] == [host]
        assert route["parentRefs"] == [{"name": "server", "sectionName": listener}]


def test_the_gateway_passes_tls_requests_to_the_server_without_a_timeout(named: dict[str, Manifest]) -> None:
    (plain, tls) = named["Gateway server"]["spec"]["listeners"]
    assert (plain["protocol"], tls["protocol"], tls["tls"]["mode"]) == ("HTTP", "HTTPS", "Terminate")
    (rule,) = named["HTTPRoute server"]["spec"]["rules"]
    (backend,) = rule["backendRefs"]
    service = named["Service server"]
    assert backend == {"name": service["metadata"]["name"], "port": service["spec"]["ports"][0]["port"]}
    assert rule["timeouts"] == {"request": "0s"}, "an event stream is a request that never ends"
    (rule,) = named["HTTPRoute server-http"]["spec"]["rules"]
    assert rule["filters"][0]["requestRedirect"]["scheme"] == "https"
    assert "backendRefs" not in rule


def test_prometheus_finds_the_service_under_the_name_in_the_alerts(named: dict[str, Manifest]) -> None:
    monitor, service = named["ServiceMonitor server"]["spec"], named["Service server"]
    labels = service["metadata"]["labels"]
    assert monitor["selector"]["matchLabels"].items() <= labels.items()
    alerts = (FOLDER.parent / "monitoring" / "alerts.yaml").read_text(encoding="utf-8")
    assert f'up{{job="{labels[monitor["jobLabel"]]}"}}' in alerts
    (endpoint,) = monitor["endpoints"]
    assert endpoint["port"] in [port["name"] for port in service["spec"]["ports"]]
    assert endpoint["authorization"] == {"credentials": {"name": "metrics-token", "key": "token"}}


def test_a_stopping_server_finishes_requests_under_way(named: dict[str, Manifest]) -> None:
    pod = named["Deployment server"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    program, seconds = container["lifecycle"]["preStop"]["exec"]["command"]
    assert (program, 0 < int(seconds) <= pod["terminationGracePeriodSeconds"] - 15) == ("sleep", True)


def test_the_server_reads_the_database_address_from_the_operators_secret(named: dict[str, Manifest]) -> None:
    (container,) = named["Deployment server"]["spec"]["template"]["spec"]["containers"]
    (given,) = [one["valueFrom"] for one in container["env"] if one["name"] == "CTXR_DATABASE_URL"]
    database = named["Cluster database"]
    assert given["secretKeyRef"] == {"name": f"{database['metadata']['name']}-app", "key": "uri"}
    assert database["spec"]["bootstrap"]["initdb"]["owner"] == "ctxr"
    assert named["ScheduledBackup nightly"]["spec"]["cluster"]["name"] == database["metadata"]["name"]
    backups = [one["parameters"]["barmanObjectName"] for one in database["spec"]["plugins"]]
    assert backups == [named["ObjectStore backups"]["metadata"]["name"]]


def test_an_acknowledged_write_is_on_two_disks(named: dict[str, Manifest]) -> None:
    spec = named["Cluster database"]["spec"]
    assert spec["instances"] == 3
    assert spec["postgresql"]["synchronous"] == {"method": "any", "number": 1, "dataDurability": "required"}


def test_only_named_clients_have_network_access(named: dict[str, Manifest]) -> None:
    assert named["NetworkPolicy nothing"]["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    for name in ("server", "database"):
        spec = named[f"NetworkPolicy {name}"]["spec"]
        assert all(rule["from"] and rule["ports"] for rule in spec["ingress"])
