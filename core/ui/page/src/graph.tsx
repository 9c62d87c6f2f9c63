import dagre from "@dagrejs/dagre";
import { useMemo, useRef } from "preact/hooks";
import { glance } from "./live";
import { unfinished } from "./making";
import type { Plugin, Rollout, Table, View } from "./model";
import { bytes, Fault, link, usePage, useTick } from "./parts";

interface Node {
  name: string;
  lines: string[];
  state: "good" | "bad" | "busy" | "";
  page: string;
}

interface Edge {
  from: string;
  to: string;
  tables: string[];
}

const proxies = "proxies";
const stage = "stage";
const size = { width: 190, height: 74 };

// most is how many plugins are drawn; the others are in the list alone.
const most = 150;

const calm = ["serving", "asleep", "disabled"];

// mood is how a plugin is.
const mood = (p: Plugin): Node["state"] => {
  if (p.stale || p.away || p.held || (p.faults ?? []).length > 0) return "bad";
  if (p.state === "disabled") return "";
  return calm.includes(p.state) && !unfinished.test(p.lastChange ?? "") ? "good" : "busy";
};

// how is a plugin's state in words: of one that is being changed, how far that is.
const how = (p: Plugin): string => (p.held ? "held" : unfinished.exec(p.lastChange ?? "")?.[0] ?? p.state);

// ofStage is the stage of a push, between who serves proxies and the proxies.
const ofStage = (r: Rollout): Node => ({
  name: stage,
  state: r.state === "withdrawn" ? "bad" : r.state === "idle" ? "good" : "busy",
  lines: r.state === "idle" ? ["of pushes", "none is under way"] : [`${r.state}, revision ${r.latest}`, `tried by ${r.first}, ${r.behind} to answer`, `others: revision ${r.base}`],
  page: "making",
});

// ofProxies are all proxies together.
const ofProxies = (): Node => {
  const g = glance.value;
  return {
    name: proxies,
    state: !g ? "" : g.refusing > 0 ? "bad" : g.pending > 0 ? "busy" : "good",
    lines: g ? [`${g.proxies} connected`, `${g.synced} in sync, ${g.pending} to answer`, `${g.refusing} refuse something`] : [],
    page: "proxies",
  };
};

// edges lead from who publishes a table to who reads it, and from generators to the proxies that they serve: where pushes have stages, through these.
function edges(plugins: Plugin[], tables: Table[], views: View[], staged: boolean): Edge[] {
  const all = new Map<string, Edge>();
  const add = (from: string, to: string, table: string) => {
    const key = `${from}\n${to}`;
    const edge = all.get(key) ?? { from, to, tables: [] };
    if (!edge.tables.includes(table)) edge.tables.push(table);
    all.set(key, edge);
  };
  const publishers = new Map<string, Set<string>>();
  const publishes = (name: string, table: string) => publishers.set(table, (publishers.get(table) ?? new Set()).add(name));
  for (const p of plugins) for (const t of p.publishes ?? []) publishes(p.name, t);
  for (const t of tables) for (const [name, rows] of Object.entries(t.shards ?? {})) if (rows > 0) publishes(name, t.name);
  const known = new Set(plugins.map((p) => p.name));
  for (const p of plugins) for (const t of p.reads ?? []) for (const by of publishers.get(t) ?? []) if (by !== p.name && known.has(by)) add(by, p.name, t);
  for (const v of views) if (known.has(v.plugin)) add(v.plugin, staged ? stage : proxies, v.type.slice(v.type.lastIndexOf(".") + 1));
  const sent = [...all.values()].filter((e) => e.to === stage).flatMap((e) => e.tables);
  for (const type of sent) add(stage, proxies, type);
  return [...all.values()];
}

interface Rate {
  at: number;
  calls: number;
  bytes: number;
  said?: string;
}

// apart is how many seconds are between two readings of which a rate is made; every is how often there is one.
const apart = 1;
const every = 3;

// useRates says for each plugin how much it did a second between the last two readings; nothing before there are two.
function useRates(plugins: Plugin[] | null): Map<string, Rate> {
  const last = useRef(new Map<string, Rate>());
  return useMemo(() => {
    const rates = new Map<string, Rate>();
    const at = performance.now();
    for (const p of plugins ?? []) {
      const now: Rate = { at, calls: p.load?.calls ?? 0, bytes: (p.load?.bytesIn ?? 0) + (p.load?.bytesOut ?? 0) };
      const was = last.current.get(p.name);
      const seconds = was ? (at - was.at) / 1000 : 0;
      if (was && seconds < apart) {
        rates.set(p.name, was);
        continue;
      }
      if (was) now.said = `${Math.round((Math.max(0, now.calls - was.calls) / seconds) * 10) / 10}/s, ${bytes(Math.round(Math.max(0, now.bytes - was.bytes) / seconds))}/s`;
      rates.set(p.name, now);
    }
    return (last.current = rates);
  }, [plugins]);
}

// Graph draws plugins in the order in which rows come to proxies, with their states and rates.
export function Graph() {
  const on = [glance.value?.revision.number, glance.value?.plugins, glance.value?.stage];
  const plugins = usePage<Plugin[]>("/debug/plugins", ...on, useTick(every));
  const tables = usePage<Table[]>("/debug/tables", ...on);
  const views = usePage<View[]>("/debug/views", ...on);
  const rollout = usePage<Rollout>("/debug/rollout", ...on);
  const rates = useRates(plugins.data);
  const staged = rollout.data !== null && rollout.data.state !== "off" ? rollout.data : null;
  const some = (plugins.data ?? []).slice(0, most);
  const between = edges(some, tables.data ?? [], views.data ?? [], staged !== null);
  const nodes = new Map<string, Node>();
  for (const p of some) nodes.set(p.name, { name: p.name, state: mood(p), lines: [p.kind, `${how(p)}, ${p.rows} rows`, rates.get(p.name)?.said ?? ""], page: "plugins" });
  if (staged && between.some((e) => e.to === stage)) nodes.set(stage, ofStage(staged));
  if (between.some((e) => e.to === proxies)) nodes.set(proxies, ofProxies());
  const form = JSON.stringify([[...nodes.keys()], between.map((e) => [e.from, e.to])]);
  const g = useMemo(() => {
    const g = new dagre.graphlib.Graph();
    g.setGraph({ rankdir: "LR", nodesep: 18, ranksep: 90, marginx: 10, marginy: 10 });
    g.setDefaultEdgeLabel(() => ({}));
    for (const name of nodes.keys()) g.setNode(name, { ...size });
    for (const e of between) g.setEdge(e.from, e.to);
    dagre.layout(g);
    return g;
  }, [form]);
  const box = g.graph() as { width?: number; height?: number };
  const width = Math.max(1, box.width ?? 1);
  const height = Math.max(1, box.height ?? 1);
  return (
    <>
      <h2>Plugins, and what flows between them</h2>
      <Fault text={plugins.fault || tables.fault || views.fault || rollout.fault} />
      {(plugins.data ?? []).length > most && <p>{`${most} of ${(plugins.data ?? []).length} are drawn.`}</p>}
      <div class="graph" tabIndex={0} role="region" aria-label="Graph of plugins">
        <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="group" aria-label={`${nodes.size} nodes, ${between.length} edges`}>
          <defs>
            <marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">
              <path d="M0 0 L8 4 L0 8 z" />
            </marker>
          </defs>
          {between.map((e) => {
            const points = (g.edge(e.from, e.to) as { points?: { x: number; y: number }[] }).points ?? [];
            return (
              <path key={`${e.from} ${e.to}`} class="edge" marker-end="url(#arrow)" d={points.map((p, i) => `${i === 0 ? "M" : "L"}${p.x} ${p.y}`).join(" ")}>
                <title>{`${e.from} → ${e.to}: ${e.tables.join(", ")}`}</title>
              </path>
            );
          })}
          {[...nodes.values()].map((n) => {
            const at = g.node(n.name) as { x: number; y: number };
            return (
              <a key={n.name} href={link(n.page)}>
                <g transform={`translate(${at.x - size.width / 2} ${at.y - size.height / 2})`}>
                  <rect class={`node ${n.state}`} width={size.width} height={size.height} rx="6" />
                  <text x="10" y="19" class="name">
                    {n.name.length > 26 ? n.name.slice(0, 25) + "…" : n.name}
                  </text>
                  {n.lines.map((text, i) => (
                    <text key={i} x="10" y={36 + 15 * i}>
                      {text}
                    </text>
                  ))}
                </g>
              </a>
            );
          })}
        </svg>
      </div>
      <details>
        <summary>The same as a list</summary>
        <ul>{between.map((e) => <li key={`${e.from} ${e.to}`}>{`${e.from} → ${e.to}: ${e.tables.join(", ")}`}</li>)}</ul>
      </details>
    </>
  );
}
