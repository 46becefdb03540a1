/** The sidebar's lists: conversations, a page at a time. */

import * as vscode from "vscode";
import type { Api, Channel, ChannelsAsked } from "./api";
import { isUnreachable, problemText } from "./problems";
import { oneLine, titleOf } from "./text";
import { ago, dayOf } from "./times";

const PAGE = 50;

/** A row: a conversation, a day, a link to the next page, or a note why the list is empty. */
export type Row = { channel: Channel } | { day: string; channels: Channel[] } | { cursor: string } | { note: string };

export class Conversations implements vscode.TreeDataProvider<Row> {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.changed.event;
  private pages = 1;

  /** `asked` returns the query, or undefined to show none, for example without an open folder. */
  constructor(
    private readonly api: () => Promise<Api>,
    private readonly asked: () => ChannelsAsked | undefined,
    private readonly ifEmpty: () => string,
  ) {}

  /** Reload from the server; the old rows stay until it has answered. */
  refresh(): void {
    this.changed.fire();
  }

  /** Load one more page. */
  more(): void {
    this.pages += 1;
    this.refresh();
  }

  getTreeItem(row: Row): vscode.TreeItem {
    if ("channel" in row) return conversationItem(row.channel);
    if ("cursor" in row) return moreItem(this);
    if ("day" in row) return new vscode.TreeItem(row.day, vscode.TreeItemCollapsibleState.Expanded);
    const item = new vscode.TreeItem(row.note);
    item.tooltip = row.note;
    item.contextValue = "note";
    return item;
  }

  async getChildren(row?: Row): Promise<Row[]> {
    if (row) return "day" in row ? row.channels.map((channel) => ({ channel })) : [];
    const asked = this.asked();
    if (!asked) return [{ note: this.ifEmpty() }];
    try {
      return await this.rows(asked);
    } catch (error) {
      return isUnreachable(error) ? [] : [{ note: problemText(error) }]; // package.json's welcome text is shown in an empty list
    }
  }

  private async rows(asked: ChannelsAsked): Promise<Row[]> {
    const api = await this.api();
    const page = await api.channels({ ...asked, limit: Math.min(PAGE * this.pages, 1000) });
    const rows: Row[] = asked.q ? page.items.map((channel) => ({ channel })) : byDay(page.items);
    if (!rows.length) return [{ note: this.ifEmpty() }];
    return page.next_cursor ? [...rows, { cursor: page.next_cursor }] : rows;
  }
}

/** Group conversations by day, the latest first. */
function byDay(channels: readonly Channel[]): Row[] {
  const days = new Map<string, Channel[]>();
  for (const channel of channels) {
    const day = dayOf(channel.updated_at, vscode.env.language);
    days.set(day, [...(days.get(day) ?? []), channel]);
  }
  return [...days].map(([day, some]) => ({ day, channels: some }));
}

function conversationItem(channel: Channel): vscode.TreeItem {
  const item = new vscode.TreeItem(titleOf(channel));
  const tags = channel.tags.map((tag) => `#${oneLine(tag, 30)}`);
  const passage = oneLine((channel.passages?.[0]?.snippet ?? "").replaceAll("**", ""), 300);
  const project = channel.project_path ? [oneLine(channel.project_name, 40)] : [];
  const about = [...tags, ...project, channel.source, ago(channel.updated_at, vscode.env.language)];
  item.description = passage || about.join(" · ");
  item.tooltip = [
    titleOf(channel),
    passage ? about.join(" · ") : oneLine(channel.first_message_preview ?? "", 300),
    oneLine(channel.project_path ?? channel.project_name, 300),
    vscode.l10n.t("{0} messages, last {1}", channel.message_count, new Date(channel.updated_at).toLocaleString()),
  ].join("\n");
  item.iconPath = new vscode.ThemeIcon(channel.nickname ? "bookmark" : "comment-discussion");
  item.contextValue = "conversation";
  item.command = { command: "contextRegistry.open", title: vscode.l10n.t("Open"), arguments: [{ channel }] };
  return item;
}

function moreItem(list: Conversations): vscode.TreeItem {
  const item = new vscode.TreeItem(vscode.l10n.t("Show more…"));
  item.iconPath = new vscode.ThemeIcon("ellipsis");
  item.command = { command: "contextRegistry.more", title: vscode.l10n.t("Show more…"), arguments: [list] };
  return item;
}
