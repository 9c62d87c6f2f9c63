// A page whose events are refused: node refused.mjs URL CHROMIUM. It prints `refused` as soon as the page says why, and
// ends when it is connected.
import { story } from "./browser.mjs";

const [url, chromium] = process.argv.slice(2);

await story(url, chromium, async ({ page, faults, accessible }) => {
  await page.goto(url);
  await page.waitForFunction(() => /not connected: 503: .*clients follow the events/.test(document.querySelector("#online")?.textContent ?? ""));
  await accessible("refused");
  console.log("refused");
  await page.waitForFunction(() => /^revision \d+$/.test(document.querySelector("#online")?.textContent ?? ""));
  await page.waitForSelector("#sync");
  faults.splice(0, faults.length, ...faults.filter((f) => !/the console: .*503/.test(f))); // those that were asked for
});
