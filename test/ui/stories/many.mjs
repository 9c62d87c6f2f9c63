// Looks at a page with much on it: node many.mjs URL CHROMIUM PROXIES OBJECTS, with MODULES, the folder that has
// node_modules. It prints what took how long, and ends with 1 and what was otherwise than it should be.
import { createRequire } from "node:module";

const require = createRequire(`${process.env.MODULES}/here.js`);
const { chromium } = require("playwright-core");
const [url, executablePath, proxies, objects] = process.argv.slice(2);

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
const faults = [];
const check = (so, what) => so || faults.push(what);
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
  page.setDefaultTimeout(Number(process.env.PATIENCE ?? 120_000));
  page.on("pageerror", (e) => faults.push(`an error in the page: ${e.message}`));
  await page.goto(url); // the first time all is new to the browser and to the control plane
  await page.waitForFunction((n) => document.getElementById("sync")?.textContent?.startsWith(`${n} of ${n} `), proxies);

  const paints = [];
  for (let i = 0; i < 10; i++) {
    const own = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    await own.goto(url);
    await own.waitForFunction((n) => document.getElementById("sync")?.textContent?.startsWith(`${n} of ${n} `), proxies);
    const at = await own.evaluate(() => ({
      paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime,
      bytes: [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
        .filter((e) => /\/ui\/(page\.(js|css))?$/.test(e.name))
        .reduce((sum, e) => sum + e.transferSize, 0),
    }));
    paints.push(at);
    await own.close();
  }
  const sorted = paints.map((p) => p.paint).sort((a, b) => a - b);
  console.log(`first paint of ${sorted.length} loads: ${sorted.map(Math.round).join(", ")} ms; ${Math.max(...paints.map((p) => p.bytes))} bytes transferred`);

  const rows = () => page.evaluate(() => document.querySelectorAll("tbody tr:not([aria-hidden])").length);
  const took = async (what, key, count, one) => {
    const began = Date.now();
    await page.keyboard.press(key);
    await page.waitForFunction((n) => document.querySelector(".filter span")?.textContent === `${n} of ${n}`, count);
    const shown = Date.now() - began;
    check((await rows()) < 100, `${what}: ${await rows()} rows are made at once`);
    const moved = Date.now();
    await page.evaluate(() => { const r = document.querySelector(".rows"); r.scrollTop = r.scrollHeight; });
    await page.waitForSelector(`tr[aria-rowindex="${Number(count) + 1}"]`);
    const end = Date.now() - moved;
    check((await rows()) < 100, `${what}, at the end: ${await rows()} rows are made at once`);
    const typed = Date.now();
    await page.keyboard.press("/");
    await page.keyboard.type(one);
    await page.waitForFunction(() => /^1 of /.test(document.querySelector(".filter span")?.textContent ?? ""));
    console.log(`${what}: ${count} are there after ${shown} ms, the last is seen after ${end} ms, one is found after ${Date.now() - typed} ms`);
    await page.evaluate(() => document.activeElement.blur());
  };
  await took("proxies", "3", proxies, `p${String(proxies - 1).padStart(4, "0")}.shop`);
  await took("objects", "7", objects, `r${String(objects / 2 - 1).padStart(4, "0")}`);
} catch (e) {
  faults.push(e.stack ?? String(e));
} finally {
  await browser.close();
}
for (const f of new Set(faults)) console.error(f);
process.exit(faults.length > 0 ? 1 : 0);
