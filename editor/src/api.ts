/** A client of the registry's HTTP API. It does not import the editor, so that it can be tested without one. */

export interface Channel {
  session_id: string;
  channel: string;
  source: string;
  title: string | null;
  nickname: string | null;
  tags: string[];
  project_path: string | null;
  project_name: string;
  message_count: number;
  updated_at: string;
  first_message_preview: string | null;
  /** The best matches, in a search. */
  passages?: { snippet: string }[];
}

export interface Message {
  id: string;
  channel: string;
  role: string;
  text: string;
  timestamp: string;
  received_at?: string;
}

export interface Page<Item> {
  items: Item[];
  total: number;
  next_cursor: string | null;
}

/** The requested part of a conversation, and its state. */
export interface Extract {
  messages: { role: string; text: string; timestamp?: string; gap_before?: number }[];
  metadata: { total_count?: number; stands_at?: Record<string, unknown>; left_out?: { messages?: number } };
}

export interface ChannelsAsked {
  project?: string | undefined;
  q?: string | undefined;
  tag?: string | undefined;
  limit?: number | undefined;
  cursor?: string | undefined;
}

export interface Names {
  nickname?: string | null;
  tags?: string[];
}

export interface StreamEvent {
  event: string;
  id: string;
  data: string;
}

/** A failed request; `code` is one of the registry's, or UNREACHABLE. */
export class ApiError extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly details = "",
  ) {
    super(message);
  }
}

export type Fetch = typeof globalThis.fetch;

/** Timeout of a request; the event stream has none. */
const TIMEOUT_MS = 35_000;
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** Return why an address must not be used, or undefined if it may: a token is never sent unencrypted to another machine. */
export function addressProblem(address: string): "malformed" | "unencrypted" | undefined {
  let url: URL;
  try {
    url = new URL(address);
  } catch {
    return "malformed";
  }
  if (url.protocol === "https:") return undefined;
  if (url.protocol !== "http:") return "malformed";
  return LOOPBACK.test(url.hostname) ? undefined : "unencrypted";
}

export class Api {
  private readonly root: string;

  /** `address`: the server's, such as http://127.0.0.1:8765; `token`: empty if the server needs none. */
  constructor(
    address: string,
    private readonly token = "",
    private readonly fetch: Fetch = globalThis.fetch.bind(globalThis),
  ) {
    this.root = address.replace(/\/+$/, "");
  }

  channels(asked: ChannelsAsked = {}): Promise<Page<Channel>> {
    return this.json(`/bo/channels${parameters({ ...asked })}`);
  }

  channel(name: string): Promise<Channel> {
    return this.json(`/bo/channels/${path(name)}`);
  }

  name(channel: string, names: Names): Promise<Channel> {
    return this.json(`/bo/channels/${path(channel)}`, { method: "PATCH", body: names });
  }

  /** Return the latest messages of a channel, oldest first. */
  async latest(channel: string, limit: number): Promise<Message[]> {
    const page = await this.json<Page<Message>>(`/bo/conversations${parameters({ channel, limit })}`);
    return page.items.reverse();
  }

  /** Return the message that was stored last in any channel; undefined if there is none. */
  async newest(): Promise<Message | undefined> {
    return (await this.json<Page<Message>>(`/bo/conversations${parameters({ limit: 1 })}`)).items[0];
  }

  /** Return the messages of a channel that match the words; without words, the last ones. */
  async extract(channel: string, words: string, maxTokens: number): Promise<Extract> {
    const query = { ...(words ? { text: words } : {}), max_tokens: maxTokens };
    const body = { operation: "extract", channel, query, source: "editor" };
    const answer = await this.json<Extract | Failed>("/bo/ao/run", { method: "POST", body });
    if ("error" in answer) throw failure(answer.error);
    return answer;
  }

  /** Yield the registry's events as they happen, until `signal` aborts or the server ends the stream. */
  async *events(lastSeen: string, signal: AbortSignal): AsyncGenerator<StreamEvent | "open"> {
    const headers: Record<string, string> = { ...this.headers(), Accept: "text/event-stream" };
    if (lastSeen) headers["Last-Event-ID"] = lastSeen;
    const answer = await this.fetched(() => this.fetch(`${this.root}/bo/events`, { headers, signal }));
    if (!answer.ok || !answer.body) throw await errorOf(answer);
    yield "open";
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    const lines = new EventLines();
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) yield* lines.feed(chunk.value);
  }

  /** Return the address of the conversation's page in the dashboard. */
  page(channel: string): string {
    return `${this.root}/channels/${path(channel)}`;
  }

  private headers(): Record<string, string> {
    return this.token ? { Authorization: `Bearer ${this.token}` } : {};
  }

  private async json<Answer>(address: string, given: { method?: string; body?: unknown } = {}): Promise<Answer> {
    const headers: Record<string, string> = this.headers();
    const request: RequestInit = { method: given.method ?? "GET", headers, signal: AbortSignal.timeout(TIMEOUT_MS) };
    if (given.body !== undefined) {
      headers["Content-Type"] = "application/json";
      request.body = JSON.stringify(given.body);
    }
    const answer = await this.fetched(() => this.fetch(this.root + address, request));
    if (!answer.ok) throw await errorOf(answer);
    return (await answer.json()) as Answer;
  }

  private async fetched(ask: () => Promise<Response>): Promise<Response> {
    try {
      return await ask();
    } catch (error) {
      throw new ApiError("UNREACHABLE", `No answer from ${this.root}`, String(error));
    }
  }
}

interface Problem {
  code: string;
  message: string;
  details?: string;
}

interface Failed {
  error: Problem;
}

/** Parse Server-Sent Events from chunks of text, which may end anywhere. */
export class EventLines {
  private rest = "";

  *feed(chunk: string): Generator<StreamEvent> {
    const blocks = (this.rest + chunk).split("\n\n");
    this.rest = blocks.pop() ?? "";
    for (const block of blocks) {
      const event = parseEvent(block);
      if (event.data) yield event;
    }
  }
}

function parseEvent(block: string): StreamEvent {
  const event: StreamEvent = { event: "message", id: "", data: "" };
  for (const line of block.split("\n")) {
    const [name = "", ...rest] = line.split(":");
    const value = rest.join(":").replace(/^ /, "");
    if (name === "event" || name === "id") event[name] = value;
    if (name === "data") event.data += value;
  }
  return event;
}

/** Escape a channel's name for a path; slashes stay. */
function path(name: string): string {
  return name.split("/").map(encodeURIComponent).join("/");
}

function parameters(given: Record<string, string | number | undefined>): string {
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(given)) if (value !== undefined && value !== "") asked.set(name, String(value));
  return asked.size ? `?${asked}` : "";
}

function failure(problem: Problem): ApiError {
  return new ApiError(problem.code, problem.message, problem.details);
}

async function errorOf(answer: Response): Promise<ApiError> {
  try {
    return failure(((await answer.json()) as Failed).error);
  } catch {
    return new ApiError("UNREACHABLE", `The server answered ${answer.status}; is it Context Registry?`);
  }
}
