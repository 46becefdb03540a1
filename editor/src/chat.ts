/** Put a text into the input of the editor's own chat, if the editor allows that, and always into the clipboard. */

import * as vscode from "vscode";

interface ChatInput {
  command: string;
  /** Returns the command's argument that fills the input; undefined: the chat only opens, and the user pastes. */
  taking?: (text: string) => unknown;
}

const VSCODE: readonly ChatInput[] = [
  { command: "workbench.action.chat.open", taking: (query) => ({ query, isPartialQuery: true }) },
];
const CURSOR: readonly ChatInput[] = [{ command: "composer.newAgentChat" }, { command: "aichat.newchataction" }];

/** Put a text into the chat without sending it, and tell the user whether they must paste it. */
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
