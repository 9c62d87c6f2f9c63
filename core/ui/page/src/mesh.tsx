import { useEffect, useMemo, useState } from "preact/hooks";
import { Drawing, Edges, part, service, type Box } from "./drawing";
import { glance } from "./live";
import type { Client, MeshHost, Topology } from "./model";
import { Fault, link, List, useCalm, usePage } from "./parts";

const size = { width: 280, height: 52 };

// most is how many hosts, and how many edges, are drawn; the list has all that the control plane tells.
const most = 60;
const mostEdges = 500;

// calm is how long, in milliseconds, a drawing stays as it is though revisions come all the time.
const calm = 5000;

const written = (h: MeshHost) => h.ways.some((w) => w.rule.object !== "");

const whose = (c: Client): string => {
  const all = c.workloads.length + (c.more ?? 0);
  return all === 1 ? c.workloads[0] ?? "" : `${c.workloads[0] ?? ""} and ${all - 1} others`;
};

const count = (n: number, one: string, many: string) => `${n} ${n === 1 ? one : many}`;

// draw leads from proxies by hosts whose routes somebody wrote to services, and from those straight to the services that have none.
function draw(t: Topology, hosts: MeshHost[]): { boxes: Map<string, Box>; edges: Edges } {
  const boxes = new Map<string, Box>();
  const edges = new Edges();
  const behind = new Map(t.services.map((s) => [s.cluster, s]));
  const target = (cluster: string): string => {
    const s = behind.get(cluster);
    const names = s?.workloads ?? [];
    const by = names.length > 0 ? `: ${names.join(", ")}` : "";
    boxes.set(`to ${cluster}`, { name: service(cluster), lines: [`${count(s?.endpoints ?? 0, "endpoint", "endpoints")}${by}`] });
    return `to ${cluster}`;
  };
  for (const [n, h] of hosts.entries()) {
    const from = h.from.map((i) => {
      const c = t.clients[i];
      if (c) boxes.set(`from ${i}`, { name: whose(c), lines: [`${count(c.proxies, "proxy", "proxies")}${c.type ? `, ${c.type}` : ""}`], state: c.type === "router" ? "good" : "" });
      return `from ${i}`;
    });
    let starts = from;
    if (written(h)) {
      const host = `host ${n}`;
      const rules = [...new Set(h.ways.map((w) => w.rule.object).filter((o) => o !== ""))];
      boxes.set(host, { name: h.host, lines: [rules.join(", ")], state: "busy", href: link("where", { url: `http://${h.host}/` }) });
      for (const f of from) edges.join(f, host, h.routes);
      starts = [host];
    }
    for (const w of h.ways) {
      for (const to of w.to ?? []) for (const s of starts) edges.join(s, target(to.cluster), `${part(to.percent)} of ${w.rule.rule}`);
      if (w.answer) {
        boxes.set(`says ${w.answer}`, { name: w.answer });
        for (const s of starts) edges.join(s, `says ${w.answer}`, w.rule.rule);
      }
    }
  }
  return { boxes, edges };
}

const leads = (h: MeshHost): string => [...new Set(h.ways.flatMap((w) => [...(w.to ?? []).map((t) => service(t.cluster)), ...(w.answer ? [w.answer] : [])]))].join(", ");

const rules = (h: MeshHost): string => [...new Set(h.ways.filter((w) => w.rule.object !== "").map((w) => `${w.rule.kind} ${w.rule.object}${w.rule.source ? ` ${w.rule.source}` : ""}`))].join(", ");

// Mesh draws the services of all proxies with the routes between them, and finds in them.
export function Mesh({ find }: { find: string }) {
  const [typed, type] = useState(find);
  const [wanted, want] = useState(find);
  useEffect(() => {
    const later = setTimeout(() => want(typed), 300);
    return () => clearTimeout(later);
  }, [typed]);
  const at = useCalm(`${glance.value?.revision.number} ${glance.value?.proxies}`, calm);
  const [again, ask] = useState(0);
  const { data, fault } = usePage<Topology>(`/debug/topology?find=${encodeURIComponent(wanted)}`, at, again);
  useEffect(() => {
    if (!data) return;
    const later = setTimeout(() => ask((n) => n + 1), data.revision === glance.value?.revision.number ? 6 * calm : calm); // an answer may be a moment old
    return () => clearTimeout(later);
  }, [data]);
  const { boxes, edges, drawn } = useMemo(() => {
    const hosts = data?.hosts ?? [];
    const some = wanted === "" && hosts.some(written) ? hosts.filter(written) : hosts;
    const drawn = some.slice(0, most);
    const { boxes, edges } = data ? draw(data, drawn) : { boxes: new Map<string, Box>(), edges: new Edges() };
    return { boxes, edges: edges.list().slice(0, mostEdges), drawn: drawn.length };
  }, [data]);
  return (
    <>
      <h2>Services, and the routes between them</h2>
      <div class="filter">
        <label>
          Find a host, service, rule or workload <input type="search" id="find" value={typed} onInput={(e) => type(e.currentTarget.value)} />
        </label>
        {data && (
          <span id="mesh" aria-live="polite">
            {count(data.proxies, "proxy", "proxies")}, {count(data.clients.length, "set of routes", "sets of routes")}, {count(data.all, "host", "hosts")}
            {data.more ? `, of which ${data.hosts.length} are listed` : ""}, {drawn} drawn
            {data.unread ? `; ${data.unread} proxies were not looked at` : ""}
            {wanted === "" && data.hosts.some(written) ? "; those that have no rules are in the list" : ""}
          </span>
        )}
      </div>
      <Fault text={fault} />
      <Drawing boxes={boxes} edges={edges} size={size} label="Graph of the mesh" />
      <List<MeshHost>
        label="Hosts of the mesh"
        rows={data?.hosts ?? []}
        columns={[
          { name: "Host", text: (h) => h.host },
          { name: "Routes", text: (h) => h.routes },
          { name: "Proxies", text: (h) => h.proxies },
          { name: "From", text: (h) => h.from.map((i) => (data?.clients[i] ? whose(data.clients[i]) : "")).join("; ") },
          { name: "Leads to", text: leads },
          { name: "Rules", text: rules },
        ]}
      />
    </>
  );
}
