import { useMemo, useState } from "preact/hooks";
import { glance } from "./live";
import { kind, type ConfigObject, type Explanation, type Glance, type Ledger, type Plugin, type Push, type Refusal } from "./model";
import { Differences } from "./history";
import { bytes, Card, Fault, link, List, many, ms, since, usePage } from "./parts";

const revision = () => glance.value?.revision.number ?? 0;

// Overview is what is to be seen at first glance.
export function Overview() {
  const g = glance.value;
  const refusals = usePage<Refusal[]>(g && !g.own ? "/debug/refusals" : null, g?.refusals, g?.refusing);
  if (!g) return <p>Waiting for the control plane…</p>;
  if (g.own) return <Own namespaces={g.own} glance={g} />;
  const ill = g.plugins.filter((p) => (p.ill ?? []).length > 0);
  return (
    <>
      {g.notReady.length > 0 && <Fault text={`Not ready: ${g.notReady.join("; ")}`} />}
      <div class="cards">
        <Sync glance={g} />
        <Card title="Last push" state={g.push?.held ? "bad" : g.push && g.push.waiting > 0 ? "busy" : "good"}>
          {g.push ? <Cause push={g.push} /> : <p>Nothing was pushed yet.</p>}
        </Card>
        <Card title="Refused or held" state={g.refusals + g.faulty + g.pins > 0 ? "bad" : "good"}>
          <p class="large" id="refused">
            {many(g.refusals, "resource")}, <a href={link("objects")}>{many(g.faulty, "object")}</a>
          </p>
          {g.faulty > 0 && (
            <>
              <p id="unserved">{g.unserved === 0 ? "Of each object a version is served that was good." : `Nothing is served of ${many(g.unserved, "object")}.`}</p>
              <ul>
                {(g.wrong ?? []).map((text) => (
                  <li key={text} class="bad">
                    {text}
                  </li>
                ))}
                {g.faulty > (g.wrong ?? []).length && <li>and others</li>}
              </ul>
            </>
          )}
          <p>
            {g.pins} pins{g.stage === "" ? "" : `; stage: ${g.stage}`}
            {g.planning > 0 ? `; ${g.planning} ${g.planning === 1 ? "plan" : "plans"} in the making` : ""}. <a href={link("refusals")}>Refusals</a>, <a href={link("making")}>what is under way</a>
          </p>
        </Card>
        <Card title="Plugins" state={ill.length > 0 ? "bad" : "good"}>
          <p class="large" id="plugins">
            {ill.length === 0 ? `${g.plugins.length} are well` : `${ill.length} of ${g.plugins.length} are ill`}
          </p>
          <ul>
            {ill.map((p) => (
              <li key={p.name}>
                <a href={link("plugins")}>{p.name}</a>: {(p.ill ?? []).join("; ")}
              </li>
            ))}
          </ul>
        </Card>
      </div>
      <Fault text={refusals.fault} />
    </>
  );
}

function Sync({ glance: g }: { glance: Glance }) {
  return (
    <Card title="In sync" state={g.refusing > 0 ? "bad" : g.pending > 0 ? "busy" : "good"}>
      <p class="large" id="sync">
        {g.synced} of {g.proxies} proxies
      </p>
      <p>
        {g.pending} to answer, {g.refusing} refuse something. <a href={link("proxies")}>Proxies</a>
      </p>
    </Card>
  );
}

// Own is the overview of who may see proxies of some namespaces alone.
function Own({ namespaces, glance }: { namespaces: string[]; glance: Glance }) {
  return (
    <>
      <div class="cards">
        <Sync glance={glance} />
      </div>
      <p id="own">
        You see proxies of {namespaces.length === 1 ? "namespace" : "namespaces"} {namespaces.join(", ")}: the rest is for callers of the control plane's own namespace.
      </p>
    </>
  );
}

function Cause({ push }: { push: Push }) {
  const rows = push.rows ?? [];
  return (
    <>
      <p class="large" id="push">
        Revision {push.revision}
        {push.held ? ", held" : ""}
      </p>
      <p>
        {since(push.committed)} ago, {push.kind}, made in {ms(push.took)}; {push.proxies} proxies, {push.waiting} still to answer.
      </p>
      <ul>
        {rows.slice(0, 5).map((r) => (
          <li key={r.table + r.key}>
            {r.what}: {r.table === "faults" ? "a mistake at" : kind(r.table)} {r.key}
            {r.source && r.source !== r.key ? ` (${r.source})` : ""}
          </li>
        ))}
        {rows.length > 5 && <li>and others</li>}
      </ul>
      <a href={link("pushes")}>Pushes</a>
    </>
  );
}

const ills = (p: Plugin): string => p.away?.why ?? p.held?.reasons.join("; ") ?? p.staleWhy ?? p.lastError ?? (p.faults ?? []).map((f) => `${f.what}: ${f.reason}`).join("; ");

export function Plugins() {
  const { data, fault } = usePage<Plugin[]>("/debug/plugins", revision());
  return (
    <>
      <Fault text={fault} />
      <List<Plugin>
        label="Plugins"
        rows={data ?? []}
        find={(p) => `${p.name} ${p.kind} ${p.state} ${ills(p)}`}
        columns={[
          { name: "Name", text: (p) => p.name },
          { name: "Kind", text: (p) => p.kind },
          { name: "Carrier", text: (p) => p.carrier },
          { name: "State", text: (p) => p.state, class: (p) => (["serving", "asleep", "disabled"].includes(p.state) && !p.stale && !p.away && !p.held ? "good" : "bad") },
          { name: "Since", text: (p) => since(p.since) },
          { name: "Rows", text: (p) => p.rows },
          { name: "Restarts", text: (p) => p.restarts },
          { name: "Memory", text: (p) => (p.memory ? bytes(p.memory) : "") },
          { name: "What is wrong", text: ills },
        ]}
      />
    </>
  );
}

interface Resource {
  type: string;
  name: string;
  version: string;
  state: string;
  since?: string;
  reason?: string;
}

export function Proxy({ node }: { node: string }) {
  const { data, fault } = usePage<Ledger[]>(`/debug/ledger?proxyID=${encodeURIComponent(node)}`, revision());
  const rows: Resource[] = (data ?? []).flatMap((l) => l.types.flatMap((t) => t.resources.map((r) => ({ type: t.type, ...r }))));
  return (
    <>
      <h2>{node}</h2>
      <p>
        <a href={link("services", { node })}>Where its routes lead</a>, <a href={link("where", { node })}>where would a request go?</a>
      </p>
      <Fault text={fault} />
      <List<Resource>
        label={`Resources of ${node}`}
        rows={rows}
        find={(r) => `${kind(r.type)} ${r.name} ${r.state} ${r.reason ?? ""}`}
        columns={[
          { name: "Type", text: (r) => kind(r.type) },
          { name: "Resource", text: (r) => <a href={link("resource", { node, type: r.type, name: r.name })}>{r.name}</a> },
          { name: "State", text: (r) => r.state, class: (r) => (r.state === "acked" ? "good" : r.state === "refused" ? "bad" : "") },
          { name: "Since", text: (r) => since(r.since) },
          { name: "Version", text: (r) => r.version },
          { name: "Why refused", text: (r) => r.reason ?? "" },
        ]}
      />
    </>
  );
}

export function Resource({ node, type, name }: { node: string; type: string; name: string }) {
  const q = new URLSearchParams({ proxyID: node, type, name }).toString();
  const { data, fault } = usePage<Explanation>(`/debug/explain?${q}`, revision());
  return (
    <>
      <h2>
        {kind(type)} {name}
      </h2>
      <p>
        of <a href={link("proxy", { node })}>{node}</a>
      </p>
      <Fault text={fault} />
      {data && (
        <>
          <p>
            Made by {data.plugin}
            {data.view ? ` for view ${data.view.id} (${data.view.label})` : ""}
            {data.version ? `, version ${data.version}` : "; there is no such resource"}
            {(data.patches ?? []).length > 0 ? `, changed by ${(data.patches ?? []).join(", ")}` : ""}.
          </p>
          {data.unknown && <p>{data.unknown}; its generator reads {(data.reads ?? []).join(", ")}.</p>}
          <h3>It was made from</h3>
          <ul>
            {(data.rows ?? []).map((r) => (
              <li key={r.table + r.key}>
                {kind(r.table)} {r.key}
                {r.source ? `, ${r.source}` : ""}
                {r.plugin ? `, by ${r.plugin}` : ""}
                {r.revision ? `, since revision ${r.revision}` : ""}
                {r.gone ? ", gone" : ""}
              </li>
            ))}
            {data.more && <li>and others</li>}
          </ul>
          {(data.missing ?? []).length > 0 && <h3>Looked for in vain</h3>}
          <ul>{(data.missing ?? []).map((r) => <li key={r.table + r.key}>{kind(r.table)} {r.key}</li>)}</ul>
        </>
      )}
      {glance.value && !glance.value.own && <Differences node={node} type={type} name={name} />}
    </>
  );
}

export function Refusals() {
  const { data, fault } = usePage<Refusal[]>("/debug/refusals", revision(), glance.value?.refusals);
  return (
    <>
      <Fault text={fault} />
      <List<Refusal>
        label="Refusals"
        rows={data ?? []}
        find={(r) => `${kind(r.type)} ${r.name} ${r.reason}`}
        columns={[
          { name: "Type", text: (r) => kind(r.type) },
          { name: "Resource", text: (r) => (r.proxies[0] ? <a href={link("resource", { node: r.proxies[0], type: r.type, name: r.name })}>{r.name}</a> : r.name) },
          { name: "Refused by", text: (r) => r.refusing },
          { name: "Since", text: (r) => since(r.since) },
          { name: "Held", text: (r) => (r.held ? "held" : ""), class: (r) => (r.held ? "bad" : "") },
          { name: "Why", text: (r) => r.reason },
        ]}
      />
    </>
  );
}

// written are the objects that somebody wrote: what is wrong with one that a plugin derived stands at the one that it was derived from, if that is there.
function written(all: ConfigObject[]): ConfigObject[] {
  const own = all.filter((o) => !o.of).map((o) => ({ ...o, faults: [...(o.faults ?? [])] }));
  const at = new Map(own.map((o) => [`${o.group ?? ""}/${o.kind}\n${o.key}`, o]));
  const lone: ConfigObject[] = [];
  for (const o of all) {
    if (!o.of) continue;
    const from = at.get(`${o.of.table}\n${o.of.key}`);
    if (!from) {
      lone.push(o);
      continue;
    }
    const first = o.faults?.[0];
    if (!first) continue;
    if (from.served && !from.faults.some((f) => f.severity === first.severity)) from.state = o.state;
    from.faults.push(...(o.faults ?? []));
  }
  return [...own, ...lone];
}

export function Objects() {
  const { data, fault } = usePage<ConfigObject[]>("/debug/configs", revision());
  const [derived, setDerived] = useState(false);
  const rows = useMemo(() => (derived ? (data ?? []) : written(data ?? [])), [data, derived]);
  const wrong = (o: ConfigObject) => (o.faults ?? []).map((f) => `${f.severity}: ${f.message}`).join("; ");
  return (
    <>
      <Fault text={fault} />
      <p>
        <label>
          <input type="checkbox" name="derived" checked={derived} onChange={(e) => setDerived(e.currentTarget.checked)} /> show what plugins derived
        </label>
      </p>
      <List<ConfigObject>
        label="Objects"
        rows={rows}
        find={(o) => `${o.kind} ${o.key} ${o.state} ${wrong(o)}`}
        columns={[
          { name: "Kind", text: (o) => o.kind },
          { name: "Object", text: (o) => o.key },
          { name: "State", text: (o) => o.state, class: (o) => (o.state === "ok" ? "good" : "bad") },
          { name: "Served", text: (o) => (o.served ? "yes" : "no") },
          { name: "Place", text: (o) => o.source ?? "" },
          ...(derived ? [{ name: "Derived from", text: (o: ConfigObject) => (o.of ? `${kind(o.of.table)} ${o.of.key}` : "") }] : []),
          { name: "What is wrong", text: wrong },
        ]}
      />
    </>
  );
}
