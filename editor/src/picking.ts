/** Let the user pick a conversation; the server searches while they type. */

import * as vscode from "vscode";
import type { Api, Channel, ChannelsAsked } from "./api";
import { problemText } from "./problems";
import { oneLine, titleOf, withoutIcons } from "./text";
import { ago } from "./times";

const SHOWN = 30;
const TYPING_MS = 250;

type Choice = vscode.QuickPickItem & { channel?: Channel };

/** Return the conversation that the user picks; undefined if none. */
export function pickConversation(api: Api, placeholder: string, within: ChannelsAsked = {}): Promise<Channel | undefined> {
  const pick = vscode.window.createQuickPick<Choice>();
  pick.placeholder = placeholder;
  let asked = 0;
  const load = async (words: string): Promise<void> => {
    const mine = ++asked;
    pick.busy = true;
    const found = await choices(api, { ...within, q: words || undefined, limit: SHOWN });
    if (mine !== asked) return; // the user has typed something else meanwhile
    pick.items = found;
    pick.busy = false;
  };
  let timer: ReturnType<typeof setTimeout> | undefined;
  pick.onDidChangeValue((words) => {
    clearTimeout(timer);
    timer = setTimeout(() => void load(words.trim()), TYPING_MS);
  });
  void load("");
  return new Promise((resolve) => {
    pick.onDidAccept(() => {
      resolve(pick.selectedItems[0]?.channel);
      pick.hide();
    });
    pick.onDidHide(() => {
      clearTimeout(timer);
      resolve(undefined);
      pick.dispose();
    });
    pick.show();
  });
}

async function choices(api: Api, asked: ChannelsAsked): Promise<Choice[]> {
  try {
    const page = await api.channels(asked);
    return page.items.map(choice);
  } catch (error) {
    return [{ label: withoutIcons(problemText(error)), alwaysShow: true }];
  }
}

function choice(channel: Channel): Choice {
  const tags = channel.tags.map((tag) => `#${oneLine(tag, 30)}`);
  const about = [...tags, channel.source, oneLine(channel.project_name, 40), ago(channel.updated_at, vscode.env.language)];
  return {
    label: withoutIcons(titleOf(channel)),
    description: withoutIcons(about.join(" · ")),
    detail: withoutIcons(oneLine(channel.first_message_preview ?? "")),
    alwaysShow: true, // the server has filtered: the editor must not filter again
    channel,
  };
}
