import { glance } from "./live";
import { kind, type ProxyStatus, type ProxyType, type View } from "./model";
import { bytes, Fault, link, List, since, useCalm, usePage, useTick } from "./parts";

// states are those of a type, the one first that wants a look most, as in `coxswain top`.
const states = ["refused", "held", "pending", "not sent", "synced"];
const rank = (state: string): number => (states.includes(state) ? states.indexOf(state) : states.length);

// moods are the colours of states.
const moods: Record<string, string> = { refused: "bad", held: "bad", pending: "busy", "not sent": "busy", synced: "good" };

// Line is a proxy: the worst state of its types, since when, and of which types.
interface Line {
  of: ProxyStatus;
  state: string;
  since: string;
  types: string[];
  reasons: string;
}

const lineOf = (of: ProxyStatus): Line => {
  const state = of.types.reduce((worst, t) => (rank(t.state) < rank(worst) ? t.state : worst), "synced");
  const such = of.types.filter((t) => t.state === state);
  return {
    of,
    state,
    since: such.reduce((last, t) => ((t.since ?? "") > last ? (t.since ?? "") : last), ""),
    types: state === "synced" ? [] : such.map((t) => kind(t.type)),
    reasons: of.types.flatMap((t) => (t.refused ? [`${kind(t.type)}: ${t.refused}`] : [])).join("; "),
  };
};

// many is how many proxies are so many that their states are asked for once in ten seconds at most.
const many = 500;

// useStates are the connected proxies and how far they are. Ages go on while somebody looks.
function useStates(): { data: ProxyStatus[] | null; fault: string } {
  useTick(2);
  const g = glance.value;
  const now = [g?.revision.number, g?.proxies, g?.pending, g?.synced, g?.refusing, g?.stage, g?.pins].join(" ");
  return usePage<ProxyStatus[]>("/debug/ledger", useCalm(now, (g?.proxies ?? 0) > many ? 10000 : 0));
}

// Proxies lists proxies, those first that want a look.
export function Proxies() {
  const { data, fault } = useStates();
  const rows = (data ?? []).map(lineOf).sort((a, b) => rank(a.state) - rank(b.state) || b.since.localeCompare(a.since) || a.of.node.localeCompare(b.of.node));
  return (
    <>
      <Fault text={fault} />
      <List<Line>
        label="Proxies"
        rows={rows}
        find={(l) => `${l.of.node} ${l.of.remote} ${l.state} ${l.reasons}`}
        columns={[
          { name: "Proxy", text: (l) => <a href={link("proxy", { node: l.of.node })}>{l.of.node}</a> },
          { name: "State", text: (l) => l.state, class: (l) => moods[l.state] ?? "" },
          { name: "For", text: (l) => since(l.since) },
          { name: "Of", text: (l) => l.types.join(", ") },
          { name: "Acknowledged", text: (l) => Math.max(0, ...l.of.types.map((t) => t.revision ?? 0)) || "" },
          { name: "Protocol", text: (l) => l.of.protocol },
          { name: "Connected", text: (l) => since(l.of.since) },
          { name: "Refuses", text: (l) => l.reasons, class: (l) => (l.reasons === "" ? "" : "bad") },
        ]}
      />
    </>
  );
}

// Row is a view, with its proxies' states: how many have acknowledged what it has now, which state is worst, and since when it has what was sent last.
interface Row {
  view: View;
  synced: number;
  all: number;
  worst: string;
  newest: string;
}

const at = (type: string, id: number): string => `${type} ${id}`;

const rowOf = (view: View, members: ProxyType[]): Row => {
  const last = members.reduce((last, t) => ((t.sentAt ?? "") > (last.sentAt ?? "") ? t : last), members[0] ?? { sentAt: "", sentVersion: "" });
  return {
    view,
    synced: members.filter((t) => t.state === "synced").length,
    all: members.length,
    worst: members.reduce((worst, t) => (rank(t.state) < rank(worst) ? t.state : worst), "synced"),
    newest: members.filter((t) => t.sentAt && t.sentVersion === last.sentVersion).reduce((first, t) => (t.sentAt! < first ? t.sentAt! : first), last.sentAt ?? ""),
  };
};

// Views lists views, those first whose proxies want a look.
export function Views() {
  const { data, fault } = usePage<View[]>("/debug/views", glance.value?.revision.number, glance.value?.proxies);
  const proxies = useStates();
  const members = new Map<string, ProxyType[]>();
  for (const p of proxies.data ?? []) for (const t of p.types) {
    const of = members.get(at(t.type, t.view.id)) ?? [];
    of.push(t);
    members.set(at(t.type, t.view.id), of);
  }
  const rows = (data ?? []).map((v) => rowOf(v, members.get(at(v.type, v.id)) ?? [])).sort((a, b) => rank(a.worst) - rank(b.worst));
  return (
    <>
      <Fault text={fault || proxies.fault} />
      <List<Row>
        label="Views"
        rows={rows}
        find={(r) => `${kind(r.view.type)} ${r.view.label} ${r.view.plugin} ${r.worst}`}
        columns={[
          { name: "Type", text: (r) => kind(r.view.type) },
          { name: "View", text: (r) => r.view.id },
          { name: "What it is for", text: (r) => r.view.label },
          { name: "By", text: (r) => r.view.plugin },
          { name: "Proxies", text: (r) => r.view.connections },
          { name: "Acknowledged by", text: (r) => (r.all === 0 ? "" : `${r.synced} of ${r.all}`), class: (r) => (r.all === 0 ? "" : (moods[r.worst] ?? "")) },
          { name: "Newest sent", text: (r) => since(r.newest) },
          { name: "Resources", text: (r) => r.view.resources },
          { name: "Size", text: (r) => bytes(r.view.bytes) },
        ]}
      />
    </>
  );
}
