import assert from "node:assert/strict";
import { test } from "node:test";
import { Api } from "../src/api";
import { Conversations, type Row } from "../src/tree";
import { CHANNEL, json, served } from "./registry";

function list(address: string, asked: Record<string, string> | undefined = {}): Conversations {
  return new Conversations(async () => new Api(address), () => asked, () => "nothing here");
}

const labels = (conversations: Conversations, rows: Row[]) => rows.map((row) => conversations.getTreeItem(row).label);

test("each conversation is a row with its title, tags, project and client", () =>
  served((_, response) => json(response, { items: [CHANNEL, { ...CHANNEL, nickname: "auth\ndesign" }], total: 2, next_cursor: null }), async (address) => {
    const conversations = list(address);
    const days = await conversations.getChildren();
    assert.match(labels(conversations, days).join(), /^\w{3}, Oct 2\d, 2025$/);
    const rows = await conversations.getChildren(days[0]);
    assert.deepEqual(labels(conversations, rows), ["Refresh tokens in httpOnly cookies", "auth design"]);
    const item = conversations.getTreeItem(rows[0] as Row);
    assert.match(String(item.description), /^#auth · shop · cursor · /);
    assert.equal(typeof item.tooltip, "string");
    assert.match(String(item.tooltip), /\/home\/me\/shop\n2 messages/);
    assert.equal(item.command?.command, "contextRegistry.open");
  }));

test("search results stay in their order, best first, with the matching passage", () =>
  served((_, response) => json(response, { items: [{ ...CHANNEL, passages: [{ snippet: "in **httpOnly**\ncookies" }] }], total: 1, next_cursor: null }), async (address) => {
    const conversations = list(address, { q: "httpOnly" });
    const [row] = await conversations.getChildren();
    assert.equal(conversations.getTreeItem(row as Row).description, "in httpOnly cookies");
  }));

test("a long list ends in a row that shows more", () =>
  served((_, response) => json(response, { items: [CHANNEL], total: 60, next_cursor: "next" }), async (address, asked) => {
    const conversations = list(address);
    const rows = await conversations.getChildren();
    assert.equal(labels(conversations, rows).at(-1), "Show more…");
    conversations.more();
    await conversations.getChildren();
    assert.deepEqual(asked.map((one) => one.url), ["/bo/channels?limit=50", "/bo/channels?limit=100"]);
  }));

test("a row explains an empty list or a missing folder; without a server the list is empty", async () => {
  await served((_, response) => json(response, { items: [], total: 0, next_cursor: null }), async (address, asked) => {
    assert.deepEqual(await list(address).getChildren(), [{ note: "nothing here" }]);
    const nowhere = new Conversations(async () => new Api(address), () => undefined, () => "no folder");
    assert.deepEqual(await nowhere.getChildren(), [{ note: "no folder" }]);
    assert.equal(asked.length, 1);
  });
  assert.deepEqual(await list("http://127.0.0.1:9").getChildren(), []);
});
