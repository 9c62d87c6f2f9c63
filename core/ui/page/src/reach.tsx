import dagre from "@dagrejs/dagre";
import { useMemo } from "preact/hooks";
import { glance } from "./live";
import type { Reach } from "./model";
import { Fault, link, usePage } from "./parts";

const size = { width: 260, height: 34 };

// most is how many hosts are drawn; the list below has all that the control plane tells.
const most = 60;

interface Edge {
  from: string;
  to: string;
  text: string;
}

// short is a text that fits into a node.
const short = (text: string) => (text.length > 38 ? text.slice(0, 37) + "…" : text);

// service is the host of a cluster such as outbound|80|v2|cart.shop, with its port and subset.
const service = (cluster: string): string => {
  const [direction, port, subset, host] = cluster.split("|");
  return direction === "outbound" && host ? `${host}:${port}${subset ? ` (${subset})` : ""}` : cluster;
};

// Services draws where a proxy's routes lead: its hosts, and the services that get their requests.
export function Services({ node }: { node: string }) {
  const { data, fault } = usePage<Reach>(`/debug/reach?proxyID=${encodeURIComponent(node)}`, glance.value?.revision.number);
  const drawn = useMemo(() => {
    const g = new dagre.graphlib.Graph();
    g.setGraph({ rankdir: "LR", nodesep: 8, ranksep: 110, marginx: 10, marginy: 10 });
    g.setDefaultEdgeLabel(() => ({}));
    const names = new Map<string, string>([["proxy", node]]);
    const edges = new Map<string, Edge>();
    const join = (from: string, to: string, text: string) => {
      const key = `${from}\n${to}`;
      const edge = edges.get(key);
      edges.set(key, { from, to, text: edge ? `${edge.text}; ${text}` : text });
    };
    for (const h of (data?.hosts ?? []).slice(0, most)) {
      const host = `host ${h.host} ${h.routes}`;
      names.set(host, h.host);
      join("proxy", host, h.routes);
      for (const w of h.ways) {
        for (const t of w.to ?? []) {
          names.set(`to ${t.cluster}`, service(t.cluster));
          join(host, `to ${t.cluster}`, `${Math.round(t.percent * 10) / 10} % of ${w.rule.rule}`);
        }
        if (w.answer) {
          names.set(`says ${w.answer}`, w.answer);
          join(host, `says ${w.answer}`, w.rule.rule);
        }
      }
    }
    for (const id of names.keys()) g.setNode(id, { ...size });
    for (const e of edges.values()) g.setEdge(e.from, e.to);
    dagre.layout(g);
    return { g, names, edges: [...edges.values()] };
  }, [data]);
  const { g, names, edges } = drawn;
  const box = g.graph() as { width?: number; height?: number };
  const width = Math.max(1, box.width ?? 1);
  const height = Math.max(1, box.height ?? 1);
  return (
    <>
      <h2>
        Where routes of <a href={link("proxy", { node })}>{node}</a> lead
      </h2>
      <Fault text={fault} />
      {(data?.hosts ?? []).length + (data?.more ?? 0) > most && <p>{`${most} of ${(data?.hosts ?? []).length + (data?.more ?? 0)} hosts are drawn.`}</p>}
      <div class="graph" tabIndex={0} role="region" aria-label="Graph of services">
        <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="group" aria-label={`${names.size} nodes, ${edges.length} edges`}>
          {edges.map((e) => {
            const points = (g.edge(e.from, e.to) as { points?: { x: number; y: number }[] }).points ?? [];
            return (
              <path key={`${e.from} ${e.to}`} class="edge" d={points.map((p, i) => `${i === 0 ? "M" : "L"}${p.x} ${p.y}`).join(" ")}>
                <title>{e.text}</title>
              </path>
            );
          })}
          {[...names].map(([id, name]) => {
            const at = g.node(id) as { x: number; y: number };
            return (
              <g key={id} transform={`translate(${at.x - size.width / 2} ${at.y - size.height / 2})`}>
                <rect class="node" width={size.width} height={size.height} rx="6" />
                <text x="10" y="21">
                  {short(name)}
                </text>
                <title>{name}</title>
              </g>
            );
          })}
        </svg>
      </div>
      <details>
        <summary>The same as a list</summary>
        <ul>
          {(data?.hosts ?? []).flatMap((h) =>
            h.ways.map((w, i) => (
              <li key={`${h.routes} ${h.host} ${i}`}>
                {h.host}, {w.rule.rule}: {w.answer ?? (w.to ?? []).map((t) => `${Math.round(t.percent * 10) / 10} % to ${service(t.cluster)}`).join(", ")}
                {w.rule.object ? `, by ${w.rule.kind} ${w.rule.object}` : ""}
                {w.rule.source ? <code> {w.rule.source}</code> : ""}
              </li>
            )),
          )}
        </ul>
      </details>
    </>
  );
}
