// What the control plane's pages say, as far as it is shown. Go's names are those of core/admin, core/report and core/xds.

export interface Glance {
  revision: { epoch: number; number: number; partial?: string[] };
  // own are the namespaces that it is about, for who may see no others.
  own?: string[];
  notReady: string[];
  proxies: number;
  synced: number;
  pending: number;
  refusing: number;
  refusals: number;
  faulty: number;
  unserved: number;
  wrong?: string[];
  pins: number;
  stage: string;
  planning: number;
  planned: number;
  plugins: PluginGlance[];
  push?: Push;
}

export interface PluginGlance {
  name: string;
  kind: string;
  state: string;
  ill?: string[];
}

export interface Push {
  revision: number;
  kind: string;
  committed: string;
  waited: number;
  took: number;
  done?: string;
  held?: boolean;
  rows?: { table: string; key: string; what: string; plugin?: string; source?: string }[];
  changed?: Record<string, number>;
  plugins?: Record<string, number>;
  partial?: string[];
  views?: Record<string, number>;
  proxies: number;
  waiting: number;
  sent?: Record<string, { responses: number; resources: number; bytes: number }>;
  refused?: { node: string; type: string; reason: string }[];
  refusals?: number;
}

export interface Plugin {
  name: string;
  kind: string;
  carrier: string;
  at?: string;
  state: string;
  since: string;
  version?: string;
  rows: number;
  stale?: boolean;
  staleWhy?: string;
  revision: number;
  restarts: number;
  memory?: number;
  lastError?: string;
  faults?: { what: string; reason: string }[];
  held?: { since: string; rows?: number; reasons: string[] };
  away?: { since: string; why: string };
  lastChange?: string;
  reads?: string[];
  publishes?: string[];
  load?: { calls: number; bytesIn: number; bytesOut: number };
}

export interface Table {
  name: string;
  shards: Record<string, number> | null;
}

export interface Stream {
  node: string;
}

// ProxyStatus is how far a connection is, as /debug/ledger says; its state with a type is synced, not sent, pending, held or refused.
export interface ProxyStatus {
  node: string;
  connection: number;
  remote: string;
  protocol: string;
  since: string;
  pinned?: number;
  types: ProxyType[];
}

export interface ProxyType {
  type: string;
  state: string;
  since?: string;
  sentAt?: string;
  sentVersion?: string;
  revision?: number;
  refused?: string;
  view: { id: number };
}

export interface View {
  type: string;
  id: number;
  plugin: string;
  label: string;
  connections: number;
  resources: number;
  bytes: number;
}

export interface Ledger {
  connection: number;
  node: string;
  types: { type: string; resources: { name: string; version: string; state: string; since?: string; reason?: string }[] }[];
}

export interface Explanation {
  plugin: string;
  version?: string;
  view?: { id: number; label: string };
  rows?: { table: string; key: string; plugin?: string; source?: string; revision?: number; since?: string; gone?: boolean }[];
  missing?: { table: string; key: string }[];
  more?: boolean;
  unknown?: string;
  reads?: string[];
  patches?: string[];
}

export interface Refusal {
  type: string;
  name: string;
  plugin: string;
  reason: string;
  since: string;
  held: boolean;
  refusing: number;
  proxies: string[];
  instead?: string;
}

export interface ConfigObject {
  kind: string;
  key: string;
  plugin: string;
  source?: string;
  group?: string;
  state: string;
  served: boolean;
  // of is the object that somebody wrote, of one that a plugin derived from it.
  of?: { table: string; key: string };
  faults?: { severity: string; message: string; file: string; line: number }[];
}

// Route is what /debug/route says; its outcome is that of sdk/simulator.
export interface Route {
  node: string;
  url: string;
  outcome: {
    Verdict: "forwarded" | "answered" | "closed" | "unknown";
    Reason: string;
    Answer: { Status: number; Details: string };
    Upstream: { Clusters: Share[] | null; Mirrors: Share[] | null };
    Authorizations: { Policy: string; Denied: boolean }[] | null;
    Chances: { Percent: number; Status: number; Reason: string }[] | null;
    Assumes: string[] | null;
    Steps: { At: string; Chosen: string; Because: string }[] | null;
  };
  rules: { kind: string; object: string; rule: string; source?: string }[];
}

// Reach is what /debug/reach says.
export interface Reach {
  node: string;
  hosts: { routes: string; host: string; ways: { rule: Route["rules"][number]; to?: { cluster: string; percent: number }[]; answer?: string }[] }[];
  more?: number;
}

// Topology is what /debug/topology says.
export interface Topology {
  revision: number;
  proxies: number;
  unread?: number;
  clients: Client[];
  hosts: MeshHost[];
  all: number;
  more?: number;
  services: { cluster: string; endpoints: number; workloads?: string[]; more?: number }[];
}

export interface Client {
  type?: string;
  proxies: number;
  workloads: string[];
  more?: number;
}

export type MeshHost = Reach["hosts"][number] & { from: number[]; proxies: number };

// Kept is a revision of /debug/history, Changes is what /debug/changes says.
export interface Kept {
  push: Push;
  kept: boolean;
  unchanged?: boolean;
}

export interface Changes {
  from: number;
  to: number;
  compared: number;
  resources: { type: string; name: string; what: string; proxies: number; proxy?: string; fields?: { path: string; before?: string; after?: string }[]; more?: number }[];
  more?: number;
}

// Rollout is what /debug/rollout says.
export interface Rollout {
  state: string;
  base?: number;
  latest?: number;
  since?: string;
  began?: string;
  ends?: string;
  first: number;
  behind: number;
  why?: string;
  metric?: { value?: string; error?: string };
  held: { node: string; types: Record<string, string> | null }[];
}

// Plans is what /debug/plans says.
export interface Plans {
  making: Plan[];
  moreMaking?: number;
  ended: Plan[];
}

export interface Plan {
  id: number;
  command: string;
  by: string;
  state: "waiting" | "making" | "done" | "failed";
  began: string;
  ended?: string;
  of: number;
  steps: PlanStep[];
  moreSteps?: number;
  cut?: boolean;
  error?: string;
}

export interface PlanStep {
  plugin: string;
  what: string;
  state: string;
  from?: string;
  to?: string;
  summary?: string;
  difference?: { tables?: Counts[]; types?: Counts[]; verdicts?: string[] };
  guard?: string[];
  reasons?: string[];
  notes?: string[];
  took: number;
}

// Counts are those of the rows of a table, or of the resources of a type, which proxies have.
export interface Counts {
  table?: string;
  type?: string;
  before: number;
  after: number;
  added: number;
  removed: number;
  changed: number;
  rewritten?: number;
  views?: number;
  proxies?: number;
  examples?: string[];
  fields?: string[];
}

export interface Share {
  Cluster: string;
  Percent: number;
  Fault: string;
  Endpoints: { Address: string; Percent: number; Locality: string }[] | null;
}

// causes are the rows that a push was for.
export const causes = (p: Push): string => (p.rows ?? []).map((r) => `${r.what} ${kind(r.table)} ${r.key}`).join(", ");

// kind is a type URL's last word.
export const kind = (url: string): string => url.slice(Math.max(url.lastIndexOf("."), url.lastIndexOf("/")) + 1);
