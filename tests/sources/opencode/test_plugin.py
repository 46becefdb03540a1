"""OpenCode's plugin passes the hook's answer to the model. It runs in Node, with a program instead of `ctxr hook`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sources.clients import OPENCODE

HOOK = "import json, sys; print('A hint for', sys.argv[1], json.dumps(json.load(sys.stdin), sort_keys=True))"
RUN = """
import { ContextRegistry } from "./plugin.mjs"
const plugin = await ContextRegistry({ directory: "/home/me/shop" })
const said = []
for (const [id, parentID, texts] of JSON.parse(process.argv[2])) {
  await plugin.event({ event: { type: "session.created", properties: { info: { id, parentID } } } })
  const parts = texts.map(([text, synthetic], at) => ({ id: `prt_${at}`, type: "text", text, synthetic }))
  await plugin["chat.message"]({ sessionID: id }, { message: { id: `msg_${id}` }, parts })
  const stored = { info: { id: `msg_${id}`, sessionID: id }, parts }
  const messages = [stored]
  await plugin["experimental.chat.messages.transform"]({}, { messages })
  said.push([stored.parts.length - texts.length, messages[0].parts.slice(texts.length)])
}
console.log(JSON.stringify(said))
"""


COMPACT = """
import { ContextRegistry } from "./plugin.mjs"
const plugin = await ContextRegistry({ directory: "/home/me/shop" })
const told = async () => {
  const output = { system: ["You are an agent."] }
  await plugin["experimental.chat.system.transform"]({ sessionID: "ses_1" }, output)
  return output.system
}
await plugin.event({ event: { type: "session.created", properties: { info: { id: "ses_1" } } } })
const before = await told()
await plugin.event({ event: { type: "session.compacted", properties: { sessionID: "ses_1" } } })
console.log(JSON.stringify([before, await told()]))
"""

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="no node")


def run_plugin(folder: Path, script: str, *words: str) -> Any:
    """Run a script with the plugin, and return what it prints."""
    assert OPENCODE.hooks
    assert OPENCODE.hooks.plugin
    command = json.dumps([sys.executable, "-c", HOOK])
    plugin = OPENCODE.hooks.plugin.read_text(encoding="utf-8")
    (folder / "plugin.mjs").write_text(plugin.replace("@HOOK@", command), encoding="utf-8")
    (folder / "run.mjs").write_text(script, encoding="utf-8")
    return json.loads(subprocess.run(["node", "run.mjs", *words], cwd=folder, capture_output=True, check=True).stdout)


@needs_node
def test_after_a_compaction_the_model_is_told_what_the_summary_left_out_beside_the_start_note(tmp_path: Path) -> None:
    start = {"cwd": "/home/me/shop", "session_id": "ses_1"}
    notes = [f"A hint for session.start {json.dumps(one)}" for one in (start, {**start, "source": "compact"})]
    assert run_plugin(tmp_path, COMPACT) == [["You are an agent.", notes[0]], ["You are an agent.", *notes]]


@needs_node
def test_a_hint_follows_a_users_prompt_in_the_chat_only_and_not_a_sub_agents(tmp_path: Path) -> None:
    chats: list[Any] = [
        ["ses_1", None, [["fix the login", False], ["a file that was read", True], ["and the logout", False]]],
        ["ses_2", "ses_1", [["look for the login", False]]],
        ["ses_3", None, [["a file that was read", True]]],
    ]
    first, *others = run_plugin(tmp_path, RUN, json.dumps(chats))
    payload = {"cwd": "/home/me/shop", "prompt": "fix the login\nand the logout", "session_id": "ses_1"}
    hint = f"A hint for chat.message {json.dumps(payload, sort_keys=True)}"
    about = {"id": "prt_20", "sessionID": "ses_1", "messageID": "msg_ses_1", "type": "text", "synthetic": True}
    assert first == [0, [{**about, "text": hint}]]  # the stored message, of which a title is made, stays as it was
    assert others == [[0, []], [0, []]]
