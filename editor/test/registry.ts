/** A fake registry server on loopback; its answers were recorded from a real one. */

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Channel, Message } from "../src/api";

export const CHANNEL: Channel = {
  session_id: "cursor/auth 1",
  channel: "cursor/auth 1",
  source: "cursor",
  title: "Refresh tokens in httpOnly cookies",
  nickname: null,
  tags: ["auth"],
  project_path: "/home/me/shop",
  project_name: "shop",
  message_count: 2,
  updated_at: "2025-10-24T10:00:05.000Z",
  first_message_preview: "How should we handle JWT refresh tokens?",
};

export const MESSAGES: Message[] = [
  { id: "conv_2", channel: CHANNEL.channel, role: "assistant", text: "In httpOnly cookies.", timestamp: "2025-10-24T10:00:05.000Z" },
  { id: "conv_1", channel: CHANNEL.channel, role: "user", text: "How should we handle JWT refresh tokens?", timestamp: "2025-10-24T10:00:00.000Z" },
];

export interface Asked {
  method: string;
  url: string;
  headers: IncomingMessage["headers"];
  body: unknown;
}

export type Answering = (asked: Asked, response: ServerResponse) => void;

/** Serve while `work` runs, and pass it the server's address and the requests so far. */
export async function served(answering: Answering, work: (address: string, asked: Asked[]) => Promise<void>): Promise<void> {
  const seen: Asked[] = [];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const text = Buffer.concat(parts).toString();
      const asked = { method: request.method ?? "", url: request.url ?? "", headers: request.headers, body: text ? (JSON.parse(text) as unknown) : undefined };
      seen.push(asked);
      answering(asked, response);
    });
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  try {
    await work(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

export function json(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(body));
}
