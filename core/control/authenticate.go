package control

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/host"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Credentials are what a caller showed. They are secrets: nothing of them is logged.
type Credentials struct {
	// Certificates are DER, leaf first, and verified.
	Certificates [][]byte
	// Headers by their lower-case names.
	Headers       map[string]string
	RemoteAddress string
}

// maxCredentials is how many bytes of credentials travel to a plugin.
const maxCredentials = 256 << 10

// Authenticate asks the authenticators, in declared order, who is calling, until one knows. It returns those of the identities that the
// node may have. The error is a gRPC status: Unauthenticated if those that answered refuse, Unavailable if none answered, and
// PermissionDenied if the caller is somebody else than the node says.
func (c *Control) Authenticate(ctx context.Context, node *corev3.Node, shown Credentials) ([]string, error) {
	m := &pb.Authenticate{Certificates: shown.Certificates, Headers: shown.Headers, RemoteAddress: shown.RemoteAddress}
	if size := m.Size(); size > maxCredentials {
		return nil, status.Errorf(codes.Unauthenticated, "the credentials have %d bytes; %d are taken", size, maxCredentials)
	}
	var t tally
	for _, k := range c.authenticators() {
		caller, silence := c.interview(ctx, k, c.servedSession(k.Name), *m)
		if ctx.Err() != nil {
			return nil, status.FromContextError(ctx.Err()).Err()
		}
		v := verdictOf(caller, silence, shown)
		c.slowCall(k, v)
		c.cfg.Metrics.Authenticated(k.Name, v.word)
		if v.word == accepted {
			return matching(node, v.identities)
		}
		t.add(k.Name, v)
	}
	return nil, t.err()
}

// slowCall names limits.call where that is why an authenticator gave no verdict, be it that the core waited for so long, or the runner of its module.
func (c *Control) slowCall(k *known, v verdict) {
	if v.word != unanswered || host.Crossed(v.reason) != "call" {
		return
	}
	c.cfg.Metrics.Crossed(k.Name, "call")
	k.slow.Do(func() { c.cfg.Log.Warn("an authenticator gave no verdict", "plugin", k.Name, "reason", v.reason) })
}

// authenticators returns the declared ones in order.
func (c *Control) authenticators() []*known {
	c.clients.Lock()
	defer c.clients.Unlock()
	var all []*known
	for _, k := range c.sortedKnown() {
		if k.Kind == pb.KindAuthenticator {
			all = append(all, k)
		}
	}
	return all
}

// CommonHeaders are those that each authenticator gets: a token; the cluster whose API server can check it; and what a trusted proxy says of a
// certificate.
func CommonHeaders() []string {
	return []string{"authorization", "clusterid", "x-forwarded-client-cert"}
}

// WantedHeaders returns the headers that any authenticator gets, sorted.
func (c *Control) WantedHeaders() []string {
	all := CommonHeaders()
	for _, k := range c.authenticators() {
		all = append(all, k.Headers...)
	}
	c.clients.Lock()
	for _, t := range c.trials {
		all = append(all, t.known.Headers...)
	}
	c.clients.Unlock()
	slices.Sort(all)
	return slices.Compact(all)
}

// sees returns those of a caller's headers that an authenticator gets: no one is shown what another has asked for.
func (k *known) sees(headers map[string]string) map[string]string {
	own := make(map[string]string, len(headers))
	for _, name := range append(CommonHeaders(), k.Headers...) {
		if value, ok := headers[name]; ok {
			own[name] = value
		}
	}
	return own
}

// interview asks one authenticator, by whichever session is there. silence says why there is no answer.
func (c *Control) interview(ctx context.Context, k *known, find func() *session, m pb.Authenticate) (caller *pb.Caller, silence string) {
	m.Headers = k.sees(m.Headers)
	q, silence := c.pose(find, &m)
	if q == nil {
		return nil, silence
	}
	defer c.waitedFor(q)
	var late <-chan time.Time
	if k.Limits.Call > 0 {
		timer := time.NewTimer(k.Limits.Call)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case caller = <-q.answer:
		if caller == nil {
			return nil, "ended while it was asked"
		}
		return caller, ""
	case <-late:
		return nil, fmt.Sprintf("did not answer within limits.call, %s", k.Limits.Call)
	case <-ctx.Done():
		return nil, "was not waited for"
	}
}

// Words for what became of a question, as metrics have them.
const (
	accepted   = "accepted"
	refused    = "refused"
	unanswered = "unanswered"
)

// verdict is what one authenticator makes of credentials.
type verdict struct {
	word       string
	reason     string
	identities []string
}

const (
	maxIdentities   = 64
	maxIdentity     = 2048 // a SPIFFE ID's
	maxReasonLength = 300
)

// verdictOf reads an answer. One that makes no sense refuses.
func verdictOf(caller *pb.Caller, silence string, shown Credentials) verdict {
	if caller == nil {
		return verdict{word: unanswered, reason: silence}
	}
	if caller.Failure != "" {
		return verdict{word: unanswered, reason: "could not tell: " + speakable(caller.Failure, shown)}
	}
	reason := caller.Refusal
	switch {
	case reason != "":
	case len(caller.Identities) == 0:
		reason = "it named no identity"
	case len(caller.Identities) > maxIdentities:
		reason = fmt.Sprintf("it named %d identities; the limit is %d", len(caller.Identities), maxIdentities)
	default:
		for _, id := range caller.Identities {
			if id == "" || len(id) > maxIdentity {
				reason = fmt.Sprintf("it named an identity of %d bytes; the limits are 1 and %d", len(id), maxIdentity)
			}
		}
	}
	if reason != "" {
		return verdict{word: refused, reason: speakable(reason, shown)}
	}
	return verdict{word: accepted, identities: caller.Identities}
}

// speakable makes one printable line of what a plugin said, without what the caller showed.
func speakable(reason string, shown Credentials) string {
	for _, value := range shown.Headers {
		for _, secret := range append(strings.Fields(value), value) {
			if len(secret) >= 8 {
				reason = strings.ReplaceAll(reason, secret, "(hidden)")
			}
		}
	}
	return oneLine(reason, maxReasonLength)
}

// oneLine makes a printable line of at most some bytes.
func oneLine(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// tally gathers the verdicts of those that did not accept.
type tally struct {
	reasons []string
	refused bool
}

func (t *tally) add(name string, v verdict) {
	says := " "
	if v.word == refused {
		t.refused = true
		says = ": "
	}
	t.reasons = append(t.reasons, name+says+v.reason)
}

func (t *tally) err() error {
	why := strings.Join(t.reasons, "; ")
	switch {
	case len(t.reasons) == 0:
		return status.Error(codes.Unauthenticated, "nobody can say who is calling: plugins.yaml declares no authenticator")
	case t.refused:
		return status.Error(codes.Unauthenticated, "the credentials are refused: "+why)
	}
	return status.Error(codes.Unavailable, "nobody can say now who is calling: "+why)
}
