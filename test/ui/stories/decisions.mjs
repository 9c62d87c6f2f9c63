// Somebody decides on the page: node decisions.mjs URL CHROMIUM PROGRAM. It prints `rate`, `change` and `again` where the
// configuration is to be changed, `lose` where all of it is to go, and the other steps as they are done.
import { login, story } from "./browser.mjs";

const [url, chromium, program] = process.argv.slice(2);

await story(url, chromium, async ({ page, check, plain, accessible }) => {
  const done = (text) => page.waitForFunction((t) => (document.querySelector("#done li")?.textContent ?? "").includes(t), text);
  const carryOut = async (command) => {
    await page.keyboard.press("0");
    await page.locator("button:not([disabled])", { hasText: command }).click();
    await page.waitForSelector("dialog[open]");
    await page.click("#yes");
    await done(`${command}: done`);
  };
  const node = (name) => page.evaluate((n) => [...document.querySelectorAll(".graph a")].find((a) => a.querySelector(".name").textContent === n)?.textContent ?? "", name);
  const drawn = (name, text) =>
    page.waitForFunction(([n, t]) => [...document.querySelectorAll(".graph a")].some((a) => a.querySelector(".name").textContent === n && new RegExp(t).test(a.textContent)), [name, text]);

  await page.goto(login(program, url));
  await page.waitForSelector("#by");

  await page.keyboard.press("3");
  await page.waitForFunction(() => document.querySelectorAll("tbody a").length === 3);
  const cells = (row) => page.evaluate((r) => [...document.querySelectorAll("tbody tr:not([aria-hidden])")[r].cells].map((c) => c.textContent), row);
  await page.waitForFunction(() => /silent/.test(document.querySelector("tbody tr:not([aria-hidden])")?.textContent ?? ""));
  const first = await cells(0);
  check(first[1] === "pending" && /^\d+ s$/.test(first[2]) && /Cluster/.test(first[3]), `of the proxy that says nothing it is said ${first}`);
  const other = await cells(1);
  check(other[1] === "synced" && /^\d+ s$/.test(other[2]) && Number(other[4]) > 0, `of a proxy in sync it is said ${other}`);
  await page.waitForFunction((was) => document.querySelector("tbody tr:not([aria-hidden])").cells[2].textContent !== was, first[2]);
  await accessible("proxies of which one is silent");
  await page.keyboard.press("4");
  await page.waitForFunction(() => /^(1 of 2|2 of 3)$/.test(document.querySelector("tbody td.busy")?.textContent ?? ""));
  check(/^\d+ s$/.test((await cells(0))[6]), `of a view it is said ${await cells(0)}`);
  await accessible("views");
  console.log("standing");

  await page.keyboard.press("8");
  await drawn("stage", "none is under way");
  await drawn("files", "[^.]0/s, 0 B/s$");
  console.log("rate");
  await drawn("files", "([1-9]\\d*|0\\.\\d)/s");
  await drawn("files", "[^.]0/s, 0 B/s$");
  await drawn("stage", "staged, revision \\d+tried by \\d");
  await drawn("proxies", "3 connected");
  check(/others: revision \d+/.test(await node("stage")), `the stage says ${await node("stage")}`);
  await accessible("a graph with a stage");
  console.log("rated");

  await carryOut("coxswain rollout promote");
  await page.waitForFunction(() => /Stage: idle/.test(document.querySelector("main").textContent));
  console.log("change");
  await page.waitForFunction(() => /Stage: staged/.test(document.querySelector("main").textContent));
  await accessible("actions in a stage");
  await carryOut("coxswain rollout abort");
  await page.waitForFunction(() => /Stage: withdrawn/.test(document.querySelector("main").textContent));
  await page.keyboard.press("u");
  await page.waitForFunction(() => /was withdrawn: it is served to nobody/.test(document.querySelector("#stage")?.textContent ?? ""));
  await accessible("what was withdrawn");
  await page.keyboard.press("8");
  await drawn("stage", "withdrawn");
  await carryOut("coxswain rollout promote");
  await page.waitForFunction(() => /Stage: idle/.test(document.querySelector("main").textContent));
  console.log("staged");

  console.log("lose");
  await page.locator("button", { hasText: "coxswain hold apply files" }).waitFor();
  await accessible("what is held");
  await page.keyboard.press("1");
  await page.waitForFunction(() => /files: changes are held/.test(document.body.innerText));
  await page.keyboard.press("8");
  await drawn("files", "held, ");
  await carryOut("coxswain hold drop files");
  await page.locator("button", { hasText: "coxswain hold apply files" }).waitFor();
  await carryOut("coxswain hold apply files");
  await page.waitForFunction(() => /Nothing is held/.test(document.querySelector("main").textContent));
  await plain("what was decided");
  console.log("held");
});
