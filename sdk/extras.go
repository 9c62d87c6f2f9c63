package sdk

import (
	"context"
	"errors"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Answerer is an optional extra of engines and generators: resources of types that are answered per
// request, as debug types are.
type Answerer interface {
	// Answer is called between the other methods, while the client waits, for at most limits.call.
	// What it returns is not remembered. An error is told to the client.
	Answer(ctx context.Context, connection uint64, typeURL string, names []string) ([]Resource, error)
}

// Report says what became of what was sent to a proxy.
type Report struct {
	Connection uint64
	Type       string
	// Event is an ACK, a NACK or a change of health.
	Event    pb.ReportEvent
	Detail   string
	Revision state.Revision
}

// Reporter is an optional extra of engines and generators that want to hear of ACKs and NACKs.
type Reporter interface {
	// Report is called in the order in which things happened, between the other methods, and must
	// not wait.
	Report(r Report)
}

// Blame is a row of the plugin, or one that a controller reads, and a resource that was made from
// it and that proxies refuse.
type Blame struct {
	Table, Key string
	// Type and Resource are what is refused, Reason why, in the words of the first that refused it.
	Type, Resource, Reason string
	// Held: proxies of some namespaces that have not accepted it are served what most had before;
	// otherwise those alone that refuse it.
	Held bool
	// Proxies is how many refused it when this was said; 0: those that did are gone, and it is
	// held.
	Proxies int
	// Parts are those of the resource that proxies refuse, in words (virtual host x, filter y of
	// filter chain z), a few of them, separated by commas. Empty: all of it, or it has no parts.
	Parts string
}

// Blamed is an optional extra of registries and config sources that want to know for which of their
// rows proxies refuse what was made from them, to say so where people wrote them; and of
// controllers, which are told of the rows of all tables that they read.
type Blamed interface {
	// Blame has all that is known now, nothing where it is over. It is called when that changes,
	// and must not wait.
	Blame(rows []Blame)
}

var errNotSupported = errors.New("not supported")
