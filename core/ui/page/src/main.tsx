import { render } from "preact";
import { signal } from "@preact/signals";
import { glance, listen, online } from "./live";
import { Objects, Overview, Plugins, Proxies, Proxy, Pushes, Refusals, Resource, Views } from "./pages";
import { Actions, enter } from "./actions";
import { Graph } from "./graph";
import { link } from "./parts";
import { Services } from "./reach";
import { Where } from "./where";

const at = signal(location.hash);
addEventListener("hashchange", () => (at.value = location.hash));

const pages: [path: string, title: string][] = [
  ["", "Overview"],
  ["plugins", "Plugins"],
  ["proxies", "Proxies"],
  ["views", "Views"],
  ["pushes", "Pushes"],
  ["refusals", "Refusals"],
  ["objects", "Objects"],
  ["graph", "Graph"],
  ["where", "Where to?"],
  ["actions", "Actions"],
];

const typing = (at: EventTarget | null) => at instanceof HTMLInputElement || at instanceof HTMLTextAreaElement || at instanceof HTMLSelectElement;

// Digits lead to the pages, / to the field that finds.
addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.altKey || e.metaKey || typing(e.target)) return;
  const page = pages[e.key === "0" ? 9 : Number(e.key) - 1];
  if (page) location.hash = link(page[0]);
  if (e.key === "/") {
    e.preventDefault();
    document.getElementById("find")?.focus();
  }
});

function Page() {
  const [path = "", query = ""] = at.value.replace(/^#\/?/, "").split("?", 2);
  const args = new URLSearchParams(query);
  const arg = (name: string) => args.get(name) ?? "";
  switch (path) {
    case "plugins":
      return <Plugins />;
    case "proxies":
      return <Proxies />;
    case "proxy":
      return <Proxy key={query} node={arg("node")} />;
    case "services":
      return <Services key={query} node={arg("node")} />;
    case "resource":
      return <Resource key={query} node={arg("node")} type={arg("type")} name={arg("name")} />;
    case "views":
      return <Views />;
    case "pushes":
      return <Pushes />;
    case "refusals":
      return <Refusals />;
    case "objects":
      return <Objects />;
    case "graph":
      return <Graph />;
    case "actions":
      return <Actions />;
    case "where":
      return <Where key={query} node={arg("node")} url={arg("url")} />;
  }
  return <Overview />;
}

function App() {
  const path = at.value.replace(/^#\/?/, "").split("?", 1)[0];
  return (
    <>
      <header>
        <h1>Coxswain</h1>
        <nav aria-label="Pages">
          {pages.map(([p, title], i) => (
            <a key={p} href={link(p)} aria-current={p === path ? "page" : undefined} title={`key ${(i + 1) % 10}`}>
              {title}
            </a>
          ))}
        </nav>
        <span id="online" class={online.value ? "good" : "bad"} role="status">
          {online.value ? `revision ${glance.value?.revision.number ?? ""}` : "not connected"}
        </span>
      </header>
      <main>
        <Page />
      </main>
    </>
  );
}

listen();
void enter();
render(<App />, document.body);
