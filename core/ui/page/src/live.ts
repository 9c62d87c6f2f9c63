import { signal } from "@preact/signals";
import type { Glance } from "./model";

// glance is what the control plane said last; online says whether it is listened to.
export const glance = signal<Glance | null>(null);
export const online = signal(false);

// listen follows the control plane's events. The browser connects anew by itself.
export function listen(): void {
  const source = new EventSource("events");
  source.onopen = () => (online.value = true);
  source.onerror = () => (online.value = false);
  source.addEventListener("glance", (e) => {
    online.value = true;
    glance.value = JSON.parse((e as MessageEvent<string>).data) as Glance;
  });
}

// fetched asks for a page. Of an error it tells what the control plane says.
export async function fetched<T>(path: string, signal: AbortSignal): Promise<T> {
  const answer = await fetch(path, { signal, headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error(`${answer.status}: ${(await answer.text()).slice(0, 500)}`);
  return (await answer.json()) as T;
}
