"""What `docker compose up` promises, read from the file: there need be no docker to check it."""

from pathlib import Path
from typing import Any

import pytest
import yaml

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
    described = compose["services"][service]
    assert described["healthcheck"]["test"]
    volume, _, _ = described["volumes"][0].partition(":")
    assert volume in compose["volumes"]


def test_both_sides_read_the_same_password(compose: dict[str, Any]) -> None:
    password = compose["services"]["postgres"]["environment"]["POSTGRES_PASSWORD"]
    assert password.startswith("${CTXR_POSTGRES_PASSWORD:-")
    assert f":{password}@postgres:" in compose["services"]["server"]["environment"]["CTXR_DATABASE_URL"]


def test_the_image_does_not_run_as_root() -> None:
    last_stage = (ROOT / "Dockerfile").read_text(encoding="utf-8").rpartition("\nFROM ")[2].splitlines()
    assert "USER ctxr" in last_stage
    assert any(line.startswith("HEALTHCHECK") for line in last_stage)
