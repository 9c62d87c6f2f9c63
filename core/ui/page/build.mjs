// Makes ../dist of the sources here: the bundle, the licences of what is in it, and the sums of the sources that it was made of.
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const dist = "../dist";
rmSync(dist, { recursive: true, force: true });
mkdirSync(dist, { recursive: true });

const options = { bundle: true, minify: true, charset: "utf8", legalComments: "none", logLevel: "warning", metafile: true };
const script = await build({ ...options, entryPoints: ["src/main.tsx"], outfile: `${dist}/page.js`, format: "esm", target: "es2022", jsx: "automatic", jsxImportSource: "preact" });
await build({ ...options, entryPoints: ["src/style.css"], outfile: `${dist}/page.css` });
writeFileSync(`${dist}/index.html`, readFileSync("index.html"));

const packages = new Set();
for (const input of Object.keys(script.metafile.inputs)) {
  const found = /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input);
  if (found) packages.add(found[1]);
}
let licences = "What page.js has in it beside its own sources.\n";
for (const name of [...packages].sort()) {
  const { version, license } = JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8"));
  const file = readdirSync(`node_modules/${name}`).find((f) => /^licen[cs]e/i.test(f));
  if (!file) throw new Error(`${name} has no file with its licence`);
  licences += `\n${name} ${version} (${license})\n\n${readFileSync(`node_modules/${name}/${file}`, "utf8").trim()}\n`;
}
writeFileSync(`${dist}/LICENCES.txt`, licences);

const sources = ["build.mjs", "index.html", "package.json", "package-lock.json", "tsconfig.json", ...readdirSync("src").map((f) => `src/${f}`)].sort();
const sum = (file) => createHash("sha256").update(readFileSync(file)).digest("hex");
const made = readdirSync(dist).sort().map((f) => `${sum(`${dist}/${f}`)}  dist/${f}`);
writeFileSync(`${dist}/sums`, [...sources.map((f) => `${sum(f)}  page/${f}`), ...made].join("\n") + "\n");
