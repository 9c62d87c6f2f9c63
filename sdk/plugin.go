package sdk

import (
	"context"
	"errors"
	"strings"

	"github.com/coxswain-mesh/coxswain/sdk/internal/outputs"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// The contract's own words, so that authors need one import.
type (
	Row      = pb.Row
	Service  = pb.Service
	Port     = pb.Port
	Endpoint = pb.Endpoint
	Workload = pb.Workload
	Type     = pb.Type
	Traits   = pb.Traits
)

// FieldError says which field of the config is wrong.
type FieldError struct {
	// Field is a path into the config, such as `services[2].port`.
	Field string
	Err   error
}

// Error implements error.
func (e *FieldError) Error() string { return e.Field + ": " + e.Err.Error() }

// Unwrap returns the error's cause.
func (e *FieldError) Unwrap() error { return e.Err }

// Registry publishes services, endpoints and workloads of one source.
type Registry interface {
	// Run publishes until ctx ends: first everything that is there, then Synced, then what changes.
	// It is called once, on a goroutine of its own, and may block as long as it likes; it must
	// return soon after ctx ends. Returning nil before ctx ends means that nothing will change any
	// more; an error ends the plugin, and the core starts it again: what was published stays
	// served, and what the next run doesn't publish before its Synced goes then. A source that
	// can't be reached is an error only if waiting won't help: say so (Lost, Found), log it and try
	// again.
	Run(ctx context.Context, out Publisher) error
}

// ConfigSource publishes config tables, such as networking.istio.io/VirtualService.
type ConfigSource interface {
	// Run is as a Registry's: all that there is, Synced, what changes, until ctx ends; an error
	// starts the plugin again. A resource that is broken is a row of the table faults, not an
	// error, and its last good version stays.
	Run(ctx context.Context, out Publisher) error
}

// Publisher writes rows of the plugin's own shard. It may be used by several goroutines. Its
// methods block while the core has not taken what was published before, and return an error only
// when the session is over. Rows given away must not be changed afterwards.
type Publisher interface {
	// Update upserts and deletes rows of one table, which the declaration's Publishes must name.
	// Rows equal to the ones in the shard are no change. The slices may be reused afterwards, the
	// rows not. Updates of one goroutine are applied in order; those of a burst become one
	// revision.
	Update(table string, upserts []*Row, deletes []string) error
	// Synced says that the first full list is in. Rows of an earlier run that were not published
	// again are dropped.
	Synced() error
	// State returns the rows that the plugin reads, at the newest revision it was sent, and a
	// channel that is closed when there is a newer one. For plugins that declare Reads. Before it
	// was sent any, the revision's Epoch is 0 and there are no rows. A registry or config source
	// may wait for its first state before its Synced: that comes once sources that read nothing
	// themselves have said all that they have of these tables.
	State() (*state.State, <-chan struct{})
	// Log writes a line to the core's log. Args are key, value, … as in log/slog.
	Log(level Level, text string, args ...any)
}

// Level of a log line.
type Level = pb.LogLevel

// Levels.
const (
	Debug = pb.LogLevelDebug
	Info  = pb.LogLevelInfo
	Warn  = pb.LogLevelWarn
	Error = pb.LogLevelError
)

// Deriver publishes rows that are a function of the rows it reads, and nothing else. They belong to
// the revision that caused them.
type Deriver interface {
	// Derive is called for each revision in which a table that it reads changed, in order, never
	// twice at once; revisions that came while it ran are one call. It publishes what changes in
	// its own rows and returns: the revision waits for it, within limits.revision. change is shared
	// and immutable; it may be kept. An error keeps the rows that it published before, and the
	// changed keys come again with the next call. Parts of the work that failed are returned as
	// *Fault, joined, if what was published is to count all the same.
	Derive(ctx context.Context, change *state.Change, out Publisher) error
}

// Proxy is a connected xDS client.
type Proxy struct {
	// Connection is the number of its stream, never used twice.
	Connection uint64
	// Node is the encoded envoy.config.core.v3.Node without its extensions.
	Node []byte
	// Extensions are the names of Envoy extensions that the node has; nil where it didn't say.
	// Shared: read only.
	Extensions []string
	// Identities were verified by an authenticator.
	Identities    []string
	RemoteAddress string
	// Types that this generator serves to it.
	Types []string
}

// Resource is one xDS resource.
type Resource struct {
	Name string
	// Body is the encoded resource (the value of its Any), deterministic; nil: the name is known to
	// be absent.
	Body []byte
	// Fields are given in place of Body where a resource is large and little of it changes at a
	// time, such as a route configuration: its encoded fields, one after the other, each in memory
	// that is never written to again. Of what an Output was told before under the same name, only
	// the fields that differ are sent; those that are the same memory aren't even compared.
	// Elsewhere than in an Output they are joined.
	Fields [][]byte
	// From are the rows that a Generator made it from, for who asks why it is as it is (coxswain
	// explain, impact); nil: all that its Generate has read. Elsewhere it counts for nothing: an
	// Engine is an Explainer.
	From []state.Name
}

// encoded returns the resource's bytes, nil where it is absent.
func (r *Resource) encoded() []byte {
	if r.Fields != nil {
		return outputs.Joined(r.Fields)
	}
	return r.Body
}

// Generator makes resources from rows; the simple form, which the SDK runs again for each live view
// at each revision that changed a table it reads. Nothing is sent that didn't change. Its methods
// run one at a time. They must not wait for anything but the processor: a revision is served when
// they have returned, within limits.revision. What they get is shared and read only; what they
// return is the SDK's afterwards and may be shared between calls. Equal arguments must give equal
// bytes: sort what comes from a map.
type Generator interface {
	// Place names the view of each type that the proxy is in; proxies with equal names of a type
	// get equal resources. A type left out is not served to it. It is called when a proxy connects
	// and again at each revision. An error refuses the proxy: its stream ends, and its operator
	// reads the error.
	Place(s *state.State, p *Proxy) (map[string]string, error)
	// Generate returns the resources of a view: all of them if names is nil, otherwise those of the
	// names; a name that is not returned is absent. The order doesn't matter. The result must
	// depend on the arguments alone. An error keeps what the view had, and is a fault of the
	// revision.
	Generate(s *state.State, typeURL, view string, names []string) ([]Resource, error)
}

// Engine is the full form of a generator, for those that compute increments themselves. Except for
// Overtake no two of its methods run at once. What they report through out belongs to the revision
// of the last Commit.
type Engine interface {
	// Commit takes the engine to change.State. It reports placements that changed and, for
	// everything that is wanted, what changed.
	Commit(ctx context.Context, change *state.Change, out Output) error
	// Overtake is called while Commit may be running: change has rows of the table endpoints alone,
	// on top of what was served. It reports, at once, the endpoints (resources) that change, made
	// from what the last finished Commit knew otherwise. Later reports must not go back behind
	// these rows.
	Overtake(ctx context.Context, change *state.Change, out Output) error
	// Attach and Detach say which proxies there are. Attach reports the proxy's placement; it comes
	// again for a proxy of which something changed.
	Attach(ctx context.Context, p *Proxy, out Output) error
	Detach(connection uint64)
	// Want adds to what is wanted of a view (all of it if names is nil) and reports it.
	Want(ctx context.Context, typeURL string, view uint64, names []string, out Output) error
	// Drop takes back names, or the wildcard if names is nil. Where the view is no longer used,
	// gone is true.
	Drop(typeURL string, view uint64, names []string, gone bool)
}

// Rester is an optional extra of engines.
type Rester interface {
	// Rest is called once there has been nothing to do for ten seconds: the time to let go of what
	// nobody wants any more. It reports whether memory was freed, which a process then gives back
	// to the system.
	Rest(ctx context.Context, out Output) (freed bool)
}

// Explainer is an optional extra of engines and generators. Of a Generator without it the SDK knows
// what its Generate read, and what Resource.From says.
type Explainer interface {
	// Explain names the rows that a resource was made from, and those that were looked for in vain:
	// their coming may change it. It is called between the other methods, for what the newest
	// revision has; an error is shown to who asked.
	Explain(typeURL string, view uint64, name string) (rows, missing []state.Name, err error)
}

// PieceExplainer is an optional extra of those that are Explainers: it tells whose a piece of a
// resource is, where a proxy refuses that piece alone.
type PieceExplainer interface {
	// ExplainPiece names the rows that a piece of a resource was made from, as Explain does those
	// of all of it; false: it doesn't know, and all of the resource counts.
	ExplainPiece(typeURL string, view uint64, name string, of Piece) (rows []state.Name, ok bool)
}

// Piece is a piece of a resource of Envoy's.
type Piece struct {
	// Name is that of a virtual host in a RouteConfiguration, or of an HTTP filter in a filter
	// chain; empty: all of the chain is meant.
	Name string
	// FilterChain is the place of the chain in a Listener, from 1 on; the default one comes last.
	FilterChain int
}

// Output takes what an engine reports. Bodies that are equal to what the core has are not sent
// again. It must not be kept after the method that got it returns.
type Output interface {
	// View describes a view before its first use. facts are the answers that make up its key.
	View(typeURL string, view uint64, label string, facts map[string]string)
	// Place puts a connection into a view of a type; 0 takes the type away.
	Place(connection uint64, typeURL string, view uint64)
	// Part changes a set of resources that views share. Once no view lists a part its number is
	// spent: what is to be listed again gets a new one.
	Part(typeURL string, part uint64, upserts []Resource, removes []string)
	// Change changes a view: its list of parts (nil: as it was) and entries of its own.
	Change(typeURL string, view uint64, parts []uint64, upserts []Resource, removes []string)
	// Progress is a sign of life from work that takes long.
	Progress()
	// Fault reports work that failed and kept its last good result. What one call reports takes the
	// place of what was reported before: a Commit reports all that stands, other methods all or
	// nothing.
	Fault(what string, err error, read ...state.Name)
	// Log writes a line to the core's log.
	Log(level Level, text string, args ...any)
}

// Patch changes what a generator made.
type Patch interface {
	// Patch returns what becomes of the resources: changed and added ones, and names to remove.
	// What it doesn't name stays. It is a function of its arguments: results are remembered. facts
	// are those of the view that the declaration's Facts names. resources are the patch's to change
	// and return; s is shared. Patch is called once at a time, and proxies wait for it: limits.call
	// is all the time that it has. An error leaves the resources as they were before, or does what
	// the entry's onFailure says.
	Patch(s *state.State, typeURL string, facts map[string]string, resources []Resource) (changed []Resource, removed []string, err error)
}

// Credentials are what a caller showed.
type Credentials struct {
	// Certificates are DER, leaf first, verified by TLS.
	Certificates [][]byte
	// Headers by their lower-case names: authorization, clusterid, x-forwarded-client-cert, and
	// those that the entry's headers names. Others don't travel.
	Headers       map[string]string
	RemoteAddress string
}

// Bearer returns the token of the header authorization (RFC 6750, section 2.1); empty where there
// is none.
func (c Credentials) Bearer() string {
	scheme, token, _ := strings.Cut(c.Headers["authorization"], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// ErrUnavailable is wrapped by the error of an authenticator that can't find out: whatever it asks
// is away. Then there is no verdict, and the caller may try again.
var ErrUnavailable = errors.New("unavailable")

// Authenticator says who is calling.
type Authenticator interface {
	// Authenticate returns the caller's identities, or an error that says why these credentials
	// don't count, or that wraps ErrUnavailable. The caller is told the error's text, which must
	// not have a secret in it. It is called by several goroutines at once, and ctx ends with the
	// core's limits.call; a later answer is none.
	Authenticate(ctx context.Context, c Credentials) ([]string, error)
}

// Caller is who is calling, as an authenticator has verified it.
type Caller struct {
	Identities []string
	// Facts are what else is verified, for plugins that answer the caller's calls (Call.Facts).
	Facts map[string]string
}

// FactAuthenticator is an optional extra of authenticators: it says more of a caller than who it
// is.
type FactAuthenticator interface {
	// AuthenticateCaller is called in place of Authenticate, and like it.
	AuthenticateCaller(ctx context.Context, c Credentials) (Caller, error)
}

// Controller does long-running work with listeners or write access of its own.
type Controller interface {
	// Run works until ctx ends, and may block. It may publish in tables that the declaration's
	// Publishes names, and read State. Returning nil early means that its work is done; an error
	// ends the plugin, and the core starts it again.
	Run(ctx context.Context, out Publisher) error
}
