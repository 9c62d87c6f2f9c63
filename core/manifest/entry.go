package manifest

import (
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/core/manifest/internal/strict"
)

// The comments in this file are the documentation of plugins.yaml: docs/plugins.schema.json is made
// of them (make generate).

// Set is a plugins.yaml: the plugins that the core runs. The order counts: for one type and proxy
// the first generator whose select matches generates, patches apply in this order, and of two rows
// with one key that of the earlier plugin is used.
type Set struct {
	// Plugins in order.
	Plugins []*Entry `yaml:"plugins" need:"true"`

	// file is the name that Parse was given.
	file string
}

// Dir is the directory of the file: what is relative in it is relative to this, and plugins run in
// it.
func (s *Set) Dir() string { return filepath.Dir(s.file) }

// Entry declares one plugin: name, kind, and exactly one of builtin, plugin, process and wasm;
// beside plugin, process and wasm say how it runs.
type Entry struct {
	// At is where the entry stands, Keys where its values do.
	At   strict.Place
	Keys strict.Keys

	// Of is the entry that this is an instance of; empty: it stands in the file itself.
	Of string
	// Off is why it is disabled, where that is not what the file says; empty: it is what it says.
	Off string
	// Artifact is what Plugin was found to be; nil: it was not fetched yet, or there is none.
	Artifact *Artifact

	// Name of this instance, unique in the file; the plugin's shard has it too.
	Name string `yaml:"name" need:"true"`
	// Kind says what the plugin is for.
	Kind Kind `yaml:"kind" need:"true"`
	// Builtin runs a plugin that ships in the coxswain binary, as KIND/NAME; it is a process of its
	// own all the same.
	Builtin string `yaml:"builtin"`
	// Plugin runs a module or a program that is fetched from a registry of OCI artifacts, as
	// oci://REGISTRY/NAME:TAG@sha256:DIGEST.
	Plugin Reference `yaml:"plugin"`
	// Pull says how `plugin` is fetched, and who must have signed it.
	Pull *Pull `yaml:"pull"`
	// Process runs a program that speaks the contract over go-plugin.
	Process *Process `yaml:"process"`
	// Wasm runs a WASI module in a runner process.
	Wasm *Wasm `yaml:"wasm"`
	// Config is handed to the plugin as JSON; what it may hold is the plugin's affair. It is
	// treated as a secret and never logged.
	Config JSON `yaml:"config"`
	// ForEach runs an instance of the entry for each row of a table.
	ForEach *ForEach `yaml:"forEach"`
	// Types limits a generator or patch to some of the types that it offers, by type URL or as CDS,
	// EDS, LDS, RDS, SDS, ECDS, NDS. All, if left out.
	Types []TypeURL `yaml:"types"`
	// Select says which proxies a generator or patch serves; all of what is given must match. All
	// proxies, if left out.
	Select *Select `yaml:"select"`
	// Headers of callers' streams that an authenticator gets besides authorization, clusterid and
	// x-forwarded-client-cert, by their names in lower case, such as x-api-key.
	Headers []HeaderName `yaml:"headers"`
	// Start says when a plugin's process runs: always (the default), or onDemand: a generator's
	// while there is a proxy that asks for what it makes, an authenticator's while callers come
	// that it is asked about, that of a config source, registry or controller while there are rows
	// in tables that it reads, of one that derives rows in those that it reads whole. It is started
	// once at the beginning all the same, so that its config is checked and what it offers is
	// known.
	Start string `yaml:"start" enum:"always,onDemand"`
	// Optional plugins neither fail the core's start nor hold its first revision.
	Optional bool `yaml:"optional"`
	// Disabled plugins do not run.
	Disabled bool `yaml:"disabled"`
	// OnFailure says what happens while the plugin is away: last-good (the default) serves what it
	// said last, skip leaves a patch out, block makes the core not ready.
	OnFailure string `yaml:"onFailure" enum:"last-good,skip,block"`
	// Limits hold this plugin to deadlines and sizes; crossing one fails this plugin alone.
	Limits Limits `yaml:"limits"`
	// SHA256 pins the program of a process: exactly these bytes are executed.
	SHA256 Digest `yaml:"sha256"`
	// Allow grants what a plugin has not got by itself.
	Allow *Allow `yaml:"allow"`
	// Insecure says that a process or module without sha256 is meant to be.
	Insecure bool `yaml:"insecure"`
	// User runs a process or built-in as another user than the core: a name, or UID:GID. The core
	// must be root, or have CAP_SETUID and CAP_SETGID.
	User string `yaml:"user"`
	// Sandbox takes more from the process than is taken from all, or nothing (Linux).
	Sandbox *Sandbox `yaml:"sandbox"`
	// Listen is what the core listens on for a controller, such as udp://127.0.0.1:53: its process
	// gets the sockets, and they stay open while it ends and another one begins.
	Listen []Listen `yaml:"listen"`
	// Guard refuses revisions that look like an accident.
	Guard *Guard `yaml:"guard"`
	// Merge says what becomes of a service that other plugins have, too: union (the default) serves
	// the endpoints of all, a mapping with priority those of the highest.
	Merge *Merge `yaml:"merge"`
	// OnLoss says what becomes of rows that are lost: hold (the default) keeps what more would go
	// of than the guard allows until somebody decides, apply lets it through, and a mapping with
	// drop-after says how long rows are served whose source is away.
	OnLoss *OnLoss `yaml:"onLoss"`
	// Rollback says when a swap of this plugin is taken back.
	Rollback *Rollback `yaml:"rollback"`
}

// ForEach runs an instance of its entry for each row of a table, named ENTRY@KEY. Anywhere below
// the entry's config, {row: FIELD} stands for a field of the row.
type ForEach struct {
	Keys strict.Keys

	// Table whose rows are JSON objects, such as clusters.
	Table string `yaml:"table" need:"true"`
	// Max is how many instances there may be at most (default 100).
	Max uint `yaml:"max"`
	// Wait is how long the first revision waits for the instances of the rows that there are at the
	// start (default 30s).
	Wait time.Duration `yaml:"wait"`
}

// Pull says how an artifact is fetched, and who must have signed it.
type Pull struct {
	Keys strict.Keys

	// Key is a file with public keys (PEM), by one of which the artifact must be signed, as cosign
	// signs.
	Key string `yaml:"key"`
	// Credentials is a file like Docker's config.json, such as the .dockerconfigjson of a mounted
	// Secret of Kubernetes; Docker's own, if left out.
	Credentials string `yaml:"credentials"`
	// CA is a file with certificates (PEM) of the authorities that the registry's is checked with,
	// in place of the system's.
	CA string `yaml:"ca"`
	// PlainHTTP speaks to the registry without TLS, which needs `insecure: true`; one on this
	// machine without `ca` is spoken to so in any case.
	PlainHTTP bool `yaml:"plainHTTP"`
	// Timeout of all that is fetched (default 5m).
	Timeout time.Duration `yaml:"timeout"`
	// Bytes that the artifact may have, packed and unpacked (default 256Mi).
	Bytes Size `yaml:"bytes"`
}

// Process is a program to run. It gets no environment but env and what allow.env names, and runs in
// the directory of plugins.yaml.
type Process struct {
	Keys strict.Keys

	// Command is a path, absolute or relative to plugins.yaml (then with a slash), or a name that
	// is looked for in PATH. Left out beside `plugin`.
	Command string `yaml:"command"`
	// Args of the command.
	Args []string `yaml:"args"`
	// Env is the program's environment.
	Env map[string]string `yaml:"env"`
	// Files belong to the plugin too (a script, a jar): before each start they are checked and
	// copied, and arguments that name them name the copies.
	Files []File `yaml:"files"`
	// TLS is auto (the default: mutual TLS with keys made at each start) or off.
	TLS string `yaml:"tls" enum:"auto,off"`
}

// Sandbox says which files the process of a plugin may use. Its own socket and its pinned files it
// may use in any case.
type Sandbox struct {
	Keys strict.Keys

	// Read lists files and directories that it may read and execute, besides the system's programs,
	// libraries and settings (/usr, /lib, /etc, /opt, /proc, /sys). All, if left out.
	Read []string `yaml:"read"`
	// Write lists files and directories that it may write. None, if read is given and this is left
	// out.
	Write []string `yaml:"write"`
	// Unconfined takes nothing away, not even what is taken from all: tracing, privileges by setuid
	// programs, signals to the core.
	Unconfined bool `yaml:"unconfined"`
}

// File is a pinned file.
type File struct {
	// Path is absolute or relative to plugins.yaml.
	Path string `yaml:"path" need:"true"`
	// SHA256 of its content.
	SHA256 Digest `yaml:"sha256" need:"true"`
}

// Wasm is a WASI command module.
type Wasm struct {
	Keys strict.Keys

	// Path is absolute or relative to plugins.yaml. Left out beside `plugin`.
	Path string `yaml:"path"`
	// SHA256 pins the module.
	SHA256 Digest `yaml:"sha256"`
	// Memory that one instance may have, at most 4Gi (default 256Mi).
	Memory Size `yaml:"memory"`
	// Instances of a patch or an authenticator that may run at once (default 2); other kinds have
	// one.
	Instances uint `yaml:"instances"`
	// Allow grants what the module has not got by itself.
	Allow *Allow `yaml:"allow"`
}

// Allow grants capabilities by name.
type Allow struct {
	// HTTP lists hosts, or URL prefixes, that a module may call, as patterns with `*`.
	HTTP []Glob `yaml:"http"`
	// Files lists files and directories that a module may read.
	Files []string `yaml:"files"`
	// Env lists variables of the core's own environment that the plugin gets.
	Env []string `yaml:"env"`
	// Clock lets a module see the time; without it time stands still.
	Clock bool `yaml:"clock"`
	// Store lists tables, such as networking.istio.io/ServiceEntry or networking.istio.io/*, whose
	// objects the plugin may read and change where they are kept, through the plugin that writes
	// them.
	Store []Glob `yaml:"store"`
}

// Select matches proxies by their xDS node. Patterns may have `*`, which stands for any number of
// characters.
type Select struct {
	// ID of the node.
	ID Glob `yaml:"id"`
	// Cluster of the node.
	Cluster Glob `yaml:"cluster"`
	// UserAgent is the client's name, such as envoy, or name/version.
	UserAgent Glob `yaml:"userAgent"`
	// Generator is the node's metadata GENERATOR. A proxy that has one is served by entries that
	// name it first.
	Generator Glob `yaml:"generator"`
	// Metadata matches values by key; dots lead into nested ones.
	Metadata map[string]Glob `yaml:"metadata"`
	// Labels matches the node's metadata LABELS.
	Labels map[string]Glob `yaml:"labels"`
	// Namespace is the node's metadata NAMESPACE.
	Namespace Glob `yaml:"namespace"`
	// Locality is REGION, REGION/ZONE or REGION/ZONE/SUBZONE, as far as the node says.
	Locality Glob `yaml:"locality"`
}

// Limits of a plugin.
type Limits struct {
	Keys strict.Keys

	// Start is the time from starting the process to its session (default 30s).
	Start time.Duration `yaml:"start"`
	// Configure is the time from Hello to Ready (default 30s; 2m for a WASM module), without that
	// in which the module is compiled.
	Configure time.Duration `yaml:"configure"`
	// Compile is the time that a WASM module may take to be compiled, where no compiled one is kept
	// (default 10m).
	Compile time.Duration `yaml:"compile"`
	// Sync is the time from Ready until the first full list is in (default 60s).
	Sync time.Duration `yaml:"sync"`
	// Revision is how long a deriver or generator may take for a revision before it counts as hung
	// (default 30s).
	Revision time.Duration `yaml:"revision"`
	// Call is the time for the answer to one question, such as who a caller is (default 5s).
	Call time.Duration `yaml:"call"`
	// Progress is how long a plugin that owes an answer may show no sign of life (default 30s).
	Progress time.Duration `yaml:"progress"`
	// Stop is the time that it has to end by itself (default 5s).
	Stop time.Duration `yaml:"stop"`
	// Memory that its process may use (default half of what the machine has, or this core's control
	// group).
	Memory Size `yaml:"memory"`
	// OpenFiles is how many files and sockets its process may have open (default 4096), or as many
	// as the core's own hard limit allows.
	OpenFiles uint64 `yaml:"openFiles"`
	// Rows that it may publish (default 1000000).
	Rows uint64 `yaml:"rows"`
	// Bytes of all rows that it may publish (default 512Mi).
	Bytes Size `yaml:"bytes"`
	// Bodies is what a generator's resources may take of the core's memory (default 1Gi).
	Bodies Size `yaml:"bodies"`
	// RowBytes is the size of one row (default 1Mi).
	RowBytes Size `yaml:"rowBytes"`
	// MessageBytes is the size of one message (default and most 1Mi).
	MessageBytes Size `yaml:"messageBytes"`
}

// Guard keeps what is served if a change looks like an accident.
type Guard struct {
	// MaxRemoved is how much of its rows a plugin may remove at once, as a number or a percentage
	// such as 30%.
	MaxRemoved Share `yaml:"maxRemoved"`
}

// Merge is the place of a plugin among those that have the same rows.
type Merge struct {
	Keys strict.Keys

	// Priority of the plugin, 0 if it has none: of a service's endpoints those of the highest are
	// served that has the service and any of them, together if several plugins have it; of rows
	// with one key that of the highest.
	Priority int32 `yaml:"priority" need:"true"`
}

// Words implements strict.Words: union is what holds without priorities.
func (m *Merge) Words() []string { return []string{"union"} }

// SetWord implements strict.Words.
func (m *Merge) SetWord(string) { *m = Merge{} }

// OnLoss says what becomes of rows that are lost.
type OnLoss struct {
	Keys strict.Keys

	// DropAfter is how long the rows are served while the plugin's source is away, or the plugin
	// itself. When it is back, so are they. For ever, if left out.
	DropAfter time.Duration `yaml:"drop-after" need:"true"`

	apply bool
}

// Words implements strict.Words.
func (l *OnLoss) Words() []string { return []string{"hold", "apply"} }

// SetWord implements strict.Words.
func (l *OnLoss) SetWord(word string) { *l = OnLoss{apply: word == "apply"} }

// Priority is that of the entry among those that have the same rows.
func (e *Entry) Priority() int {
	if e.Merge == nil {
		return 0
	}
	return int(e.Merge.Priority)
}

// LossApplies reports whether the plugin may take away anything.
func (e *Entry) LossApplies() bool { return e.OnLoss != nil && e.OnLoss.apply }

// DropAfter is how long rows are served whose source is away; 0: for ever.
func (e *Entry) DropAfter() time.Duration {
	if e.OnLoss == nil {
		return 0
	}
	return e.OnLoss.DropAfter
}

// Rollback takes a swapped plugin back if proxies refuse what it makes.
type Rollback struct {
	// NackedProxies is how many proxies, as a number or a percentage, must refuse.
	NackedProxies Share `yaml:"nackedProxies"`
	// Window is how long after the swap refusals count (default 5m).
	Window time.Duration `yaml:"window"`
}

// Carrier says how the plugin runs: builtin, process or wasm; plugin: that is not known before it
// is fetched.
func (e *Entry) Carrier() string {
	switch {
	case e.Plugin != "" && e.Artifact == nil:
		return "plugin"
	case e.Process != nil:
		return "process"
	case e.Wasm != nil:
		return "wasm"
	}
	return "builtin"
}

// Serves reports whether the entry's types include the type.
func (e *Entry) Serves(typeURL string) bool {
	return len(e.Types) == 0 || slices.Contains(e.Types, TypeURL(typeURL))
}

// JSON is any value of plugins.yaml as canonical JSON: sorted keys, no spaces.
type JSON = strict.JSON

// Fields returns the keys of one of this file's struct types, for what is generated from them.
func Fields(t reflect.Type) []strict.Field { return strict.Fields(t) }

// OnDemand is the `start` of a generator whose process runs only while somebody asks for what it
// makes, of an authenticator whose process runs only while callers come, and of a source whose
// process runs only while there are rows that it reads.
const OnDemand = "onDemand"

// PlaceOf is where plugins.yaml has a field of the config; of one that it lacks, where the config
// stands.
func (e *Entry) PlaceOf(field string) strict.Place {
	if at, ok := e.Keys["config."+field]; ok || field != "" {
		return at
	}
	return e.Keys["config"]
}

// Allowed is what the entry grants; a module's may stand in either place.
func (e *Entry) Allowed() *Allow {
	if e.Wasm != nil && e.Wasm.Allow != nil {
		return e.Wasm.Allow
	}
	return e.Allow
}

// MayStore reports whether the entry grants objects of a table.
func (e *Entry) MayStore(table string) bool {
	a := e.Allowed()
	return a != nil && slices.ContainsFunc(a.Store, func(g Glob) bool { return g.Match(table) })
}

// IsLimit reports whether a name is that of a limit: a key of `limits`, or wasm.memory.
func IsLimit(name string) bool {
	return name == "wasm.memory" || slices.ContainsFunc(Fields(reflect.TypeFor[Limits]()), func(f strict.Field) bool { return f.Key == name })
}
