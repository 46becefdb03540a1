/** The editor's own chat: a text put into its input, where the editor lets us; in any case into the clipboard. */

import * as vscode from "vscode";

interface ChatInput {
  command: string;
  /** What the command takes to have the text in its input; undefined: it only opens, and the user pastes. */
  taking?: (text: string) => unknown;
}

const VSCODE: readonly ChatInput[] = [
  { command: "workbench.action.chat.open", taking: (query) => ({ query, isPartialQuery: true }) },
];
const CURSOR: readonly ChatInput[] = [{ command: "composer.newAgentChat" }, { command: "aichat.newchataction" }];

/** Put a text into the chat, not sent; says how far that went. */
export async function intoChat(text: string): Promise<void> {
  await vscode.env.clipboard.writeText(text);
  const known = new Set(await vscode.commands.getCommands(true));
  const inputs = vscode.env.appName.includes("Cursor") ? CURSOR : VSCODE;
  const input = inputs.find(({ command }) => known.has(command));
  if (!input) {
    void vscode.window.showInformationMessage(vscode.l10n.t("Copied as context. Paste it into the chat."));
    return;
  }
  await vscode.commands.executeCommand(input.command, ...(input.taking ? [input.taking(text)] : []));
  void vscode.window.showInformationMessage(
    input.taking
      ? vscode.l10n.t("Handed to the chat, not sent. If it is not there, paste it: it is in the clipboard.")
      : vscode.l10n.t("Copied as context. Paste it into the chat."),
  );
}
