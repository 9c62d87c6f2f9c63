import { signal } from "@preact/signals";
import type { Glance } from "./model";

// glance is what the control plane said last; online says whether it is listened to, and refused why it doesn't let itself be.
export const glance = signal<Glance | null>(null);
export const online = signal(false);
export const refused = signal("");

const events = "events";

// pause and longest are how many seconds pass before it is asked again, where no answer says, and at most.
const pause = 5;
const longest = 60;

// listen follows the control plane's events. Where a connection breaks the browser connects anew by itself; where an answer refuses, it doesn't.
export function listen(): void {
  const source = new EventSource(events);
  source.onopen = () => {
    online.value = true;
    refused.value = "";
  };
  source.onerror = () => {
    online.value = false;
    if (source.readyState === EventSource.CLOSED) void again();
  };
  source.addEventListener("glance", (e) => {
    online.value = true;
    glance.value = JSON.parse((e as MessageEvent<string>).data) as Glance;
  });
}

// again finds out why events were refused, which an EventSource doesn't tell, and listens anew after a while.
async function again(): Promise<void> {
  let seconds = pause;
  const stop = new AbortController();
  try {
    const answer = await fetch(events, { signal: stop.signal });
    if (answer.headers.get("Content-Type")?.startsWith("text/event-stream")) {
      seconds = 1;
    } else {
      refused.value = `${answer.status}: ${(await answer.text()).trim().slice(0, 300)}`;
      seconds = Math.min(longest, Number(answer.headers.get("Retry-After")) || pause);
    }
  } catch (e) {
    refused.value = String(e);
  }
  stop.abort(); // events that are read no further
  setTimeout(listen, seconds * 1000);
}

// fetched asks for a page. Of an error it tells what the control plane says.
export async function fetched<T>(path: string, signal: AbortSignal): Promise<T> {
  const answer = await fetch(path, { signal, headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error(`${answer.status}: ${(await answer.text()).slice(0, 500)}`);
  return (await answer.json()) as T;
}
