/** Keep the event stream open: reconnect with increasing delays, and resume after the last event. */

import { type Api, ApiError, type Message } from "./api";

export interface Listener {
  onOpen(): void;
  onStored(message: Message): void;
  onGone(error: ApiError): void;
}

const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 30_000;
/** The server's error for an id from which no stream can resume; the next stream starts without an id. */
const STALE_ID = "INVALID_REQUEST";

/** Listen until `signal` aborts. Tests replace `wait`. */
export async function listen(
  api: Api,
  listener: Listener,
  signal: AbortSignal,
  wait: (ms: number, signal: AbortSignal) => Promise<void> = pause,
): Promise<void> {
  let lastSeen = "";
  let waitMs = FIRST_WAIT_MS;
  while (!signal.aborted) {
    try {
      for await (const event of api.events(lastSeen, signal)) {
        waitMs = FIRST_WAIT_MS;
        if (event === "open") {
          listener.onOpen();
          continue;
        }
        lastSeen = event.id || lastSeen;
        if (event.event === "message") listener.onStored(JSON.parse(event.data) as Message);
      }
      throw new ApiError("UNREACHABLE", "The event stream ended");
    } catch (error) {
      if (signal.aborted) return;
      const known = error instanceof ApiError ? error : new ApiError("UNREACHABLE", String(error));
      if (known.code === STALE_ID) lastSeen = "";
      listener.onGone(known);
    }
    await wait(waitMs, signal);
    waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resume) => {
    const timer = setTimeout(resume, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resume();
    });
  });
}
