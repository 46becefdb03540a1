"""Test the example rules, dashboard and configuration for Prometheus: they use existing metrics."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from backoffice.health import Metrics

MONITORING = Path(__file__).parents[2] / "deploy" / "monitoring"


def expressions() -> Iterator[str]:
    dashboard = json.loads((MONITORING / "dashboard.json").read_text(encoding="utf-8"))
    for panel in dashboard["panels"]:
        yield from (target["expr"] for target in panel["targets"])
    rules: dict[str, Any] = yaml.safe_load((MONITORING / "alerts.yaml").read_text(encoding="utf-8"))
    yield from (rule["expr"] for group in rules["groups"] for rule in group["rules"])


def test_every_queried_metric_exists() -> None:
    metrics = Metrics().text().decode()
    rules = yaml.safe_load((MONITORING / "alerts.yaml").read_text(encoding="utf-8"))
    recorded = {rule["record"] for group in rules["groups"] for rule in group["rules"] if "record" in rule}
    there = set(re.findall(r"# TYPE (\w+)", metrics)) | {"up"} | recorded
    for expression in expressions():
        for name in re.findall(r"\b((?:ctxr|process)[_:][\w:]+)\b(?=[{\[])", expression):
            family = re.sub(r"_(bucket|count|sum)$", "", name)
            assert name in there or family in there, f"{name} in {expression}"


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is in Debian's package prometheus")
@pytest.mark.parametrize(
    "check",
    ["check rules alerts.yaml", "test rules alerts_test.yaml", "check config --syntax-only prometheus.yaml"],
)
def test_promtool_accepts_the_configuration(check: str) -> None:
    done = subprocess.run(["promtool", *check.split()], cwd=MONITORING, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
