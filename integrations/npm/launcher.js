#!/usr/bin/env node
// Runs the Python program of the same version with uv, or with pipx: `npx context-registry try`.
"use strict";
const { spawnSync } = require("node:child_process");
const program = `context-registry==${require("./package.json").version}`;
const words = process.argv.slice(2);
const fresh = require("node:path").join(require("node:os").homedir(), ".local", "bin", "uvx"); // not on this shell's PATH yet
const runners = [
  ["uvx", [program, ...words]],
  [fresh, [program, ...words]],
  ["pipx", ["run", program, ...words]],
];

for (const [name, its] of runners) {
  const done = spawnSync(name, its, { stdio: "inherit", shell: false });
  if (done.error?.code === "ENOENT") continue; // it is not installed
  process.exit(done.status ?? 1);
}
const how = process.platform === "win32" ? "winget install astral-sh.uv" : "curl -LsSf https://astral.sh/uv/install.sh | sh";
console.error(`Context Registry is a Python program, which uv brings and runs. Install uv, then try again:\n  ${how}`);
process.exit(1);
