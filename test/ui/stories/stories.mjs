// Plays the stories on a page: node stories.mjs URL CHROMIUM SCREENSHOT, with MODULES, the folder that has node_modules. It prints a line for each
// step that is done, `edit` where the resources are to be changed, and ends with 1 and what was otherwise.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(`${process.env.MODULES}/here.js`);
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const [url, executablePath, screenshot] = process.argv.slice(2);

const patience = Number(process.env.PATIENCE ?? 120_000);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
const faults = [];
const check = (so, what) => so || faults.push(what);
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  page.setDefaultTimeout(patience);
  page.on("pageerror", (e) => faults.push(`an error in the page: ${e.message}`));
  page.on("console", (m) => m.type() === "error" && faults.push(`the console: ${m.text()}`));
  page.on("request", (r) => check(r.url().startsWith(new URL(url).origin) || r.url().startsWith("data:"), `it asked for ${r.url()}`));
  page.on("dialog", (d) => { faults.push(`a dialog: ${d.message()}`); void d.dismiss(); });
  const accessible = async (where) => {
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => globalThis.axe.run());
    for (const v of violations) faults.push(`${where}: axe: ${v.id}: ${v.help}: ${v.nodes.map((n) => n.html).join(" ").slice(0, 300)}`);
  };

  await page.goto(url);
  await page.waitForFunction(() => /of 1 proxies/.test(document.getElementById("sync")?.textContent ?? ""));
  await page.waitForFunction(() => /1 refuse something/.test(document.body.innerText));
  await accessible("overview");
  if (screenshot) await page.screenshot({ path: screenshot });
  console.log("glance");

  const before = await page.textContent("#push");
  console.log("edit");
  await page.waitForFunction((was) => document.getElementById("push")?.textContent !== was, before);
  await page.waitForFunction(() => document.body.innerText.includes("shop/later"));
  console.log("live");

  await page.keyboard.press("3");
  await page.waitForFunction(() => document.querySelectorAll("tbody a").length > 0);
  check((await page.innerText("main")).includes("<img src=x onerror="), "the proxy's reason is not shown as text");
  check((await page.$("main img, main script")) === null, "markup that was planted is in the page");
  check(!(await page.evaluate(() => globalThis.planted)), "a script that was planted has run");
  await accessible("proxies");
  await page.keyboard.press("/");
  await page.keyboard.type("nobody has this");
  await page.waitForFunction(() => document.querySelectorAll("tbody a").length === 0);
  await page.fill("#find", "");
  await page.click("tbody a");
  await page.waitForFunction(() => /outbound\|/.test(document.body.innerText));
  await accessible("a proxy");
  await page.fill("#find", "cart");
  await page.click("tbody a");
  await page.waitForFunction(() => /It was made from/.test(document.body.innerText) && /ServiceEntry|services/.test(document.body.innerText));
  await accessible("a resource");
  console.log("explained");

  for (const [key, text] of [["2", "serving"], ["4", "Cluster"], ["5", "shop/cart"], ["6", "Listener"], ["7", "ServiceEntry"]]) {
    await page.keyboard.press(key);
    await page.waitForFunction((t) => [...document.querySelectorAll("tbody td")].some((c) => c.textContent.includes(t)), text);
    await accessible(`page ${key}`);
    check((await page.$("main img, main script")) === null, `markup that was planted is in page ${key}`);
  }
  console.log("all pages");

  await page.emulateMedia({ colorScheme: "dark" });
  await page.keyboard.press("1");
  await page.waitForSelector("#sync");
  await accessible("dark");
  console.log("dark");
} catch (e) {
  faults.push(e.stack ?? String(e));
} finally {
  await browser.close();
}
for (const f of new Set(faults)) console.error(f);
process.exit(faults.length > 0 ? 1 : 0);
