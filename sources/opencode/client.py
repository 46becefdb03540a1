"""OpenCode, and Kilo Code, a fork of it. They run no commands at their events; a small plugin does."""

from __future__ import annotations

from pathlib import Path

from sources.base import Places
from sources.client import Client, Hooks, Room, ServerList

_PLUGIN = """\
// Context Registry's hooks, written by `ctxr install`, which writes it anew; `ctxr uninstall` removes it.
import { spawn } from "node:child_process"

const HOOK = @HOOK@

// What `ctxr hook` answers; nothing if it cannot be run or takes long.
const tell = (event, payload) =>
  new Promise((answer) => {
    const child = spawn(HOOK[0], [...HOOK.slice(1), event], { stdio: ["pipe", "pipe", "ignore"], timeout: 5000 })
    let said = ""
    child.stdout.on("data", (part) => (said += part))
    child.on("error", () => answer(""))
    child.on("close", () => answer(said.trim()))
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(payload))
  })

export const ContextRegistry = async ({ directory }) => {
  const notes = new Map()
  const subAgents = new Set()
  const ask = (id) => {
    const told = tell("session.start", { session_id: id, cwd: directory })
    notes.set(id, [...(notes.get(id) ?? []), told])
  }
  return {
    event: async ({ event }) => {
      if (event.type === "session.created") {
        const { id, parentID } = event.properties.info
        parentID ? subAgents.add(id) : ask(id)
      }
      if (event.type !== "session.idle") return
      await tell(event.type, { session_id: event.properties.sessionID, cwd: directory })
    },
    "chat.message": async ({ sessionID }, { message, parts }) => {
      const typed = parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text)
      if (subAgents.has(sessionID) || !typed.length) return
      const prompt = typed.join("\\n")
      const hint = await tell("chat.message", { session_id: sessionID, cwd: directory, prompt })
      const id = `${parts.at(-1).id}0` // the parts are put in the order of their ids
      if (hint) parts.push({ id, sessionID, messageID: message.id, type: "text", text: hint, synthetic: true })
    },
    "experimental.chat.system.transform": async (input, output) => {
      const id = input.sessionID
      if (!id || output.system.some((text) => text.includes("title generator"))) return // no chat
      const late = !(await notes.get(id)?.at(-1)) // on a busy machine the first answer may come too late
      if (late && (notes.get(id) ?? []).length < 2) ask(id)
      const note = await notes.get(id).at(-1)
      if (note) output.system.push(note)
    },
  }
}
"""


def _client(source: str, name: str) -> Client:
    """Return OpenCode or a fork of it: all that is its own has its name."""

    def settings(places: Places) -> Path:
        """Return the settings file, with the ending `.jsonc` if there is one."""
        file = places.folder("XDG_CONFIG_HOME", ".config") / source / f"{source}.json"
        with_comments = file.with_suffix(".jsonc")
        return with_comments if with_comments.exists() else file

    return Client(
        source=source,
        name=name,
        room=Room(40_000, in_bytes=True),
        history=f"`~/.local/share/{source}`; `XDG_DATA_HOME` (the folder above) or `CTXR_{source.upper()}_DIR`",
        folder=lambda places: settings(places).parent,
        servers=ServerList(settings, key="mcp", entry={"type": "local", "enabled": True}, is_one_command=True),
        hooks=Hooks(
            events=("session.start", "chat.message", "session.idle"),
            file="plugins/context-registry.js",
            format="plugin",
            plugin=_PLUGIN,
        ),
    )


OPENCODE = _client("opencode", "OpenCode")
KILO = _client("kilo", "Kilo Code")
