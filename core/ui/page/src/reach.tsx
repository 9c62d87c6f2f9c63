import { useMemo } from "preact/hooks";
import { Drawing, Edges, part, service, type Box } from "./drawing";
import { glance } from "./live";
import type { Reach } from "./model";
import { Fault, link, usePage } from "./parts";

const size = { width: 260, height: 34 };

// most is how many hosts are drawn; the list below has all that the control plane tells.
const most = 60;

// Services draws where a proxy's routes lead: its hosts, and the services that get their requests.
export function Services({ node }: { node: string }) {
  const { data, fault } = usePage<Reach>(`/debug/reach?proxyID=${encodeURIComponent(node)}`, glance.value?.revision.number);
  const { boxes, edges } = useMemo(() => {
    const boxes = new Map<string, Box>([["proxy", { name: node }]]);
    const edges = new Edges();
    for (const h of (data?.hosts ?? []).slice(0, most)) {
      const host = `host ${h.host} ${h.routes}`;
      boxes.set(host, { name: h.host });
      edges.join("proxy", host, h.routes);
      for (const w of h.ways) {
        for (const t of w.to ?? []) {
          boxes.set(`to ${t.cluster}`, { name: service(t.cluster) });
          edges.join(host, `to ${t.cluster}`, `${part(t.percent)} of ${w.rule.rule}`);
        }
        if (w.answer) {
          boxes.set(`says ${w.answer}`, { name: w.answer });
          edges.join(host, `says ${w.answer}`, w.rule.rule);
        }
      }
    }
    return { boxes, edges: edges.list() };
  }, [data]);
  return (
    <>
      <h2>
        Where routes of <a href={link("proxy", { node })}>{node}</a> lead
      </h2>
      <Fault text={fault} />
      {(data?.hosts ?? []).length + (data?.more ?? 0) > most && <p>{`${most} of ${(data?.hosts ?? []).length + (data?.more ?? 0)} hosts are drawn.`}</p>}
      <Drawing boxes={boxes} edges={edges} size={size} label="Graph of services" />
      <details>
        <summary>The same as a list</summary>
        <ul>
          {(data?.hosts ?? []).flatMap((h) =>
            h.ways.map((w, i) => (
              <li key={`${h.routes} ${h.host} ${i}`}>
                {h.host}, {w.rule.rule}: {w.answer ?? (w.to ?? []).map((t) => `${part(t.percent)} to ${service(t.cluster)}`).join(", ")}
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
