import { Chart } from "./chart";
import { glance } from "./live";
import { causes, type Push } from "./model";
import { bytes, Fault, List, ms, since, usePage, useTick } from "./parts";

// Pushes draws pushes over time, and lists them with their causes.
export function Pushes() {
  useTick(5); // ages go on
  const { data, fault } = usePage<Push[]>("/debug/pushes", glance.value?.revision.number, glance.value?.push?.waiting);
  return (
    <>
      <Fault text={fault} />
      <Chart pushes={data ?? []} />
      <List<Push>
        label="Pushes"
        rows={[...(data ?? [])].reverse()}
        find={(p) => `${p.revision} ${p.kind} ${causes(p)}`}
        columns={[
          { name: "Revision", text: (p) => p.revision },
          { name: "Ago", text: (p) => since(p.committed) },
          { name: "Kind", text: (p) => (p.held ? "held" : p.kind), class: (p) => (p.held ? "bad" : "") },
          { name: "Made in", text: (p) => ms(p.took) },
          { name: "Proxies", text: (p) => p.proxies },
          { name: "To answer", text: (p) => p.waiting },
          { name: "Refused", text: (p) => p.refusals ?? 0, class: (p) => (p.refusals ? "bad" : "") },
          { name: "Sent", text: (p) => bytes(Object.values(p.sent ?? {}).reduce((n, s) => n + s.bytes, 0)) },
          { name: "Why", text: causes },
        ]}
      />
    </>
  );
}
