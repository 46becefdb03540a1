import assert from "node:assert/strict";
import { test } from "node:test";
import { Api, ApiError, EventLines, addressProblem } from "../src/api";
import { listen } from "../src/live";
import { CHANNEL, MESSAGES, json, served } from "./registry";

test("a request for conversations carries the given filters and the token", () =>
  served((_, response) => json(response, { items: [CHANNEL], total: 1, next_cursor: null }), async (address, asked) => {
    const page = await new Api(`${address}/`, "ctxr_secret").channels({ project: "/home/me/shop", q: "쿠키 & jwt", limit: 5, tag: undefined });
    assert.deepEqual(page.items, [CHANNEL]);
    assert.equal(asked[0]?.headers.authorization, "Bearer ctxr_secret");
    const url = new URL(asked[0]?.url ?? "", address);
    assert.equal(url.pathname, "/bo/channels");
    assert.deepEqual(Object.fromEntries(url.searchParams), { project: "/home/me/shop", q: "쿠키 & jwt", limit: "5" });
  }));

test("a channel's name is escaped in URLs, and the latest messages come oldest first", () =>
  served((_, response) => json(response, { items: [...MESSAGES], total: 2, next_cursor: null }), async (address, asked) => {
    const api = new Api(address);
    assert.deepEqual((await api.latest(CHANNEL.channel, 10)).map((one) => one.id), ["conv_1", "conv_2"]);
    await api.name("cursor/auth 1?#", { nickname: "auth", tags: ["a"] });
    assert.equal(asked[0]?.headers.authorization, undefined);
    assert.equal(asked[1]?.url, "/bo/channels/cursor/auth%201%3F%23");
    assert.equal(asked[1]?.method, "PATCH");
    assert.deepEqual(asked[1]?.body, { nickname: "auth", tags: ["a"] });
  }));

test("words extract a part of a conversation, no words extract its end", () =>
  served((_, response) => json(response, { success: true, messages: [], metadata: {} }), async (address, asked) => {
    await new Api(address).extract("c", "cookies", 500);
    await new Api(address).extract("c", "", 500);
    assert.deepEqual(asked.map((one) => (one.body as { query: unknown }).query), [{ text: "cookies", max_tokens: 500 }, { max_tokens: 500 }]);
  }));

test("errors keep the registry's code; without a registry at the address the code is UNREACHABLE", async () => {
  const error = { code: "UNAUTHORIZED", message: "A token is needed.", details: "ctxr token create" };
  await served((_, response) => json(response, { ok: false, error }, 401), async (address) => {
    await assert.rejects(new Api(address).channels(), (thrown: ApiError) => thrown.code === "UNAUTHORIZED" && thrown.details === error.details);
  });
  await served((_, response) => response.writeHead(404).end("<html>"), async (address) => {
    await assert.rejects(new Api(address).channels(), { code: "UNREACHABLE" });
  });
  await assert.rejects(new Api("http://127.0.0.1:9").channels(), { code: "UNREACHABLE" });
});

test("a token is never sent unencrypted to another machine", () => {
  for (const good of ["http://127.0.0.1:8765", "http://localhost:8765", "http://[::1]:8765", "https://memory.example.org"]) assert.equal(addressProblem(good), undefined, good);
  for (const bad of ["http://memory.example.org", "http://192.168.0.7:8765", "http://127.0.0.1.example.org", "http://localhost.example.org"]) assert.equal(addressProblem(bad), "unencrypted", bad);
  for (const bad of ["", "127.0.0.1:8765", "file:///etc", "command:x"]) assert.equal(addressProblem(bad), "malformed", bad);
});

test("events are parsed wherever their text is split into chunks", () => {
  const text = 'event: message\ndata: {"a": "b: c"}\nid: 1.2\n\n: ping\n\nevent: execution\ndata: {}\nid: 1.3\n\n';
  for (let cut = 0; cut <= text.length; cut += 1) {
    const lines = new EventLines();
    const events = [...lines.feed(text.slice(0, cut)), ...lines.feed(text.slice(cut))];
    assert.deepEqual(events, [{ event: "message", id: "1.2", data: '{"a": "b: c"}' }, { event: "execution", id: "1.3", data: "{}" }]);
  }
});

test("a broken stream is reopened after the last event, with increasing delays", async () => {
  let streams = 0;
  const stop = new AbortController();
  const heard: string[] = [];
  const waits: number[] = [];
  await served(
    (_, response) => {
      streams += 1;
      if (streams === 2 || streams === 3) return json(response, {}, 502);
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      response.end(`event: message\ndata: ${JSON.stringify({ ...MESSAGES[0], id: `conv_${streams}` })}\nid: ${streams}.0\n\n`);
    },
    async (address, asked) => {
      const listener = {
        onOpen: () => heard.push("open"),
        onGone: () => heard.push("gone"),
        onStored: (message: { id: string }) => {
          heard.push(message.id);
          if (message.id === "conv_4") stop.abort();
        },
      };
      await listen(new Api(address), listener, stop.signal, async (ms) => void waits.push(ms));
      assert.deepEqual(asked.map((one) => one.headers["last-event-id"]), [undefined, "1.0", "1.0", "1.0"]);
    },
  );
  assert.deepEqual(heard, ["open", "conv_1", "gone", "gone", "gone", "open", "conv_4"]);
  assert.deepEqual(waits, [1_000, 2_000, 4_000]);
});
