// Uses the official TypeScript clients as a user's program does. Evaluated (node --eval) with the arguments
//   {v1|v2-legacy|v2-modern} http URL
//   {v1|v2-legacy|v2-modern} stdio COMMAND ARGS...
// Reads [{"method", "params"}] from standard input, prints
// {"protocol", "server", "answers": [{"result"} | {"error": {"code", "message"}}]}.

import { readFileSync } from "node:fs";

const SDKS = {
  "v1": { load: loadV1, options: {} },
  "v2-legacy": { load: loadV2, options: { versionNegotiation: { mode: "legacy" } } },
  "v2-modern": { load: loadV2, options: { versionNegotiation: { mode: { pin: "2026-07-28" } } } },
};

async function loadV1() {
  const [{ Client }, { StdioClientTransport }, { StreamableHTTPClientTransport }] = await Promise.all([
    import("@modelcontextprotocol/sdk/client/index.js"),
    import("@modelcontextprotocol/sdk/client/stdio.js"),
    import("@modelcontextprotocol/sdk/client/streamableHttp.js"),
  ]);
  return { Client, StdioClientTransport, StreamableHTTPClientTransport };
}

async function loadV2() {
  const [{ Client, StreamableHTTPClientTransport }, { StdioClientTransport }] = await Promise.all([
    import("@modelcontextprotocol/client"),
    import("@modelcontextprotocol/client/stdio"),
  ]);
  return { Client, StdioClientTransport, StreamableHTTPClientTransport };
}

function transportTo(sdk, kind, [target, ...args]) {
  if (kind === "http") return new sdk.StreamableHTTPClientTransport(new URL(target));
  return new sdk.StdioClientTransport({ command: target, args, env: process.env, stderr: "inherit" });
}

async function take(client, { method, params }) {
  try {
    return { result: await client[method](params) };
  } catch (error) {
    return { error: { code: error.code ?? null, message: String(error.message) } };
  }
}

const [name, kind, ...target] = process.argv.slice(1);
const sdk = await SDKS[name].load();
const client = new sdk.Client({ name: `typescript-${name}`, version: "1.0.0" }, SDKS[name].options);
const transport = transportTo(sdk, kind, target);
transport.setProtocolVersion ??= (version) => (transport.protocolVersion = version); // v1 over stdio does not report it
await client.connect(transport);

const answers = [];
for (const step of JSON.parse(readFileSync(0, "utf8"))) answers.push(await take(client, step));

const protocol = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? null;
process.stdout.write(JSON.stringify({ protocol, server: client.getServerVersion() ?? null, answers }));
await client.close();
