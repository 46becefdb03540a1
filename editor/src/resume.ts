/** Run `ctxr` in a terminal: resume in another client, or start the server. Only if the editor can start programs. */

import * as vscode from "vscode";
import type { Channel } from "./api";

export const CLIENTS = ["claude-code", "codex", "gemini-cli", "opencode", "copilot-cli"] as const;

/** Return the program's arguments. They are passed without a shell; `--` keeps the session from being an option. */
export function resumeArguments(session: string, client: string): string[] {
  return ["resume", "--in", client, "--run", "--", session];
}

export async function resume(channel: Channel, program: string): Promise<void> {
  const client = await vscode.window.showQuickPick([...CLIENTS], { placeHolder: vscode.l10n.t("Continue in which client?") });
  if (!client) return;
  const terminal = vscode.window.createTerminal({
    name: `ctxr resume · ${client}`,
    shellPath: program,
    shellArgs: resumeArguments(channel.session_id, client),
  });
  terminal.show();
}

/** Start the server; the extension connects to it as soon as it answers. */
export function startServer(program: string): void {
  vscode.window.createTerminal({ name: "ctxr serve", shellPath: program, shellArgs: ["serve"] }).show();
}
