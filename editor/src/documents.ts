/** Conversations as read-only documents, shown as plain text: nothing in them is run or loaded. */

import * as vscode from "vscode";
import type { Api, Channel } from "./api";
import { asDocument, oneLine, titleOf } from "./text";

export const SCHEME = "context-registry";
const MAX_MESSAGES = 1000;

export class Documents implements vscode.TextDocumentContentProvider {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;

  constructor(private readonly api: () => Promise<Api>) {}

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const api = await this.api();
    const name = uri.query;
    const [channel, messages] = await Promise.all([api.channel(name), api.latest(name, MAX_MESSAGES)]);
    return asDocument(channel, messages, api.page(name), vscode.env.language);
  }

  async open(channel: Channel): Promise<void> {
    const uri = uriOf(channel);
    this.changed.fire(uri);
    const document = await vscode.workspace.openTextDocument(uri);
    await vscode.languages.setTextDocumentLanguage(document, "markdown");
    await vscode.window.showTextDocument(document, { preview: true });
  }

  /** Reload the channel's document if it is open. */
  reload(name: string): void {
    for (const { uri } of vscode.workspace.textDocuments) {
      if (uri.scheme === SCHEME && uri.query === name) this.changed.fire(uri);
    }
  }
}

function uriOf(channel: Channel): vscode.Uri {
  const title = oneLine(titleOf(channel), 60).replace(/[/\\?%*:|"<>#]/g, " ").trim() || "conversation";
  return vscode.Uri.from({ scheme: SCHEME, path: `/${title}.md`, query: channel.channel });
}
