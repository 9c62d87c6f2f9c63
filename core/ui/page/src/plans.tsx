import { glance } from "./live";
import { kind, type Counts, type Plan, type Plans, type PlanStep } from "./model";
import { Fault, ms, since, usePage } from "./parts";

// DryRuns shows dry runs: how far those are that are in the making, and what the last that ended found.
export function DryRuns() {
  const { data, fault } = usePage<Plans>("/debug/plans", glance.value?.planned);
  return (
    <>
      <Fault text={fault} />
      <h2>Plans in the making</h2>
      {data?.making.length === 0 && <p>None.</p>}
      <ul id="planning" aria-live="polite">
        {(data?.making ?? []).map((p) => (
          <li key={p.id} class="busy">
            <code>{p.command}</code>, asked for by {p.by}, for {since(p.began)}: {progress(p)}
          </li>
        ))}
        {data?.moreMaking ? <li>and {data.moreMaking} others</li> : null}
      </ul>
      <h2>Plans that ended</h2>
      {data?.ended.length === 0 && <p>None since the control plane started.</p>}
      <div id="planned">{(data?.ended ?? []).map((p) => <Ended key={p.id} plan={p} />)}</div>
    </>
  );
}

// progress is how far a plan is, in words.
const progress = (p: Plan): string => {
  if (p.state === "waiting") return "it waits for its turn";
  const step = p.steps[p.steps.length - 1];
  const number = p.steps.length + (p.moreSteps ?? 0);
  return step ? `step ${number} of ${p.of}, ${step.what} of ${step.plugin}: ${step.state || "begun"}` : "it begins";
};

const refused = (p: Plan): boolean => p.steps.some((s) => (s.guard ?? []).length > 0);

const outcome = (p: Plan): string => {
  if (p.state === "failed") return `failed: ${p.error ?? ""}`;
  if (refused(p)) return "the guard would say no";
  return p.steps.length === 0 ? "nothing would change" : p.steps.map((s) => s.summary || s.state).join("; ");
};

function Ended({ plan: p }: { plan: Plan }) {
  return (
    <details class="plan">
      <summary>
        <code>{p.command}</code>, {since(p.ended)} ago: <span class={p.state === "failed" || refused(p) ? "bad" : "good"}>{outcome(p)}</span>
      </summary>
      <p>
        Asked for by {p.by}. Nothing was changed.{p.cut ? " It was too large to be kept whole; whoever asked was told all of it." : ""}
      </p>
      <ul>
        {p.steps.map((s, i) => (
          <Step key={i} step={s} />
        ))}
        {p.moreSteps ? <li>and {p.moreSteps} more steps</li> : null}
      </ul>
    </details>
  );
}

function Step({ step: s }: { step: PlanStep }) {
  const differing = (c: Counts) => c.added + c.removed + c.changed + (c.rewritten ?? 0) > 0;
  const counts = [...(s.difference?.tables ?? []), ...(s.difference?.types ?? [])].filter(differing);
  const lines: [string, string[] | undefined][] = [
    ["the guard would say no", s.guard],
    ["because", s.reasons],
    ["note", s.notes],
  ];
  return (
    <li>
      {s.plugin} {s.what} {s.state}
      {s.from && s.to && s.from !== s.to ? `: ${s.from} -> ${s.to}` : ""}, after {ms(s.took)}
      {s.summary ? `: ${s.summary}` : ""}
      <ul>
        {counts.map((c, i) => (
          <li key={i}>
            {kind(c.type ?? c.table ?? "")}: {c.before} {"->"} {c.after}: +{c.added} −{c.removed} ~{c.changed}
            {c.proxies === undefined ? "" : `; ${c.views} ${c.views === 1 ? "view" : "views"}, ${c.proxies} ${c.proxies === 1 ? "proxy" : "proxies"}`}
            {c.rewritten ? `; ${c.rewritten} written otherwise that mean the same` : ""}
            <ul>
              {[...(c.examples ?? []), ...(c.fields ?? [])].map((e, j) => (
                <li key={j}>{e}</li>
              ))}
            </ul>
          </li>
        ))}
        {(s.difference?.verdicts ?? []).map((v, i) => (
          <li key={`v${i}`}>{v}</li>
        ))}
        {lines.flatMap(([title, all]) => (all ?? []).map((text, i) => <li key={title + i} class={title === "note" ? undefined : "bad"}>{`${title}: ${text}`}</li>))}
      </ul>
    </li>
  );
}
