"""Checks of compose.yaml and the Dockerfile that need no docker."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.image import last_stage

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """The content of compose.yaml."""
    content: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
    return content


def test_the_server_is_reachable_from_this_machine_only(compose: dict[str, Any]) -> None:
    assert compose["services"]["server"]["ports"] == ["127.0.0.1:8765:8765"]
    assert compose["services"]["server"]["environment"]["CTXR_HOST"] == "0.0.0.0"


def test_postgresql_is_not_published(compose: dict[str, Any]) -> None:
    assert "ports" not in compose["services"]["postgres"]


def test_the_server_waits_until_postgresql_is_healthy(compose: dict[str, Any]) -> None:
    assert compose["services"]["server"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}


@pytest.mark.parametrize("service", ["postgres", "server"])
def test_a_service_has_a_health_check_and_a_volume(compose: dict[str, Any], service: str) -> None:
    settings = compose["services"][service]
    assert settings["healthcheck"]["test"]
    volume, _, _ = settings["volumes"][0].partition(":")
    assert volume in compose["volumes"]


def test_server_and_postgresql_use_the_same_password(compose: dict[str, Any]) -> None:
    password = compose["services"]["postgres"]["environment"]["POSTGRES_PASSWORD"]
    assert password.startswith("${CTXR_POSTGRES_PASSWORD:-")
    assert f":{password}@postgres:" in compose["services"]["server"]["environment"]["CTXR_DATABASE_URL"]


def test_the_server_can_write_to_its_folder_only(compose: dict[str, Any]) -> None:
    server = compose["services"]["server"]
    assert (server["read_only"], server["tmpfs"], server["cap_drop"]) == (True, ["/tmp"], ["ALL"])
    assert server["security_opt"] == ["no-new-privileges:true"]
    assert server["volumes"] == ["home:/var/lib/ctxr"]


def test_base_images_have_an_exact_version(compose: dict[str, Any]) -> None:
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    bases = re.findall(r"^(?:FROM|ARG PYTHON=) ?(\S+)", dockerfile, re.MULTILINE)
    assert set(bases[1:]) == {"${PYTHON}", "build"}
    for image in (bases[0], compose["services"]["postgres"]["image"]):
        assert re.fullmatch(r"[a-z]+:\d+(\.\d+)+-[a-z-]+", image), image


def test_the_image_contains_its_bill_of_materials() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert "cyclonedx-py environment" in dockerfile
    assert "COPY --from=materials /context-registry.cdx.json /usr/share/sbom/" in last_stage()
    assert "cyclonedx-bom==" in (ROOT / "requirements-sbom.lock").read_text(encoding="utf-8")


def test_the_image_does_not_run_as_root() -> None:
    assert "USER ctxr" in last_stage()
    assert any(line.startswith("HEALTHCHECK") for line in last_stage())
