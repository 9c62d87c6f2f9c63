package kubernetes

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/coxswain-mesh/coxswain/plugins/internal/trust"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Authenticator knows callers by tokens of service accounts.
type Authenticator struct {
	config  Config
	domain  *trust.Domain
	servers *servers
	limiter *limiter
	now     func() time.Time
	// accepted and refused are what is remembered of tokens, by key; one that floods cannot push
	// the other's out.
	accepted, refused *cache.LRUExpireCache
	asking            singleflight.Group
	// life ends with the plugin.
	life context.Context
	end  context.CancelFunc
}

// key is a token in a cluster: tokens themselves are not kept.
type key [sha256.Size]byte

// New returns the authenticator of a config. It asks nobody yet; an error is one of the kubeconfig.
func New(c Config) (*Authenticator, error) {
	servers, err := newServers(&c)
	if err != nil {
		return nil, err
	}
	life, end := context.WithCancel(context.Background())
	return &Authenticator{
		config: c, domain: trust.NewDomain(c.TrustDomain), servers: servers,
		limiter: newLimiter(c.Reviews.Concurrent, c.Reviews.PerPeer, c.Reviews.Waiting), now: time.Now,
		accepted: cache.NewLRUExpireCache(c.Reviews.Remembered), refused: cache.NewLRUExpireCache(c.Reviews.Remembered), life: life, end: end,
	}, nil
}

// Run is a sdk.Source's: it follows the mesh's settings and the other clusters until ctx ends.
func (a *Authenticator) Run(ctx context.Context, out sdk.Publisher) error {
	defer a.end()
	a.servers.log(out)
	for {
		s, newer := out.State()
		if err := a.domain.Saw(s); err != nil {
			out.Log(sdk.Warn, "the mesh's settings can't be read; its trust domain stays what it was", "error", err)
		}
		a.servers.saw(s)
		select {
		case <-newer:
		case <-ctx.Done():
			return nil
		}
	}
}

// account is a service account, and the pod that its token is bound to; empty: to none.
type account struct{ namespace, name, pod string }

// Authenticate is AuthenticateCaller, without facts.
func (a *Authenticator) Authenticate(ctx context.Context, c sdk.Credentials) ([]string, error) {
	is, err := a.AuthenticateCaller(ctx, c)
	return is.Identities, err
}

// AuthenticateCaller returns the service account whose token the header `authorization: Bearer
// TOKEN` has, as an identity, with its cluster and its pod as facts. It is checked by the API
// server of the cluster that the header clusterid names, of the own one where it names none.
func (a *Authenticator) AuthenticateCaller(ctx context.Context, c sdk.Credentials) (none sdk.Caller, err error) {
	token := c.Bearer()
	if token == "" {
		return none, errNoToken
	}
	until, err := a.config.Tokens.look(token, a.now())
	if err != nil {
		return none, err
	}
	domain, err := a.domain.Name(ctx) // once it is known, other clusters are
	if err != nil {
		return none, err
	}
	server, err := a.servers.of(c.Headers["clusterid"])
	if err != nil {
		return none, err
	}
	is, err := a.whose(ctx, server, token, until, peer(c.RemoteAddress))
	if err != nil {
		return none, err
	}
	facts := map[string]string{trust.Cluster: server.id}
	if is.pod != "" {
		facts[trust.Pod] = is.namespace + "/" + is.pod
	}
	return sdk.Caller{Identities: []string{istio.Identity{TrustDomain: domain, Namespace: is.namespace, ServiceAccount: is.name}.String()}, Facts: facts}, nil
}

// peer is a caller's address without its port.
func peer(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

// whose returns whose token it is, as is remembered, or as the server says; until is when it
// expires.
func (a *Authenticator) whose(ctx context.Context, s *server, token string, until time.Time, peer string) (account, error) {
	k := key(sha256.Sum256([]byte(s.id + "\x00" + s.hash + "\x00" + token)))
	if is, known, err := a.remembers(k); known {
		return is, err
	}
	answer := a.asking.DoChan(string(k[:]), func() (any, error) { return a.ask(s, k, token, until, peer) })
	select {
	case got := <-answer:
		if got.Err != nil {
			return account{}, got.Err
		}
		return got.Val.(account), nil
	case <-ctx.Done():
		return account{}, fmt.Errorf("%w: the API server has not answered in time", sdk.ErrUnavailable)
	}
}

// remembers returns what the server has said of a token; known: it has, not long ago.
func (a *Authenticator) remembers(k key) (is account, known bool, err error) {
	if is, ok := a.accepted.Get(k); ok {
		return is.(account), true, nil
	}
	if err, ok := a.refused.Get(k); ok {
		return account{}, true, err.(error)
	}
	return account{}, false, nil
}

// ask asks the server, when it is the peer's turn, and remembers what it says.
func (a *Authenticator) ask(s *server, k key, token string, until time.Time, peer string) (account, error) {
	if is, known, err := a.remembers(k); known { // it was asked by another call since this one has looked
		return is, err
	}
	ctx, cancel := context.WithTimeout(a.life, a.config.Reviews.Timeout)
	defer cancel()
	leave, err := a.limiter.enter(ctx, peer)
	if err != nil {
		return account{}, err
	}
	defer leave()
	is, err := a.review(ctx, s, token)
	var no *refusal
	switch {
	case err == nil:
		a.accepted.Add(k, is, min(a.config.Reviews.Accepted, until.Sub(a.now())))
	case errors.As(err, &no):
		a.refused.Add(k, err, a.config.Reviews.Refused)
	}
	return is, err
}

// unavailable wraps why a server can't be asked.
func unavailable(s *server, err error) error {
	return fmt.Errorf("%w: the API server of the cluster %s can't be asked: %w", sdk.ErrUnavailable, s.id, err)
}
