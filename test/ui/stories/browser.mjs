// What stories have in common: a page in a browser, what is wrong with it, and the end of the program.
// MODULES is the folder that has node_modules.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(`${process.env.MODULES}/here.js`);
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

export const large = { width: 1280, height: 800 };
export const small = { width: 400, height: 700 };

// login is an address that logs in, once and within a minute, as the program gives it.
export const login = (program, url) => execFileSync(program, ["ui", "--addr", new URL(url).host]).toString().trim();

// story opens a page and plays what is told there. The program ends with 1 and what was otherwise than it should be.
export async function story(url, executablePath, play) {
  const faults = [];
  const check = (so, what) => so || faults.push(what);
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
  try {
    const page = await browser.newPage({ viewport: large });
    page.setDefaultTimeout(Number(process.env.PATIENCE ?? 120_000));
    page.on("pageerror", (e) => faults.push(`an error in the page: ${e.message}`));
    page.on("console", (m) => m.type() === "error" && faults.push(`the console: ${m.text()}`));
    page.on("request", (r) => check(r.url().startsWith(new URL(url).origin) || r.url().startsWith("data:"), `it asked for ${r.url()}`));
    page.on("dialog", (d) => { faults.push(`a dialog: ${d.message()}`); void d.dismiss(); });
    // plain: nothing that somebody planted as markup is markup.
    const plain = async (where) => {
      const found = await page.evaluate(() => document.querySelector("main :is(b, i, img, script, iframe)")?.outerHTML ?? (globalThis.planted ? "a script ran" : ""));
      check(found === "", `${where}: markup that was planted is in the page: ${found}`);
    };
    const examine = async (where) => {
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => globalThis.axe.run());
      for (const v of violations) faults.push(`${where}: axe: ${v.id}: ${v.help}: ${v.nodes.map((n) => n.html).join(" ").slice(0, 300)}`);
    };
    // accessible: axe finds nothing in a large window, nor in a small dark one; and the page is plain.
    const accessible = async (where) => {
      await plain(where);
      await examine(where);
      await page.setViewportSize(small);
      await page.emulateMedia({ colorScheme: "dark" });
      await examine(`${where}, small and dark`);
      await page.emulateMedia({ colorScheme: "light" });
      await page.setViewportSize(large);
    };
    await play({ page, browser, faults, check, plain, accessible });
  } catch (e) {
    faults.push(e.stack ?? String(e));
  } finally {
    await browser.close();
  }
  for (const f of new Set(faults)) console.error(f);
  process.exit(faults.length > 0 ? 1 : 0);
}
