// Context Registry's hooks, written by `ctxr install`, which writes it anew; `ctxr uninstall` removes it.
import { spawn } from "node:child_process"

const HOOK = @HOOK@

// Run `ctxr hook` and return its output; empty if it fails or takes over 5 s.
const runHook = (event, payload) =>
  new Promise((answer) => {
    const child = spawn(HOOK[0], [...HOOK.slice(1), event], { stdio: ["pipe", "pipe", "ignore"], timeout: 5000 })
    let output = ""
    child.stdout.on("data", (part) => (output += part))
    child.on("error", () => answer(""))
    child.on("close", () => answer(output.trim()))
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(payload))
  })

export const ContextRegistry = async ({ directory }) => {
  const notes = new Map()
  const recaps = new Map() // by chat: what its latest compaction dropped
  const hints = new Map() // by the message that they are for
  const subAgents = new Set()
  const ask = (id) => {
    const note = runHook("session.start", { session_id: id, cwd: directory })
    notes.set(id, [...(notes.get(id) ?? []), note])
  }
  return {
    event: async ({ event }) => {
      if (event.type === "session.created") {
        const { id, parentID } = event.properties.info
        parentID ? subAgents.add(id) : ask(id)
      }
      if (event.type === "session.compacted") {
        const id = event.properties.sessionID
        recaps.set(id, runHook("session.start", { session_id: id, cwd: directory, source: "compact" }))
      }
      if (event.type !== "session.idle") return
      await runHook(event.type, { session_id: event.properties.sessionID, cwd: directory })
    },
    "chat.message": async ({ sessionID }, { message, parts }) => {
      const typed = parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text)
      if (subAgents.has(sessionID) || !typed.length) return
      const prompt = typed.join("\n")
      const hint = await runHook("chat.message", { session_id: sessionID, cwd: directory, prompt })
      if (hint) hints.set(message.id, hint)
    },
    // The stored message stays as it is, because the client also asks for a title with its text.
    "experimental.chat.messages.transform": async (_, { messages }) => {
      messages.forEach(({ info, parts }, index) => {
        const text = hints.get(info.id)
        if (!text || parts.some((part) => part.text === text)) return
        const about = { id: `${parts.at(-1).id}0`, sessionID: info.sessionID, messageID: info.id }
        messages[index] = { info, parts: [...parts, { ...about, type: "text", text, synthetic: true }] }
      })
    },
    "experimental.chat.system.transform": async (input, output) => {
      const id = input.sessionID
      if (!id || output.system.some((text) => text.includes("title generator"))) return // no chat
      const late = !(await notes.get(id)?.at(-1)) // on a busy machine the first answer may come too late
      if (late && (notes.get(id) ?? []).length < 2) ask(id)
      const note = await notes.get(id).at(-1)
      const recap = await recaps.get(id)
      output.system.push(...[note, recap].filter(Boolean))
    },
  }
}
