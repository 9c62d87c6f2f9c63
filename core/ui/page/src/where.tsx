import { useState } from "preact/hooks";
import { glance } from "./live";
import type { Route, Share, Stream } from "./model";
import { Fault, usePage } from "./parts";

const ways: [value: string, text: string][] = [
  ["", "what is usual for the proxy"],
  ["outbound", "what the sidecar's workload sends"],
  ["inbound", "what others send to the sidecar's workload"],
];

const fields: [name: string, label: string, example: string][] = [
  ["to", "Client connects to", "10.0.0.1:443"],
  ["from", "Client's address", "10.0.0.9"],
  ["sni", "TLS server name", "shop.example"],
  ["peer", "Client certificate's URI", "spiffe://cluster.local/ns/shop/sa/cart"],
];

// Where asks where a request through a proxy would go, and draws its way.
export function Where({ node, url }: { node: string; url: string }) {
  const streams = usePage<{ streams: Stream[] }>("/debug/streams", glance.value?.proxies);
  const [asked, ask] = useState(node && url ? `proxyID=${encodeURIComponent(node)}&url=${encodeURIComponent(url)}` : "");
  const { data, fault } = usePage<Route>(asked === "" ? null : `/debug/route?${asked}`);
  const submit = (e: SubmitEvent) => {
    e.preventDefault();
    const given = new FormData(e.currentTarget as HTMLFormElement);
    const query = new URLSearchParams();
    for (const [name, value] of given) {
      const text = String(value).trim();
      if (text === "") continue;
      if (name === "way") query.set(text, "true");
      else if (name === "header") for (const line of text.split("\n")) query.append("header", line);
      else query.set(name, text);
    }
    ask(query.toString());
  };
  return (
    <>
      <h2>Where would this request go?</h2>
      <form class="where" onSubmit={submit}>
        <label>
          Proxy <input name="proxyID" list="nodes" required defaultValue={node} placeholder="web-7d9.shop" />
        </label>
        <datalist id="nodes">{[...new Set((streams.data?.streams ?? []).map((s) => s.node))].map((n) => <option key={n} value={n} />)}</datalist>
        <label>
          Method <input name="method" defaultValue="GET" size={8} />
        </label>
        <label>
          URL <input name="url" required defaultValue={url} placeholder="http://shop.example/cart or tcp://10.0.0.1:9000" />
        </label>
        <label>
          Headers, one a line <textarea name="header" rows={2} placeholder="end-user: jason" />
        </label>
        <label>
          Direction{" "}
          <select name="way">
            {ways.map(([value, text]) => (
              <option key={value} value={value}>
                {text}
              </option>
            ))}
          </select>
        </label>
        {fields.map(([name, label, example]) => (
          <label key={name}>
            {label} <input name={name} placeholder={example} />
          </label>
        ))}
        <button type="submit">Show its way</button>
      </form>
      <Fault text={streams.fault} />
      <Fault text={fault} />
      {data && fault === "" && <Way route={data} />}
    </>
  );
}

// decisive is the rule that the outcome comes from; undefined: it is nobody's.
const decisive = (route: Route) => {
  const refused = (route.outcome.Authorizations ?? []).some((a) => a.Denied);
  const of = (kind: string) => route.rules.find((r) => r.kind === kind);
  return refused ? of("AuthorizationPolicy") : of("VirtualService") ?? of("DestinationRule");
};

function Way({ route }: { route: Route }) {
  const { outcome: o } = route;
  const rule = decisive(route);
  return (
    <section aria-label="Its way" class="way">
      <ol class="walk">
        {(o.Steps ?? []).map((s, i) => (
          <li key={i}>
            <span class="at">{s.At}</span>
            <strong>{s.Chosen}</strong>
            <span>{s.Because}</span>
          </li>
        ))}
        <li class={o.Verdict === "forwarded" ? "end good" : "end bad"}>
          <span class="at">{o.Verdict}</span>
          <strong id="verdict">{o.Reason}</strong>
          {o.Answer.Status > 0 && (
            <span>
              status {o.Answer.Status} {o.Answer.Details}
            </span>
          )}
          {(o.Upstream.Clusters ?? []).map((s) => <Target key={s.Cluster} share={s} />)}
          {(o.Upstream.Mirrors ?? []).map((s) => <Target key={`copy ${s.Cluster}`} share={s} copy />)}
        </li>
      </ol>
      <h3>Rules that it came to</h3>
      {route.rules.length === 0 && <p>None that somebody wrote: defaults decide.</p>}
      <ul id="rules">
        {route.rules.map((r, i) => (
          <li key={i} class={r === rule ? "decisive" : undefined}>
            {r.kind} {r.object}: {r.rule}
            {r.source ? <code> {r.source}</code> : ""}
            {r === rule ? " (it decides)" : ""}
          </li>
        ))}
      </ul>
      {(o.Chances ?? []).length > 0 && <h3>Now and then</h3>}
      <ul>{(o.Chances ?? []).map((c, i) => <li key={i}>{`${c.Percent} % get ${c.Status}: ${c.Reason}`}</li>)}</ul>
      {(o.Assumes ?? []).length > 0 && <h3>If</h3>}
      <ul>{(o.Assumes ?? []).map((a, i) => <li key={i}>{a}</li>)}</ul>
    </section>
  );
}

function Target({ share, copy }: { share: Share; copy?: boolean }) {
  return (
    <div class="target">
      {copy ? "a copy: " : ""}
      {Math.round(share.Percent * 10) / 10} % to {share.Cluster}
      {share.Fault ? <em> {share.Fault}</em> : ""}
      <ul>
        {(share.Endpoints ?? []).slice(0, 20).map((e) => (
          <li key={e.Address}>
            {Math.round(e.Percent * 10) / 10} % {e.Address} {e.Locality}
          </li>
        ))}
        {(share.Endpoints ?? []).length > 20 && <li>and {(share.Endpoints ?? []).length - 20} others</li>}
      </ul>
    </div>
  );
}
