/** Put a text into the input of the editor's chat, if the editor allows that, and always into the clipboard. */

import * as vscode from "vscode";

interface ChatInput {
  command: string;
  /** Returns the command's argument that fills the input. If undefined, the command only opens the chat. */
  fillWith?: (text: string) => unknown;
}

const VSCODE: readonly ChatInput[] = [
  { command: "workbench.action.chat.open", fillWith: (query) => ({ query, isPartialQuery: true }) },
];
const CURSOR: readonly ChatInput[] = [{ command: "composer.newAgentChat" }, { command: "aichat.newchataction" }];

/** Put a text into the chat without sending it; tell the user if they must paste it. */
export async function intoChat(text: string): Promise<void> {
  await vscode.env.clipboard.writeText(text);
  const known = new Set(await vscode.commands.getCommands(true));
  const inputs = vscode.env.appName.includes("Cursor") ? CURSOR : VSCODE;
  const input = inputs.find(({ command }) => known.has(command));
  if (!input) {
    void vscode.window.showInformationMessage(vscode.l10n.t("Copied as context. Paste it into the chat."));
    return;
  }
  await vscode.commands.executeCommand(input.command, ...(input.fillWith ? [input.fillWith(text)] : []));
  void vscode.window.showInformationMessage(
    input.fillWith
      ? vscode.l10n.t("Inserted into the chat, not sent. If it is missing there, paste it from the clipboard.")
      : vscode.l10n.t("Copied as context. Paste it into the chat."),
  );
}
