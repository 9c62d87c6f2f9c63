import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { fetched } from "./live";

// usePage asks for a page, and asks again when what it depends on changes.
export function usePage<T>(path: string | null, ...on: unknown[]): { data: T | null; fault: string } {
  const [state, set] = useState<{ data: T | null; fault: string }>({ data: null, fault: "" });
  useEffect(() => {
    if (path === null) return;
    const stop = new AbortController();
    fetched<T>(path, stop.signal).then(
      (data) => set({ data, fault: "" }),
      (e: Error) => {
        if (!stop.signal.aborted) set((s) => ({ data: s.data, fault: e.message }));
      },
    );
    return () => stop.abort();
  }, [path, ...on]);
  return state;
}

// useTick is another number every so many seconds, while the page can be seen.
export function useTick(seconds: number): number {
  const [tick, set] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || set((n) => n + 1), seconds * 1000);
    return () => clearInterval(timer);
  }, [seconds]);
  return tick;
}

export function Fault({ text }: { text: string }) {
  return text === "" ? null : <p class="fault" role="alert">{text}</p>;
}

export function Card({ title, state, children }: { title: string; state?: "good" | "bad" | "busy"; children: ComponentChildren }) {
  return (
    <section class={`card ${state ?? ""}`}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

const rowHeight = 28;

export interface Column<T> {
  name: string;
  text: (row: T) => ComponentChildren;
  class?: (row: T) => string;
}

// useCalm is a value that changes once in so many milliseconds at most.
export function useCalm<T>(value: T, ms: number): T {
  const [said, say] = useState(value);
  const last = useRef(-ms);
  useEffect(() => {
    const later = setTimeout(() => {
      last.current = performance.now();
      say(value);
    }, Math.max(0, last.current + ms - performance.now()));
    return () => clearTimeout(later);
  }, [value]);
  return said;
}

// List shows rows of one height, of which only those are made that can be seen; find says what of a row is looked through, where there is a field for that.
export function List<T>({ rows, columns, find, label }: { rows: T[]; columns: Column<T>[]; find?: (row: T) => string; label: string }) {
  const [wanted, setWanted] = useState("");
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const measure = () => setHeight(box.current?.clientHeight ?? 600);
    measure();
    addEventListener("resize", measure);
    return () => removeEventListener("resize", measure);
  }, []);
  const shown = useMemo(() => {
    const text = wanted.toLowerCase();
    return text === "" || !find ? rows : rows.filter((r) => find(r).toLowerCase().includes(text));
  }, [rows, wanted]);
  const first = Math.max(0, Math.floor(top / rowHeight) - 10);
  const some = shown.slice(first, first + Math.ceil(height / rowHeight) + 20);
  return (
    <div class="list">
      {find && (
        <div class="filter">
          <label>
            Find <input type="search" id="find" value={wanted} onInput={(e) => setWanted(e.currentTarget.value)} />
          </label>
          <span aria-live="polite">
            {shown.length} of {rows.length}
          </span>
        </div>
      )}
      <div class="rows" ref={box} tabIndex={0} role="region" aria-label={label} onScroll={(e) => setTop(e.currentTarget.scrollTop)}>
        <table aria-rowcount={shown.length + 1}>
          <thead>
            <tr aria-rowindex={1}>{columns.map((c) => <th key={c.name} scope="col">{c.name}</th>)}</tr>
          </thead>
          <tbody>
            <Gap rows={first} columns={columns.length} />
            {some.map((r, i) => (
              <tr key={first + i} aria-rowindex={first + i + 2}>
                {columns.map((c) => <td key={c.name} class={c.class?.(r)}>{c.text(r)}</td>)}
              </tr>
            ))}
            <Gap rows={shown.length - first - some.length} columns={columns.length} />
          </tbody>
        </table>
      </div>
    </div>
  );
}

function Gap({ rows, columns }: { rows: number; columns: number }) {
  const cell = useRef<HTMLTableCellElement>(null);
  useEffect(() => {
    if (cell.current) cell.current.style.height = `${rows * rowHeight}px`;
  }, [rows]);
  return rows <= 0 ? null : <tr aria-hidden="true"><td class="gap" ref={cell} colSpan={columns}></td></tr>;
}

// link leads to a page of this one, with arguments.
export function link(page: string, args: Record<string, string> = {}): string {
  const query = new URLSearchParams(args).toString();
  return `#/${page}${query === "" ? "" : "?" + query}`;
}

// many is a number of things.
export const many = (n: number, thing: string): string => `${n} ${thing}${n === 1 ? "" : "s"}`;

// since is how long ago a time was; nothing of none, for which Go writes that of year 1.
export const since = (time?: string): string => {
  if (!time || time.startsWith("0001-")) return "";
  const s = Math.max(0, (Date.now() - Date.parse(time)) / 1000);
  if (s < 120) return `${Math.round(s)} s`;
  if (s < 7200) return `${Math.round(s / 60)} min`;
  if (s < 172800) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86400)} d`;
};

// ms is a duration in nanoseconds.
export const ms = (nanoseconds: number): string => (nanoseconds < 1e9 ? `${Math.round(nanoseconds / 1e5) / 10} ms` : `${Math.round(nanoseconds / 1e7) / 100} s`);

export const bytes = (n: number): string => (n < 1e4 ? `${n} B` : n < 1e7 ? `${Math.round(n / 1e3)} kB` : `${Math.round(n / 1e6)} MB`);
