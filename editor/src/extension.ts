/** Assemble the extension: views, commands, status bar, and the event stream that updates them. */

import * as vscode from "vscode";
import type { ChannelsAsked, Message } from "./api";
import { ApiError } from "./api";
import { registerCommands } from "./commands";
import { Documents, SCHEME } from "./documents";
import { listen } from "./live";
import { HAS_PROGRAMS } from "./host";
import { isUnreachable } from "./problems";
import { SECTION, Settings } from "./settings";
import { Status } from "./status";
import { Conversations } from "./tree";

/** Lists are reloaded after this time without an event, because messages are stored in bursts. */
const QUIET_MS = 1_000;

export function activate(context: vscode.ExtensionContext): void {
  const settings = new Settings(context.secrets);
  const api = () => settings.api();
  const documents = new Documents(api);
  const status = new Status(() => settings.address);
  let words = "";
  const here = new Conversations(api, projectHere, () =>
    projectHere() ? vscode.l10n.t("No conversations in this workspace yet") : vscode.l10n.t("No folder is open"),
  );
  const all = new Conversations(api, () => ({}), () => vscode.l10n.t("No conversations yet"));
  const found = new Conversations(
    api,
    () => (words ? { q: words } : undefined),
    () => (words ? vscode.l10n.t("Nothing found for {0}", words) : vscode.l10n.t("Search with the magnifying glass above")),
  );
  const lists = { here, all, found };
  const views = Object.entries(lists).map(([name, treeDataProvider]) =>
    vscode.window.createTreeView(`${SECTION}.${name}`, { treeDataProvider }),
  );
  const refresh = (): void => Object.values(lists).forEach((list) => list.refresh());
  const find = (given: string): void => {
    words = given;
    for (const view of views.slice(2)) view.description = words;
    found.refresh();
  };

  let stop = new AbortController();
  let quiet: ReturnType<typeof setTimeout> | undefined;
  const onStored = (message: Message): void => {
    status.storedAt(message.received_at ?? message.timestamp);
    clearTimeout(quiet);
    quiet = setTimeout(() => {
      here.refresh();
      all.refresh();
      documents.reload(message.channel);
    }, QUIET_MS);
  };
  const reconnect = (): void => {
    stop.abort();
    stop = new AbortController();
    void connect(settings, status, onStored, refresh, stop.signal);
  };

  void vscode.commands.executeCommand("setContext", `${SECTION}.canResume`, HAS_PROGRAMS);
  context.subscriptions.push(
    status,
    ...views,
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, documents),
    registerCommands({ settings, documents, find, refresh, reconnect }),
    vscode.workspace.onDidChangeWorkspaceFolders(() => here.refresh()),
    vscode.workspace.onDidChangeConfiguration((change) => change.affectsConfiguration(`${SECTION}.serverUrl`) && reconnect()),
    { dispose: () => stop.abort() },
  );
  reconnect();
}

/** Listen to the configured server; on each (re)connection, reload everything that is shown. */
async function connect(
  settings: Settings,
  status: Status,
  onStored: (message: Message) => void,
  refresh: () => void,
  signal: AbortSignal,
): Promise<void> {
  const onGone = (error: ApiError): void => {
    setUnreachable(isUnreachable(error));
    status.disconnected(error);
  };
  try {
    const api = await settings.api();
    const onOpen = async (): Promise<void> => {
      setUnreachable(false);
      status.connected();
      refresh();
      const newest = await api.newest().catch(() => undefined);
      if (newest) status.storedAt(newest.received_at ?? newest.timestamp);
    };
    await listen(api, { onOpen: () => void onOpen(), onStored, onGone }, signal);
  } catch (error) {
    onGone(error instanceof ApiError ? error : new ApiError("INTERNAL_ERROR", String(error)));
    refresh();
  }
}

/** Tell package.json's welcome texts, shown in empty lists, whether the server is unreachable. */
function setUnreachable(unreachable: boolean): void {
  void vscode.commands.executeCommand("setContext", `${SECTION}.isUnreachable`, unreachable);
}

/** Return the query for conversations of the open folder: by its path, or by its name if it is not on a disk. */
function projectHere(): ChannelsAsked | undefined {
  const folder = vscode.workspace.workspaceFolders?.[0];
  if (!folder) return undefined;
  return { project: folder.uri.scheme === "file" ? folder.uri.fsPath : folder.name };
}
