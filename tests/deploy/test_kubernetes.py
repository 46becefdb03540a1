"""The manifests for Kubernetes: valid by the published schemas, and at one with the image and with each other."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml

from tests.image import last_stage

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"
SCHEMAS: dict[str, Any] = json.loads((Path(__file__).parent / "cloudnative_pg.json").read_text(encoding="utf-8"))
"""Of what is no part of Kubernetes itself."""
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
    """All manifests, by kind and name."""
    return {name_of(one): one for one in manifests()}


def check(manifest: Manifest) -> None:
    """An exception unless a schema allows it; nothing that no schema knows."""
    own = SCHEMAS.get(f"{manifest['apiVersion']}/{manifest['kind']}")
    if own:
        jsonschema.validate(manifest, own)
    else:
        kubernetes_validate.validate(manifest, "1.33", strict=True)


def test_a_manifest_is_valid() -> None:
    for manifest in list(manifests()):
        check(manifest)


@pytest.mark.parametrize(
    ("name", "path"), [("Deployment server", ("spec", "replica")), ("Cluster database", ("spec", "instance"))]
)
def test_a_misspelt_field_would_be_found(named: dict[str, Manifest], name: str, path: tuple[str, str]) -> None:
    wrong = json.loads(json.dumps(named[name]))
    wrong[path[0]][path[1]] = wrong[path[0]].pop(f"{path[1]}s")
    with pytest.raises((jsonschema.ValidationError, kubernetes_validate.ValidationError)):
        check(wrong)


def test_every_file_is_applied() -> None:
    listed = {*kustomization()["resources"], "kustomization.yaml"}
    assert listed == {file.name for file in FOLDER.iterdir()}


@pytest.mark.skipif(not shutil.which("kubectl"), reason="no kubectl")
def test_kubectl_puts_them_together() -> None:
    done = subprocess.run(["kubectl", "kustomize", FOLDER], capture_output=True, text=True, check=True)
    built = list(yaml.safe_load_all(done.stdout))
    assert {one["metadata"].get("namespace", "context-registry") for one in built} == {"context-registry"}
    for manifest in built:
        check(manifest)


def test_the_server_runs_as_the_images_user_and_may_do_nothing_else(named: dict[str, Manifest]) -> None:
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


def test_the_server_is_reached_and_asked_at_the_port_it_listens_on(named: dict[str, Manifest]) -> None:
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
    assert {rule["host"] for rule in named["Ingress server"]["spec"]["rules"]} == {address.removeprefix("https://")}


def test_a_server_that_goes_still_answers_while_requests_are_on_their_way(named: dict[str, Manifest]) -> None:
    pod = named["Deployment server"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    program, seconds = container["lifecycle"]["preStop"]["exec"]["command"]
    assert (program, 0 < int(seconds) <= pod["terminationGracePeriodSeconds"] - 15) == ("sleep", True)


def test_the_server_reads_the_databases_address_from_the_operators_secret(named: dict[str, Manifest]) -> None:
    (container,) = named["Deployment server"]["spec"]["template"]["spec"]["containers"]
    (given,) = [one["valueFrom"] for one in container["env"] if one["name"] == "CTXR_DATABASE_URL"]
    database = named["Cluster database"]
    assert given["secretKeyRef"] == {"name": f"{database['metadata']['name']}-app", "key": "uri"}
    assert database["spec"]["bootstrap"]["initdb"]["owner"] == "ctxr"
    assert named["ScheduledBackup nightly"]["spec"]["cluster"]["name"] == database["metadata"]["name"]
    backups = [one["parameters"]["barmanObjectName"] for one in database["spec"]["plugins"]]
    assert backups == [named["ObjectStore backups"]["metadata"]["name"]]


def test_what_is_acknowledged_is_on_two_disks(named: dict[str, Manifest]) -> None:
    spec = named["Cluster database"]["spec"]
    assert spec["instances"] == 3
    assert spec["postgresql"]["synchronous"] == {"method": "any", "number": 1, "dataDurability": "required"}


def test_nobody_is_let_through_who_is_not_named(named: dict[str, Manifest]) -> None:
    assert named["NetworkPolicy nothing"]["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    for name in ("server", "database"):
        spec = named[f"NetworkPolicy {name}"]["spec"]
        assert all(rule["from"] and rule["ports"] for rule in spec["ingress"])
