import dagre from "@dagrejs/dagre";
import { useMemo } from "preact/hooks";

// Box is a node of a drawing: a name, lines below it, where it leads to, and how it is.
export interface Box {
  name: string;
  lines?: string[];
  href?: string;
  state?: "good" | "bad" | "busy" | "";
}

export interface Edge {
  from: string;
  to: string;
  text: string;
}

interface Size {
  width: number;
  height: number;
}

// short is a text that fits into a box.
const short = (text: string, width: number) => {
  const most = Math.floor(width / 6.8);
  return text.length > most ? text.slice(0, most - 1) + "…" : text;
};

// Drawing draws boxes from left to right, with edges that say on hovering what they are.
export function Drawing({ boxes, edges, size, label }: { boxes: Map<string, Box>; edges: Edge[]; size: Size; label: string }) {
  const g = useMemo(() => {
    const g = new dagre.graphlib.Graph();
    g.setGraph({ rankdir: "LR", nodesep: 8, ranksep: 110, marginx: 10, marginy: 10 });
    g.setDefaultEdgeLabel(() => ({}));
    for (const id of boxes.keys()) g.setNode(id, { ...size });
    for (const e of edges) g.setEdge(e.from, e.to);
    dagre.layout(g);
    return g;
  }, [boxes, edges]);
  const box = g.graph() as Partial<Size>;
  const width = Math.max(1, box.width ?? 1);
  const height = Math.max(1, box.height ?? 1);
  return (
    <div class="graph" tabIndex={0} role="region" aria-label={label}>
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="group" aria-label={`${boxes.size} nodes, ${edges.length} edges`}>
        {edges.map((e) => {
          const points = (g.edge(e.from, e.to) as { points?: { x: number; y: number }[] } | undefined)?.points ?? [];
          return (
            <path key={`${e.from} ${e.to}`} class="edge" d={points.map((p, i) => `${i === 0 ? "M" : "L"}${p.x} ${p.y}`).join(" ")}>
              <title>{e.text}</title>
            </path>
          );
        })}
        {[...boxes].map(([id, b]) => {
          const at = g.node(id) as { x: number; y: number };
          const drawn = (
            <g transform={`translate(${at.x - size.width / 2} ${at.y - size.height / 2})`}>
              <rect class={`node ${b.state ?? ""}`} width={size.width} height={size.height} rx="6" />
              <text x="10" y="20" class={b.lines ? "name" : undefined}>
                {short(b.name, size.width)}
              </text>
              {(b.lines ?? []).map((text, i) => (
                <text key={i} x="10" y={37 + 15 * i}>
                  {short(text, size.width)}
                </text>
              ))}
              <title>{[b.name, ...(b.lines ?? [])].join("\n")}</title>
            </g>
          );
          return b.href ? (
            <a key={id} href={b.href}>
              {drawn}
            </a>
          ) : (
            <g key={id}>{drawn}</g>
          );
        })}
      </svg>
    </div>
  );
}

// Edges gathers edges: those between the same two boxes become one.
export class Edges {
  private readonly all = new Map<string, Edge>();

  join(from: string, to: string, text: string): void {
    const key = `${from}\n${to}`;
    const edge = this.all.get(key);
    this.all.set(key, { from, to, text: edge ? `${edge.text}; ${text}` : text });
  }

  list(): Edge[] {
    return [...this.all.values()];
  }
}

// service is the host of a cluster such as outbound|80|v2|cart.shop, with its port and subset.
export const service = (cluster: string): string => {
  const [direction, port, subset, host] = cluster.split("|");
  return direction === "outbound" && host ? `${host}:${port}${subset ? ` (${subset})` : ""}` : cluster;
};

// part is a share in percent.
export const part = (percent: number): string => `${Math.round(percent * 10) / 10} %`;
