// Somebody of one namespace looks, who shows a token: node own.mjs URL CHROMIUM TOKEN NODE OTHER. NODE is a proxy of that
// namespace, OTHER is none.
import { story } from "./browser.mjs";

const [url, chromium, token, node, other] = process.argv.slice(2);

// expected are complaints of the console about what is so here: pages in plain text from elsewhere, and what may not be asked for.
const expected = /the console: .*(Cross-Origin-Opener-Policy header has been ignored|status of 40[34])/;

await story(url, chromium, async ({ page, faults, check, accessible }) => {
  await page.setExtraHTTPHeaders({ Authorization: `Bearer ${token}` });
  await page.goto(url);
  await page.waitForFunction(() => document.querySelector("#sync")?.textContent === "1 of 1 proxies");
  await accessible("the overview");
  const titles = await page.locator("nav a").allTextContents();
  check(titles.join() === "Overview,Proxies,Where to?", `there are ${titles}`);
  await page.keyboard.press("3");
  await page.getByRole("link", { name: node }).click();
  check(!(await page.content()).includes(other), "the list has another's proxy");
  await accessible("a proxy");
  await page.getByRole("link", { name: "outbound|80||cart.example" }).first().click();
  await page.getByText("cart.yaml").first().waitFor();
  await accessible("a resource");
  await page.goto(`${url}#/services?node=${encodeURIComponent(node)}`);
  await page.getByText("cart.example").first().waitFor();
  await page.goto(`${url}#/where?${new URLSearchParams({ node, url: "http://cart.example/" })}`);
  await page.waitForSelector("#verdict");
  await accessible("where to");
  check(!faults.some((f) => /status of 40/.test(f)), "something was asked for that may not be");
  await page.goto(`${url}#/proxy?node=${encodeURIComponent(other)}`);
  await page.getByText("is not connected, or not of a namespace that the caller may see").waitFor();
  await page.goto(`${url}#/plugins`);
  await page.getByText("this debug page is for callers of namespace").waitFor();
  faults.splice(0, faults.length, ...faults.filter((f) => !expected.test(f)));
});
