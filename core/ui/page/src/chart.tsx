import uPlot from "uplot";
import { useEffect, useRef, useState } from "preact/hooks";
import { causes, type Push } from "./model";
import { ms } from "./parts";

const height = 190;

// colour is one of the page's colours, as the scheme is now.
const colour = (name: string) => () => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// seconds is a time as uPlot takes it.
const seconds = (time: string): number => Date.parse(time) / 1000;

// answered is how long it took until all proxies had answered, in ms; null: some have not, or there were none.
const answered = (p: Push): number | null => (p.done && p.proxies > 0 ? Math.max(0, Date.parse(p.done) - Date.parse(p.committed)) : null);

const dataOf = (pushes: Push[]): uPlot.AlignedData => [
  pushes.map((p) => seconds(p.committed)),
  pushes.map((p) => p.proxies),
  pushes.map((p) => p.took / 1e6),
  pushes.map(answered),
];

// options are those of a chart: bars are proxies, on the right; points are durations, on the left.
function options(width: number, chosen: (i: number | null) => void): uPlot.Options {
  const axis = { stroke: colour("--text"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
  const points = (name: string) => ({ scale: "ms", stroke: colour(name), paths: () => null, points: { show: true, size: 7, stroke: colour(name), fill: colour(name) } });
  return {
    width,
    height,
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, y: false, points: { show: false } },
    scales: { x: { range: (_, from, to) => (from === null ? [0, 1] : [from, Math.max(to, from + 60, Date.now() / 1000)]) }, ms: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] }, proxies: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] } },
    axes: [axis, { ...axis, scale: "ms", label: "ms", labelSize: 18, size: 60 }, { ...axis, scale: "proxies", side: 1, label: "proxies", labelSize: 18, grid: { show: false }, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 1e4, 2e4, 5e4, 1e5] }],
    series: [
      {},
      { scale: "proxies", fill: colour("--line"), stroke: colour("--line"), paths: uPlot.paths.bars!({ size: [0.6, 12, 3] }), points: { show: false } },
      points("--link"),
      points("--good"),
    ],
    hooks: { setCursor: [(u) => chosen(u.cursor.idx ?? null)] },
  };
}

// told is a push in words.
const told = (p: Push): string => {
  const all = answered(p);
  const why = causes(p);
  return `revision ${p.revision}, ${new Date(p.committed).toLocaleTimeString()}: made in ${ms(p.took)}, ${p.proxies === 1 ? "1 proxy" : `${p.proxies} proxies`}${all === null ? "" : `, all had answered after ${ms(all * 1e6)}`}${why ? `; ${why}` : ""}`;
};

// Chart draws pushes over time: how long each was made and answered, and how many proxies it concerned. The pointer, or arrow keys, say which is which.
export function Chart({ pushes }: { pushes: Push[] }) {
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const [at, point] = useState<number | null>(null);
  useEffect(() => {
    if (!box.current) return;
    const u = new uPlot(options(box.current.clientWidth, point), dataOf([]), box.current);
    chart.current = u;
    const fit = () => box.current && u.setSize({ width: box.current.clientWidth, height });
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    const paint = () => u.redraw();
    addEventListener("resize", fit);
    scheme.addEventListener("change", paint);
    return () => {
      removeEventListener("resize", fit);
      scheme.removeEventListener("change", paint);
      u.destroy();
    };
  }, []);
  useEffect(() => chart.current?.setData(dataOf(pushes)), [pushes]);
  const move = (e: KeyboardEvent) => {
    const last = pushes.length - 1;
    const to = { ArrowLeft: Math.max(0, (at ?? last + 1) - 1), ArrowRight: Math.min(last, (at ?? -1) + 1), Home: 0, End: last }[e.key];
    const push = to === undefined ? undefined : pushes[to];
    if (to === undefined || !push || !chart.current) return;
    e.preventDefault();
    chart.current.setCursor({ left: chart.current.valToPos(seconds(push.committed), "x"), top: 0 }, false);
    point(to);
  };
  const shown = at === null ? undefined : pushes[at];
  return (
    <section aria-label="Pushes over time">
      <div id="chart" ref={box} tabIndex={0} role="group" aria-label={`Chart of ${pushes.length === 1 ? "1 push" : `${pushes.length} pushes`} over time; arrow keys choose one; the list below has the same`} onKeyDown={move}></div>
      <p id="charted" aria-live="polite">
        {shown ? told(shown) : <><span class="made">● made in</span>, <span class="good">● all had answered after</span>, <span>▮ proxies that it concerned</span></>}
      </p>
    </section>
  );
}
