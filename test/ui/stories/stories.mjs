// Plays the stories on a page: node stories.mjs URL CHROMIUM PROGRAM PICTURES, with PROGRAM, that of the control plane; PICTURES, the folder that gets
// screenshots, where they are wanted; and MODULES, the folder that has node_modules. It prints a line for each
// step that is done, `edit` where the resources are to be changed, `plan` and `making` where a dry run is to begin and to be left, and ends with 1 and what was otherwise.
import { login, story } from "./browser.mjs";

const [url, executablePath, program, pictures] = process.argv.slice(2);

await story(url, executablePath, async ({ page, faults, check, plain, accessible }) => {
  await page.goto(url);
  await page.waitForFunction(() => /of 1 proxies/.test(document.getElementById("sync")?.textContent ?? ""));
  await page.waitForFunction(() => /1 refuse something/.test(document.body.innerText));
  await accessible("overview");
  const picture = async (name) => pictures && (await page.screenshot({ path: `${pictures}/${name}` }));
  await picture("ui.png");
  console.log("glance");

  const before = await page.textContent("#push");
  console.log("edit");
  await page.waitForFunction((was) => document.getElementById("push")?.textContent !== was, before);
  await page.waitForFunction(() => document.body.innerText.includes("shop/later"));
  console.log("live");

  await page.keyboard.press("3");
  await page.waitForFunction(() => document.querySelectorAll("tbody a").length > 0);
  check((await page.innerText("main")).includes("<img src=x onerror="), "the proxy's reason is not shown as text");
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
  }
  await page.keyboard.press("5");
  await page.focus("#chart");
  await page.keyboard.press("End");
  await page.waitForFunction(() => /^revision \d+, .*added ServiceEntry shop\/later/.test(document.querySelector("#charted")?.textContent ?? ""));
  await page.keyboard.press("Home");
  await page.waitForFunction(() => /^revision 1, .*made in/.test(document.querySelector("#charted")?.textContent ?? ""));
  check(await page.evaluate(() => [...document.querySelector("#chart canvas").getContext("2d").getImageData(0, 0, 600, 150).data].some((b) => b > 0)), "the chart is empty");
  await picture("ui-pushes.png");
  await page.keyboard.press("7");
  await page.waitForFunction(() => [...document.querySelectorAll("tbody tr")].some((r) => r.textContent.includes("HTTPRoute")));
  check(!(await page.innerText("main")).includes("Derived from"), "derived objects are listed unasked");
  const listed = () => page.evaluate(() => document.querySelectorAll("tbody tr:not([aria-hidden])").length);
  const own = await listed();
  await page.check("[name=derived]");
  await page.waitForFunction(() => [...document.querySelectorAll("tbody tr")].some((r) => /^VirtualService.*HTTPRoute shop\/front/.test(r.textContent)));
  check((await listed()) > own, "the switch shows no more objects");
  await accessible("derived objects");
  await page.uncheck("[name=derived]");
  await page.waitForFunction((n) => document.querySelectorAll("tbody tr:not([aria-hidden])").length === n, own);
  await page.evaluate(() => document.activeElement.blur());
  console.log("all pages");

  await page.keyboard.press("8");
  await page.waitForFunction(() => document.querySelectorAll("rect.node").length > 3 && document.querySelectorAll("path.edge").length > 2);
  await page.waitForFunction(() => document.querySelector(".graph")?.textContent.includes("connected"));
  check((await page.textContent(".graph")).includes("serving"), "the graph doesn't say how plugins are");
  await accessible("the graph");
  await picture("ui-graph.png");
  console.log("graph");

  await page.keyboard.press("9");
  await page.waitForSelector("#nodes option[value*='api.shop']", { state: "attached" });
  await page.fill("[name=proxyID]", "api.shop");
  await page.fill("[name=url]", "http://cart.example/beta");
  await page.fill("[name=header]", "a: <script>globalThis.planted=1</script>");
  await page.click("button[type=submit]");
  await page.waitForFunction(() => /outbound\|80/.test(document.querySelector(".walk")?.textContent ?? ""));
  const decided = await page.textContent(".decisive");
  check(/VirtualService shop\/planted/.test(decided) && /route\.yaml:\d+/.test(decided), `the rule that decides is ${decided}`);
  check(decided.includes("<img src=x onerror="), "the rule's name is not shown as text");
  await accessible("the walk");
  await page.locator(".decisive").scrollIntoViewIfNeeded();
  await picture("ui-where.png");
  await page.evaluate(() => (location.hash = "#/services?node=api.shop"));
  await page.waitForFunction(() => /cart\.example:80/.test(document.querySelector(".graph")?.textContent ?? "") && document.querySelectorAll("path.edge").length > 2);
  await accessible("services");
  await page.click("summary");
  check((await page.innerText("main")).includes("by VirtualService shop/planted"), "the list doesn't say whose a route is");
  await plain("the list of services");
  await page.goBack();
  await page.fill("[name=proxyID]", "api.shop");
  await page.fill("[name=url]", "nonsense");
  await page.click("button[type=submit]");
  await page.waitForSelector(".fault");
  console.log("where");

  const leave = () => page.evaluate(() => (document.activeElement instanceof HTMLElement ? document.activeElement.blur() : undefined));
  await leave();
  await page.keyboard.press("m");
  await page.waitForFunction(() => /cart\.example:80/.test(document.querySelector(".graph")?.textContent ?? "") && document.querySelectorAll("path.edge").length > 1);
  check((await page.textContent("main")).includes("VirtualService shop/planted"), "the mesh doesn't say whose routes there are");
  check((await page.textContent(".graph")).includes("shop/api"), "the mesh doesn't say whose proxies have them");
  await accessible("the mesh");
  await picture("ui-mesh.png");
  await page.keyboard.press("/");
  await page.keyboard.type("<b>nobody");
  await page.waitForFunction(() => /, 0 hosts/.test(document.querySelector("#mesh")?.textContent ?? ""));
  await page.fill("#find", "cart.example");
  await page.waitForFunction(() => document.querySelectorAll("tbody td").length > 0);
  console.log("mesh");

  await leave();
  await page.keyboard.press("h");
  await page.waitForFunction(() => document.querySelectorAll("tbody a").length > 0);
  await accessible("history");
  await page.click("tbody a");
  await page.waitForFunction(() => /1 proxy is compared/.test(document.querySelector("#compared")?.textContent ?? ""));
  await page.waitForFunction(() => /later\.example/.test(document.querySelector("tbody")?.textContent ?? ""));
  await accessible("a difference");
  await picture("ui-diff.png");
  const changed = await page.evaluate(async () => {
    const kept = (await (await fetch("/debug/history")).json()).revisions.filter((r) => r.kept).map((r) => r.push.revision);
    const all = (await (await fetch(`/debug/changes?from=${Math.min(...kept)}&to=${Math.max(...kept)}`)).json()).resources;
    return all.find((r) => r.what === "added");
  });
  check(changed !== undefined, "no resource was added");
  await page.evaluate((r) => (location.hash = `#/resource?${new URLSearchParams({ node: r.proxy, type: r.type, name: r.name })}`), changed);
  await page.waitForFunction(() => /It was added/.test(document.querySelector("#fields")?.textContent ?? ""));
  await page.selectOption("[name=from]", { index: 0 });
  await page.waitForFunction(() => document.body.innerText.includes("That is the same revision"));
  await accessible("a resource's history");
  await leave();
  await page.keyboard.press("u");
  await page.waitForFunction(() => /Pushes have no stages/.test(document.querySelector("#stage")?.textContent ?? ""));
  await accessible("what is under way");
  console.log("history");

  await page.waitForFunction(() => /None since the control plane started/.test(document.body.innerText));
  console.log("plan");
  await page.waitForFunction(() => /swap serviceentry --process … --dry-run, asked for by .*by coxswain/.test(document.querySelector("#planning li")?.textContent ?? ""));
  await page.waitForFunction(() => /step 1 of 1, swap of serviceentry: (starting|syncing)/.test(document.querySelector("#planning")?.textContent ?? ""));
  await accessible("a plan in the making");
  await picture("ui-making.png");
  console.log("making");
  await page.waitForFunction(() => document.querySelector("#planning li") === null && /failed: whoever asked did not wait/.test(document.querySelector("#planned .bad")?.textContent ?? ""));
  await page.click("#planned summary");
  check((await page.innerText("#planned")).includes("<b>silent"), "the planned program's name is not shown as text");
  await accessible("a plan that ended");
  console.log("planned");

  await leave();
  await page.keyboard.press("0");
  await page.waitForFunction(() => document.body.innerText.includes("To change something log in"));
  check((await page.$$("ul.acts button:not([disabled])")).length === 0, "somebody who has not logged in can act");
  await page.goto(login(program, url));
  await page.reload();
  await page.waitForSelector("#by");
  check(!page.url().includes("code="), "the code stays in the address");
  check(!(await page.evaluate(() => document.cookie)).includes("coxswain"), "scripts can read the cookie");
  await accessible("actions");
  const carryOut = async (outcome) => {
    await page.waitForSelector("dialog[open]");
    await accessible("the question");
    await page.click("#yes");
    await page.waitForFunction((t) => (document.querySelector("#done")?.textContent ?? "").includes(t), outcome);
  };
  const number = Number((await page.textContent("#online")).replace(/\D/g, ""));
  await page.fill("[name=revision]", String(number));
  await page.fill("[name=proxies]", "namespace=<b>shop");
  await page.click("form.pin button");
  await carryOut(`coxswain pin ${number} --proxies 'namespace=<b>shop'`);
  await page.click("button:has-text('coxswain plugins swap files --dry-run')");
  await carryOut("coxswain plugins swap files --dry-run: done: compared");
  await page.locator("button", { hasText: /^coxswain plugins swap files$/ }).click();
  await carryOut("coxswain plugins swap files: done: switched");
  await page.click("button:has-text('coxswain plugins restart files')");
  await carryOut("coxswain plugins restart files: done");
  await plain("what was done");
  await picture("ui-actions.png");
  const forged = await page.evaluate(() => fetch("do/pins", { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" }).then((r) => r.status));
  check(forged === 401, `an action without the token is answered ${forged}`);
  const unknown = await page.evaluate(() =>
    fetch("do/plugins/files/swap", {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Coxswain-Token": sessionStorage.getItem("coxswain-token") },
      body: JSON.stringify({ process: ["/bin/sh"] }),
    }).then((r) => r.status),
  );
  check(unknown === 400, `a swap that names a program is answered ${unknown}`);
  const swapped = await page.evaluate(() => fetch("do/plugins/files/swap", { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" }).then((r) => r.status));
  check(swapped === 401, `a swap without the token is answered ${swapped}`);
  faults.splice(0, faults.length, ...faults.filter((f) => !/the console: .*(401|400)/.test(f))); // those that were asked for
  await leave();
  await page.keyboard.press("u");
  await page.waitForFunction(() => /swap files --dry-run, .*ago: no difference/.test(document.querySelector("#planned")?.textContent ?? ""));
  await page.click("#planned summary");
  check((await page.innerText("#planned")).includes("on the page"), "it is not said who asked for a plan on the page");
  await page.keyboard.press("0");
  await page.click("#by button");
  await page.waitForFunction(() => document.body.innerText.includes("To change something log in"));
  console.log("acted");

  await page.keyboard.press("1");
  await page.waitForFunction(() => /, 0 objects$/.test(document.querySelector("#refused")?.textContent ?? ""));
  console.log("mistake");
  await page.waitForFunction(() => /, 2 objects$/.test(document.querySelector("#refused")?.textContent ?? ""));
  check((await page.textContent("#unserved")) === "Nothing is served of 2 objects.", `of those: ${await page.textContent("#unserved")}`);
  const card = await page.innerText("section.card.bad:has(#refused)");
  check(/unread\.yaml:\d+/.test(card) && card.includes('"<b>wrong" is no name'), `the card says ${card}`);
  await page.waitForFunction(() => /added: a mistake at .*\.yaml:\d+:\d+$/m.test(document.body.innerText));
  await accessible("an overview of mistakes");
  await page.click("#refused a");
  await page.waitForFunction(() => [...document.querySelectorAll("tbody tr")].filter((r) => /refused *no/.test(r.textContent.replace("refused", "refused "))).length === 2);
  await accessible("objects with mistakes");
  console.log("mistaken");
});
