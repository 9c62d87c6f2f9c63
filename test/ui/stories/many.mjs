// Looks at a page with much on it: node many.mjs URL CHROMIUM PROXIES OBJECTS, with MODULES, the folder that has
// node_modules. It prints what took how long, and ends with 1 and what was otherwise than it should be.
import { large, story } from "./browser.mjs";

const [url, executablePath, proxies, objects] = process.argv.slice(2);

// What the first paint may wait for, however much there is to look at: requests and bytes before it, and what is painted.
const most = { requests: 6, bytes: 250 << 10, nodes: 150 };

await story(url, executablePath, async ({ page, browser, check }) => {
  await page.goto(url); // the first time all is new to the browser and to the control plane
  await page.waitForFunction((n) => document.getElementById("sync")?.textContent?.startsWith(`${n} of ${n} `), proxies);

  const paints = [];
  for (let i = 0; i < 10; i++) {
    const own = await browser.newPage({ viewport: large });
    await own.goto(url);
    await own.waitForFunction((n) => document.getElementById("sync")?.textContent?.startsWith(`${n} of ${n} `), proxies);
    const at = await own.evaluate(async () => {
      const paint = performance.getEntriesByName("first-contentful-paint")[0].startTime;
      const asked = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")].filter((e) => e.startTime < paint);
      const long = await new Promise((tell) => {
        new PerformanceObserver((l) => tell(l.getEntries().filter((e) => e.startTime < paint).length)).observe({ type: "longtask", buffered: true });
        setTimeout(() => tell(0), 200); // there were none
      });
      return { paint, long, requests: asked.length, bytes: asked.reduce((sum, e) => sum + e.transferSize, 0), nodes: document.querySelectorAll("*").length };
    });
    for (const [what, n] of Object.entries(most)) check(at[what] <= n, `before the first paint there were ${at[what]} ${what}, more than ${n}`);
    paints.push(at);
    await own.close();
  }
  const sorted = paints.map((p) => p.paint).sort((a, b) => a - b);
  const upTo = (what) => Math.max(...paints.map((p) => p[what]));
  console.log(`first paint of ${sorted.length} loads: ${sorted.map(Math.round).join(", ")} ms; before it at most ${upTo("requests")} requests, ${upTo("bytes")} bytes, ${upTo("long")} tasks of more than 50 ms; ${upTo("nodes")} nodes`);

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
});
