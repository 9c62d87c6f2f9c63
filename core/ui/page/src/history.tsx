import { useState } from "preact/hooks";
import { glance } from "./live";
import { causes, kind, type Changes, type Kept } from "./model";
import { Fault, link, List, since, usePage } from "./parts";

const revision = () => glance.value?.revision.number ?? 0;

// useKept are the revisions of which it is known what proxies were served, the newest first.
function useKept(): { kept: Kept[]; fault: string } {
  const { data, fault } = usePage<{ revisions: Kept[] }>("/debug/history", revision());
  return { kept: (data?.revisions ?? []).filter((r) => r.kept).reverse(), fault };
}

// History lists revisions that are kept, each with what it changed.
export function History() {
  const { kept, fault } = useKept();
  const rows = kept.map((k, i) => ({ ...k, before: kept[i + 1]?.push.revision }));
  return (
    <>
      <Fault text={fault} />
      <List<Kept & { before?: number }>
        label="Revisions"
        rows={rows}
        find={(k) => `${k.push.revision} ${causes(k.push)}`}
        columns={[
          { name: "Revision", text: (k) => k.push.revision },
          { name: "Ago", text: (k) => since(k.push.committed) },
          {
            name: "What it changed",
            text: (k) =>
              k.unchanged ? "nothing" : k.before ? <a href={link("diff", { from: String(k.before), to: String(k.push.revision) })}>{`since revision ${k.before}`}</a> : "it is the oldest that is kept",
          },
          { name: "Why", text: (k) => causes(k.push) },
        ]}
      />
    </>
  );
}

interface Line {
  what: string;
  type: string;
  name: string;
  proxies: number;
  proxy: string;
  path: string;
  before: string;
  after: string;
}

// lines has each field that differs, and each resource that came or went.
const lines = (d: Changes): Line[] =>
  d.resources.flatMap((r) => {
    const of = { what: r.what, type: r.type, name: r.name, proxies: r.proxies, proxy: r.proxy ?? "" };
    const fields = (r.fields ?? []).map((f) => ({ ...of, path: f.path, before: f.before ?? "", after: f.after ?? "" }));
    return fields.length > 0 ? fields : [{ ...of, path: "", before: "", after: "" }];
  });

// Diff shows what proxies had at one revision and not at another, field by field.
export function Diff({ from, to, node }: { from: string; to: string; node: string }) {
  const q = new URLSearchParams({ from, to, ...(node === "" ? {} : { proxyID: node }) }).toString();
  const { data, fault } = usePage<Changes>(`/debug/changes?${q}`);
  return (
    <>
      <h2>
        From revision {from} to {to}
        {node ? `, of ${node}` : ""}
      </h2>
      {data && (
        <p id="compared">
          {data.compared === 1 ? "1 proxy is" : `${data.compared} proxies are`} compared; {data.resources.length + (data.more ?? 0)} resources differ
          {data.more ? `, of which ${data.resources.length} are shown` : ""}. <a href={link("history")}>History</a>
        </p>
      )}
      <Fault text={fault} />
      <List<Line>
        label="Differences"
        rows={data ? lines(data) : []}
        find={(l) => `${l.what} ${kind(l.type)} ${l.name} ${l.path} ${l.before} ${l.after}`}
        columns={[
          { name: "Type", text: (l) => kind(l.type) },
          { name: "Resource", text: (l) => (l.proxy ? <a href={link("resource", { node: l.proxy, type: l.type, name: l.name })}>{l.name}</a> : l.name) },
          { name: "What", text: (l) => l.what },
          { name: "Field", text: (l) => l.path },
          { name: "Before", text: (l) => l.before },
          { name: "After", text: (l) => l.after },
          { name: "Proxies", text: (l) => l.proxies },
        ]}
      />
    </>
  );
}

// Differences are those of one resource of a proxy between two of the revisions that are kept.
export function Differences({ node, type, name }: { node: string; type: string; name: string }) {
  const { kept, fault } = useKept();
  const [chosen, choose] = useState<{ from?: string; to?: string }>({});
  const newest = kept[0]?.push.revision;
  const oldest = kept[kept.length - 1]?.push.revision;
  const from = chosen.from ?? (oldest === undefined ? "" : String(oldest));
  const to = chosen.to ?? (newest === undefined ? "" : String(newest));
  const q = new URLSearchParams({ from, to, proxyID: node, type, name }).toString();
  const diff = usePage<Changes>(from === "" || from === to ? null : `/debug/changes?${q}`);
  const found = diff.data?.resources[0];
  const pick = (which: "from" | "to", value: string, text: string) => (
    <label>
      {text}{" "}
      <select name={which} value={value} onChange={(e) => choose({ from, to, [which]: e.currentTarget.value })}>
        {kept.map((k) => (
          <option key={k.push.revision} value={String(k.push.revision)}>
            {k.push.revision}, {since(k.push.committed)} ago
          </option>
        ))}
      </select>
    </label>
  );
  return (
    <section aria-label="How it has changed">
      <h3>How it has changed</h3>
      <Fault text={fault || diff.fault} />
      {kept.length < 2 ? (
        <p>One revision is kept: there is nothing to compare with yet.</p>
      ) : (
        <>
          <div class="filter">
            {pick("from", from, "From revision")} {pick("to", to, "to")}
          </div>
          {from === to && <p>That is the same revision.</p>}
          {diff.data && from !== to && !found && <p id="same">It was the same at both.</p>}
          {found && (
            <div id="fields">
              <p>It was {found.what}{found.more ? `; ${found.more} more fields differ` : ""}.</p>
              <dl>
                {(found.fields ?? []).map((f) => [
                  <dt key={f.path}><code>{f.path}</code></dt>,
                  <dd key={`${f.path} values`}><del>{f.before || "not set"}</del> <ins>{f.after || "not set"}</ins></dd>,
                ])}
              </dl>
            </div>
          )}
        </>
      )}
    </section>
  );
}
