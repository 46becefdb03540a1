/** The extension's commands: a function for each, and the table of their names. */

import * as vscode from "vscode";
import type { Api, Channel } from "./api";
import { intoChat } from "./chat";
import { type Documents, SCHEME } from "./documents";
import { pickConversation } from "./picking";
import { showingErrors } from "./problems";
import { HAS_PROGRAMS } from "./host";
import { resume, startServer } from "./resume";
import { SECTION, type Settings } from "./settings";
import { asContext, oneLine, titleOf } from "./text";
import { Conversations, type Row } from "./tree";

export interface Parts {
  settings: Settings;
  documents: Documents;
  /** Show the results of a search. */
  find(words: string): void;
  refresh(): void;
  reconnect(): void;
}

type Command = (parts: Parts, given: unknown) => Promise<void>;

export const COMMANDS: Readonly<Record<string, Command>> = {
  browse,
  search,
  recent,
  load,
  open: forConversation((channel, { documents }) => documents.open(channel)),
  insert: forConversation(async (channel, { settings }) => passExtract(await settings.api(), channel, settings, intoChat)),
  copy: forConversation(async (channel, { settings }) => passExtract(await settings.api(), channel, settings, copyToClipboard)),
  nickname: forConversation(nickname),
  tag: forConversation(tag),
  resume: forConversation((channel, { settings }) => resume(channel, settings.program)),
  openPage: forConversation(openPage),
  start: async ({ settings }) => startServer(settings.program),
  setToken,
  refresh: async ({ refresh }) => refresh(),
  more: async (_, given) => (given instanceof Conversations ? given.more() : undefined),
};

/** Register all commands with the editor. */
export function registerCommands(parts: Parts): vscode.Disposable {
  return vscode.Disposable.from(
    ...Object.entries(COMMANDS).map(([name, command]) =>
      vscode.commands.registerCommand(`${SECTION}.${name}`, (given: unknown) => showingErrors(() => command(parts, given))),
    ),
  );
}

/** Return a command for one conversation: that of the given row, of the open document, or one that the user picks. */
function forConversation(act: (channel: Channel, parts: Parts) => Promise<void>): Command {
  return async (parts, given) => {
    const channel = await chosenChannel(await parts.settings.api(), given);
    if (channel) await act(channel, parts);
  };
}

async function chosenChannel(api: Api, given: unknown): Promise<Channel | undefined> {
  if (given && typeof given === "object" && "channel" in given) return (given as Extract<Row, { channel: Channel }>).channel;
  const shown = vscode.window.activeTextEditor?.document.uri;
  if (shown?.scheme === SCHEME) return api.channel(shown.query);
  return pickConversation(api, vscode.l10n.t("Which conversation?"));
}

async function browse(parts: Parts): Promise<void> {
  const channel = await pickConversation(await parts.settings.api(), vscode.l10n.t("Find a conversation by words, nickname or client"));
  if (!channel) return;
  const steps: readonly (readonly [string, string])[] = [
    ["open", vscode.l10n.t("Open")],
    ["insert", vscode.l10n.t("Insert into Chat")],
    ["copy", vscode.l10n.t("Copy as Context")],
    ["nickname", vscode.l10n.t("Set Nickname")],
    ["tag", vscode.l10n.t("Set Tags")],
    ...(HAS_PROGRAMS ? [["resume", vscode.l10n.t("Continue in Another Client")] as const] : []),
    ["openPage", vscode.l10n.t("Open in the Dashboard")],
  ];
  const chosen = await vscode.window.showQuickPick(
    steps.map(([name, label]) => ({ label, name })),
    { placeHolder: titleOf(channel) },
  );
  if (chosen) await vscode.commands.executeCommand(`${SECTION}.${chosen.name}`, { channel });
}

async function search({ find }: Parts, given: unknown): Promise<void> {
  const asked = typeof given === "string" ? given : await vscode.window.showInputBox({ prompt: vscode.l10n.t("Words to search for in all conversations") });
  if (!asked?.trim()) return;
  find(asked.trim());
  await vscode.commands.executeCommand(`${SECTION}.found.focus`);
}

async function recent({ settings, documents }: Parts): Promise<void> {
  const channel = await pickConversation(await settings.api(), vscode.l10n.t("Recent conversations"));
  if (channel) await documents.open(channel);
}

async function load({ settings }: Parts, given: unknown): Promise<void> {
  const api = await settings.api();
  const name = typeof given === "string" ? given : await vscode.window.showInputBox({ prompt: vscode.l10n.t("Nickname of the conversation to load into the chat") });
  if (!name?.trim()) return;
  const channel = await findByNickname(api, name.trim());
  if (channel) await passExtract(api, channel, settings, intoChat);
}

/** Return the conversation with that nickname; if there is none, let the user pick one. */
async function findByNickname(api: Api, nickname: string): Promise<Channel | undefined> {
  const near = await api.channels({ q: nickname, limit: 50 });
  const exact = near.items.find((one) => one.nickname?.toLowerCase() === nickname.toLowerCase());
  return exact ?? pickConversation(api, vscode.l10n.t("No conversation has the nickname {0}. Which one do you mean?", oneLine(nickname, 60)));
}

async function passExtract(api: Api, channel: Channel, settings: Settings, take: (text: string) => Promise<void>): Promise<void> {
  const words = await vscode.window.showInputBox({
    title: titleOf(channel),
    prompt: vscode.l10n.t("What do you need from it? Leave empty for its state and last messages"),
  });
  if (words === undefined) return;
  await take(asContext(channel, await api.extract(channel.channel, words.trim(), settings.contextTokens)));
}

async function copyToClipboard(text: string): Promise<void> {
  await vscode.env.clipboard.writeText(text);
  void vscode.window.showInformationMessage(vscode.l10n.t("Copied as context. Paste it into the chat."));
}

async function nickname(channel: Channel, { settings, refresh }: Parts): Promise<void> {
  const prompt = vscode.l10n.t("Nickname of this conversation; leave empty to remove it");
  const name = await vscode.window.showInputBox({ prompt, value: channel.nickname ?? "", title: titleOf(channel) });
  if (name === undefined) return;
  await (await settings.api()).name(channel.channel, { nickname: name.trim() || null });
  refresh();
}

async function tag(channel: Channel, { settings, refresh }: Parts): Promise<void> {
  const prompt = vscode.l10n.t("Tags, separated by commas");
  const given = await vscode.window.showInputBox({ prompt, value: channel.tags.join(", "), title: titleOf(channel) });
  if (given === undefined) return;
  const tags = given.split(",").map((one) => one.trim()).filter(Boolean);
  await (await settings.api()).name(channel.channel, { tags });
  refresh();
}

async function openPage(channel: Channel, { settings }: Parts): Promise<void> {
  await vscode.env.openExternal(vscode.Uri.parse((await settings.api()).page(channel.channel), true));
}

async function setToken({ settings, reconnect }: Parts): Promise<void> {
  const prompt = vscode.l10n.t("Token for {0}; leave empty to delete it", settings.address);
  const token = await vscode.window.showInputBox({ prompt, password: true, ignoreFocusOut: true });
  if (token === undefined) return;
  await settings.storeToken(token.trim());
  reconnect();
}
