import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { glance } from "./live";
import type { Plugin } from "./model";
import { Fault, since, usePage } from "./parts";

// may says whether the control plane lets pages change something, and as whom somebody is logged in; token goes with each change.
export const may = signal<{ actions: boolean; by: string }>({ actions: false, by: "" });
const kept = "coxswain-token";
const token = () => sessionStorage.getItem(kept) ?? "";

// ask sends what changes something: as JSON with the login's token, which no other page can.
async function ask(path: string, method: "POST" | "DELETE", body: unknown): Promise<{ ok: boolean; text: string }> {
  const answer = await fetch(path, {
    method,
    headers: { "Content-Type": "application/json", "X-Coxswain-Token": token() },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  if (answer.status === 401 && path !== "login") may.value = { ...may.value, by: "" };
  return { ok: answer.ok, text };
}

// enter logs in where the address has a code, which it doesn't keep, and finds out who is logged in.
export async function enter(): Promise<void> {
  const [path = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  if (path === "login") {
    const code = new URLSearchParams(query).get("code") ?? "";
    history.replaceState(null, "", "#/actions");
    dispatchEvent(new HashChangeEvent("hashchange"));
    const { ok, text } = await ask("login", "POST", { code });
    if (ok) {
      const is = JSON.parse(text) as { by: string; token: string };
      sessionStorage.setItem(kept, is.token);
      may.value = { actions: true, by: is.by };
      return;
    }
    done.value = [{ command: "log in", ok: false, text }];
  }
  const answer = await fetch("session", { headers: { "X-Coxswain-Token": token() } });
  if (!answer.ok) return;
  const is = (await answer.json()) as { actions: boolean; by?: string };
  may.value = { actions: is.actions, by: is.by ?? "" };
}

// Act is a change: the command that it is, and what is asked for.
interface Act {
  command: string;
  path: string;
  method: "POST" | "DELETE";
  body: Record<string, unknown>;
}

interface Done {
  command: string;
  ok: boolean;
  text: string;
}

// done is what became of what was done here, the newest first.
const done = signal<Done[]>([]);

// said is what an answer says in words.
const said = (text: string): string => {
  try {
    const is = JSON.parse(text) as { error?: string; change?: { state?: string; summary?: string; guard?: string[] }; status?: { state?: string } };
    const no = (is.change?.guard ?? []).map((why) => `the guard would say no: ${why}`);
    return is.error ?? [is.change?.state, is.change?.summary, ...no, is.status?.state].filter(Boolean).join(": ");
  } catch {
    return text.trim();
  }
};

// quoted is an argument as a shell takes it.
const quoted = (text: string): string => (/^[\w./:@=,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

const at = encodeURIComponent;

const ofPlugin = (what: string, name: string, dryRun = false): Act => ({
  command: `coxswain plugins ${what} ${quoted(name)}${dryRun ? " --dry-run" : ""}`,
  path: `do/plugins/${at(name)}/${what}`,
  method: "POST",
  body: dryRun ? { dryRun } : {},
});
const ofHold = (what: string, name: string): Act => ({ command: `coxswain hold ${what} ${quoted(name)}`, path: `do/holds/${at(name)}/${what}`, method: "POST", body: {} });
const pin = (revision: number, proxies: string, endpoints: boolean): Act => ({
  command: `coxswain pin ${revision}${proxies ? ` --proxies ${quoted(proxies)}` : ""}${endpoints ? " --endpoints" : ""}`,
  path: "do/pins",
  method: "POST",
  body: { revision, proxies, endpoints },
});
const unpin = (proxies: string): Act => ({ command: `coxswain unpin --proxies ${quoted(proxies)}`, path: "do/pins", method: "DELETE", body: { proxies } });
const stage = (what: string): Act => ({ command: `coxswain rollout ${what}`, path: `do/rollout/${what}`, method: "POST", body: {} });

// Actions are what may be changed, each as the command that it is, which is asked about before it is done.
export function Actions() {
  const [sure, propose] = useState<Act | null>(null);
  const times = done.value.length;
  const on = [glance.value?.revision.number, glance.value?.plugins, glance.value?.pins, glance.value?.stage, times];
  const plugins = usePage<Plugin[]>("/debug/plugins", ...on);
  const pins = usePage<{ revision: number; proxies: string; since: string; pinned: unknown[] }[]>("/debug/pins", ...on);
  const { actions, by } = may.value;
  const Do = ({ act }: { act: Act }) => (
    <button type="button" onClick={() => propose(act)} disabled={by === ""}>
      <code>{act.command}</code>
    </button>
  );
  const submit = (e: SubmitEvent) => {
    e.preventDefault();
    const given = new FormData(e.currentTarget as HTMLFormElement);
    propose(pin(Number(given.get("revision")), String(given.get("proxies") ?? "").trim(), given.get("endpoints") === "on"));
  };
  const held = (plugins.data ?? []).filter((p) => p.held);
  return (
    <>
      <h2>Actions</h2>
      {!actions && <p>Nothing can be changed from here: the control plane runs without <code>--uiActions</code>.</p>}
      {actions && by === "" && (
        <p>
          To change something log in: <code>coxswain ui</code> prints an address that does. Until then this shows what could be done.
        </p>
      )}
      {by !== "" && (
        <p id="by">
          Logged in as {by}.{" "}
          <button type="button" onClick={() => void leave()}>
            Log out
          </button>
        </p>
      )}
      <Fault text={plugins.fault || pins.fault} />
      {done.value.length > 0 && (
        <ul id="done" aria-live="polite">
          {done.value.map((d, i) => (
            <li key={times - i} class={d.ok ? "good" : "bad"}>
              <code>{d.command}</code>: {d.ok ? "done" : "not done"}
              {said(d.text) ? `: ${said(d.text)}` : ""}
            </li>
          ))}
        </ul>
      )}
      <h3>Held</h3>
      {held.length === 0 && <p>Nothing is held.</p>}
      <ul class="acts">
        {held.map((p) => (
          <li key={p.name}>
            <span>
              {p.name}: {p.held?.reasons.join("; ")}
            </span>
            <Do act={ofHold("apply", p.name)} />
            <Do act={ofHold("drop", p.name)} />
          </li>
        ))}
      </ul>
      <h3>Pins</h3>
      <ul class="acts">
        {(pins.data ?? []).map((p) => (
          <li key={p.proxies}>
            <span>
              revision {p.revision}, {p.proxies || "all proxies"}, for {since(p.since)}, {p.pinned.length} connected
            </span>
            <Do act={unpin(p.proxies)} />
          </li>
        ))}
      </ul>
      <form class="pin" onSubmit={submit}>
        <label>
          Revision <input name="revision" type="number" min={1} required />
        </label>
        <label>
          Proxies <input name="proxies" placeholder="namespace=shop; empty: all" />
        </label>
        <label>
          <input name="endpoints" type="checkbox" /> endpoints, too
        </label>
        <button type="submit" disabled={by === ""}>
          Pin
        </button>
      </form>
      {glance.value?.stage ? (
        <>
          <h3>Stage: {glance.value.stage}</h3>
          <p class="acts">
            <Do act={stage("promote")} /> <Do act={stage("abort")} />
          </p>
        </>
      ) : null}
      <h3>Plugins</h3>
      <ul class="acts">
        {(plugins.data ?? []).map((p) => (
          <li key={p.name}>
            <span>
              {p.name}: {p.state}
              {p.lastChange ? `, ${p.lastChange}` : ""}
            </span>
            {p.state === "disabled" ? (
              <Do act={ofPlugin("enable", p.name)} />
            ) : (
              <>
                <Do act={ofPlugin("swap", p.name, true)} />
                <Do act={ofPlugin("swap", p.name)} />
                <Do act={ofPlugin("restart", p.name)} />
                <Do act={ofPlugin("rollback", p.name)} />
                <Do act={ofPlugin("disable", p.name)} />
              </>
            )}
          </li>
        ))}
      </ul>
      {sure && <Sure act={sure} over={() => propose(null)} />}
    </>
  );
}

async function leave(): Promise<void> {
  await ask("logout", "POST", {});
  sessionStorage.removeItem(kept);
  may.value = { ...may.value, by: "" };
}

// Sure shows a command, and carries it out when somebody says so.
function Sure({ act, over }: { act: Act; over: () => void }) {
  const box = useRef<HTMLDialogElement>(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    if (!box.current?.open) box.current?.showModal();
  }, []);
  const run = async () => {
    setBusy(true);
    try {
      const { ok, text } = await ask(act.path, act.method, act.body);
      done.value = [{ command: act.command, ok, text }, ...done.value].slice(0, 20);
    } catch (e) {
      done.value = [{ command: act.command, ok: false, text: String(e) }, ...done.value].slice(0, 20);
    }
    over();
  };
  return (
    <dialog ref={box} aria-labelledby="sure" onClose={over}>
      <h2 id="sure">Carry this out?</h2>
      <p>
        <code>{act.command}</code>
      </p>
      <button type="button" id="yes" disabled={busy} onClick={() => void run()}>
        {busy ? "It is being done…" : "Carry it out"}
      </button>{" "}
      <button type="button" onClick={over}>
        Leave it
      </button>
    </dialog>
  );
}
