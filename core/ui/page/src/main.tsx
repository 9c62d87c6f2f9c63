import { render } from "preact";
import { signal } from "@preact/signals";
import { glance, listen, online, refused } from "./live";
import { Objects, Overview, Plugins, Proxy, Refusals, Resource } from "./pages";
import { Actions, enter } from "./actions";
import { Graph } from "./graph";
import { Diff, History } from "./history";
import { Making } from "./making";
import { Mesh } from "./mesh";
import { link } from "./parts";
import { Proxies, Views } from "./proxies";
import { Pushes } from "./pushes";
import { Services } from "./reach";
import { Where } from "./where";

const at = signal(location.hash);
addEventListener("hashchange", () => (at.value = location.hash));

const pages: [path: string, title: string, key: string][] = [
  ["", "Overview", "1"],
  ["plugins", "Plugins", "2"],
  ["proxies", "Proxies", "3"],
  ["views", "Views", "4"],
  ["pushes", "Pushes", "5"],
  ["refusals", "Refusals", "6"],
  ["objects", "Objects", "7"],
  ["graph", "Graph", "8"],
  ["where", "Where to?", "9"],
  ["actions", "Actions", "0"],
  ["mesh", "Mesh", "m"],
  ["history", "History", "h"],
  ["making", "Under way", "u"],
];

// ownPages are those for who may see proxies of some namespaces alone.
const ownPages = ["", "proxies", "where"];
const shown = () => (glance.value?.own ? pages.filter(([path]) => ownPages.includes(path)) : pages);

const typing = (at: EventTarget | null) => at instanceof HTMLInputElement || at instanceof HTMLTextAreaElement || at instanceof HTMLSelectElement;

// Each page has a key, / leads to the field that finds.
addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.altKey || e.metaKey || typing(e.target)) return;
  const page = shown().find(([, , key]) => key === e.key);
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
    case "mesh":
      return <Mesh key={query} find={arg("find")} />;
    case "history":
      return <History />;
    case "diff":
      return <Diff key={query} from={arg("from")} to={arg("to")} node={arg("node")} />;
    case "making":
      return <Making />;
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
          {shown().map(([p, title, key]) => (
            <a key={p} href={link(p)} aria-current={p === path ? "page" : undefined} title={`key ${key}`}>
              {title}
            </a>
          ))}
        </nav>
        <span id="online" class={online.value ? "good" : "bad"} role="status">
          {online.value ? `revision ${glance.value?.revision.number ?? ""}` : `not connected${refused.value ? `: ${refused.value}` : ""}`}
        </span>
      </header>
      <main tabIndex={0}>
        <Page />
      </main>
    </>
  );
}

listen();
void enter();
render(<App />, document.body);
