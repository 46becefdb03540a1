#!/usr/bin/env node
// Runs the Python package of the same version with uv or pipx: `npx context-registry try`.
"use strict";
const { spawnSync } = require("node:child_process");
const program = `context-registry==${require("./package.json").version}`;
const args = process.argv.slice(2);
const newUvx = require("node:path").join(require("node:os").homedir(), ".local", "bin", "uvx"); // after its installation, not yet on this shell's PATH
const runners = [
  ["uvx", [program, ...args]],
  [newUvx, [program, ...args]],
  ["pipx", ["run", program, ...args]],
];

for (const [runner, runnerArgs] of runners) {
  const done = spawnSync(runner, runnerArgs, { stdio: "inherit", shell: false });
  if (done.error?.code === "ENOENT") continue; // not installed
  process.exit(done.status ?? 1);
}
const how = process.platform === "win32" ? "winget install astral-sh.uv" : "curl -LsSf https://astral.sh/uv/install.sh | sh";
console.error(`Context Registry is a Python program that uv installs and runs. Install uv, then try again:\n  ${how}`);
process.exit(1);
