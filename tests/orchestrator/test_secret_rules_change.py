"""Test a change of the rules for secrets: the registry is scanned again, and the user is told what is unmasked."""

import json
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from orchestrator.opening import open_orchestrator
from orchestrator.service import Orchestrator
from registry.ingest.redact_existing import SCAN_FILE, read_last_scan, redact, rescan_if_rules_changed
from registry.settings import read_settings
from registry.text.privacy import masking
from registry.text.privacy.rules import OWN_RULES, load_rules, use_own_rules

pytestmark = pytest.mark.anyio
BADGE = "acme_4f9k2m7q1w8e3r6t"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    use_own_rules(tmp_path)
    yield tmp_path
    use_own_rules(tmp_path / "none")


async def test_a_new_rule_finds_secrets_stored_before(orchestrator: Orchestrator, home: Path) -> None:
    messages = [{"role": "user", "text": f"my badge is {BADGE}"}]
    await orchestrator.run({"operation": "conversation_log", "channel": "c", "messages": messages})
    await rescan_if_rules_changed(orchestrator.registry, home)
    assert read_last_scan(home)["total"] == 0
    (home / OWN_RULES).write_text("keys = [['acme-badge', 'acme_', '[a-z0-9]{16,}']]")
    masking._CLEAN.clear()
    use_own_rules(home)
    await rescan_if_rules_changed(orchestrator.registry, home)
    assert json.loads((home / SCAN_FILE).read_text())["secrets"] == {
        "acme-badge": 2
    }  # in the message and in its preview
    held = await redact(orchestrator.registry, lambda _done, _total: None)
    assert held.kinds["acme-badge"] >= 1
    text = (await orchestrator.registry.get_conversations("c"))[0]["text"]
    assert text.startswith("my badge is [secret:acme-badge:")


def test_a_wrong_rule_is_named_and_the_built_in_rules_stay(home: Path) -> None:
    (home / OWN_RULES).write_text("keys = [['acme-badge', 'acme_', '[a-z']]")
    use_own_rules(home)
    assert OWN_RULES in load_rules().problem
    assert len(load_rules().all) > 100


async def test_a_server_scans_the_registry_when_the_rules_change(empty_home: Path) -> None:
    settings = read_settings()
    async with open_orchestrator(settings) as orchestrator, orchestrator.run_background_work():
        with anyio.fail_after(60):
            while not read_last_scan(settings.home):  # noqa: ASYNC110 - only a file says so
                await anyio.sleep(0.01)
    assert read_last_scan(settings.home)["rules"] == load_rules().digest
