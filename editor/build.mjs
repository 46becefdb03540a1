// Bundles the extension for the desktop and for browsers; with "test", its tests.
import { readdirSync, rmSync } from "node:fs";
import { build } from "esbuild";

const common = { bundle: true, minify: false, sourcemap: false, target: "es2022", logLevel: "warning" };

if (process.argv[2] === "test") {
  rmSync("dist/test", { recursive: true, force: true });
  const entryPoints = readdirSync("test").filter((name) => name.endsWith(".test.ts")).map((name) => `test/${name}`);
  const alias = { vscode: "./test/vscode.ts" };
  await build({ ...common, entryPoints, alias, outdir: "dist/test", outExtension: { ".js": ".mjs" }, platform: "node", format: "esm" });
} else {
  const extension = { ...common, entryPoints: ["src/extension.ts"], external: ["vscode"], format: "cjs" };
  await build({ ...extension, outfile: "dist/extension.js", platform: "node" });
  await build({ ...extension, outfile: "dist/web.js", platform: "browser" });
}
