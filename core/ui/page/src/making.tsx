import { glance } from "./live";
import type { Plugin, Rollout } from "./model";
import { Fault, link, List, since, usePage } from "./parts";
import { DryRuns } from "./plans";

// unfinished are the states in which a change of a plugin is under way, or may still be taken back.
export const unfinished = /^[a-z]+ (starting|syncing|comparing|switched)\b/;

// Making shows what is under way: the stage of a push, changes of plugins, dry runs, what is held, and pins.
export function Making() {
  const g = glance.value;
  const on = [g?.revision.number, g?.stage, g?.pins, g?.plugins];
  const stage = usePage<Rollout>("/debug/rollout", ...on);
  const plugins = usePage<Plugin[]>("/debug/plugins", ...on);
  const pins = usePage<{ revision: number; proxies: string; since: string; note?: string; pinned: unknown[] }[]>("/debug/pins", ...on);
  const changes = (plugins.data ?? []).filter((p) => unfinished.test(p.lastChange ?? ""));
  const held = (plugins.data ?? []).filter((p) => p.held);
  return (
    <>
      <Fault text={stage.fault || plugins.fault || pins.fault} />
      <h2>Stage of a push</h2>
      {stage.data && <Stage is={stage.data} />}
      <h2>Changes of plugins</h2>
      {changes.length === 0 && <p>None is under way.</p>}
      <ul>
        {changes.map((p) => (
          <li key={p.name}>
            <a href={link("plugins")}>{p.name}</a>: {p.lastChange}
          </li>
        ))}
      </ul>
      <DryRuns />
      <h2>Held until somebody decides</h2>
      {held.length === 0 && <p>Nothing is held.</p>}
      <ul>
        {held.map((p) => (
          <li key={p.name} class="bad">
            {p.name}, for {since(p.held?.since)}: {p.held?.reasons.join("; ")}. <a href={link("actions")}>Decide</a>, or <code>coxswain hold show {p.name}</code>
          </li>
        ))}
      </ul>
      <h2>Pins</h2>
      {(pins.data ?? []).length === 0 && <p>All proxies are served what is live.</p>}
      <ul>
        {(pins.data ?? []).map((p) => (
          <li key={p.proxies}>
            {p.proxies || "all proxies"}: revision {p.revision}, for {since(p.since)}, {p.pinned.length} connected{p.note ? `; ${p.note}` : ""}
          </li>
        ))}
      </ul>
    </>
  );
}

function Stage({ is }: { is: Rollout }) {
  if (is.state === "off") {
    return (
      <p id="stage">
        Pushes have no stages: all proxies are served changes at once (the setting <code>rolloutFirst</code> names those that try them first).
      </p>
    );
  }
  if (is.state === "idle") return <p id="stage">No stage is under way: all proxies are served what is live.</p>;
  const withdrawn = is.state === "withdrawn";
  return (
    <>
      <p id="stage" class={withdrawn ? "bad" : "busy"}>
        {withdrawn ? `Revision ${is.latest} was withdrawn: it is served to nobody.` : `${is.first} first proxies try revision ${is.latest}, for ${since(is.began)}; ${is.behind} of them have not acknowledged it.`}{" "}
        {withdrawn ? "All proxies" : "All others"} are served revision {is.base}, for {since(is.since)}.{is.why ? ` Because: ${is.why}.` : ""}
        {is.metric ? ` The metric is ${is.metric.error ?? is.metric.value}.` : ""}
        {is.ends ? ` It reaches all at ${new Date(is.ends).toLocaleTimeString()}, if nothing is wrong until then.` : ""}
      </p>
      <p>
        <a href={link("diff", { from: String(is.base ?? 0), to: String(is.latest ?? 0) })}>What it changes</a>, <a href={link("actions")}>promote or abort it</a>
      </p>
      <List<{ node: string; types: Record<string, string> | null }>
        label="Proxies that are served what was before"
        rows={is.held}
        find={(p) => p.node}
        columns={[
          { name: "Proxy", text: (p) => <a href={link("proxy", { node: p.node })}>{p.node}</a> },
          { name: "Types", text: (p) => Object.entries(p.types ?? {}).map(([t, by]) => `${t.slice(t.lastIndexOf(".") + 1)}: ${by}`).join(", ") },
        ]}
      />
    </>
  );
}
