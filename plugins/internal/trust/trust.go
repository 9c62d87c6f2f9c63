// Package trust is what authenticators share that make identities of service accounts: the mesh's
// trust domain, and how Kubernetes names such an account.
package trust

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Domain is the trust domain of identities: a fixed one, or that of the mesh's settings (table
// mesh), which Follow follows.
type Domain struct {
	once  sync.Once
	known chan struct{}

	mu   sync.Mutex
	name string
}

// NewDomain returns a fixed domain, or that of the mesh where name is empty.
func NewDomain(name string) *Domain {
	d := &Domain{known: make(chan struct{}), name: name}
	if name != "" {
		d.once.Do(func() { close(d.known) })
	}
	return d
}

// Saw takes what a state says of the mesh's trust domain. The state before the first revision says
// nothing, and settings that can't be read change nothing; the error says why.
func (d *Domain) Saw(s *state.State) error {
	if s.Revision().Epoch == 0 {
		return nil
	}
	mesh, err := kinds.Mesh(s)
	if err != nil {
		return err
	}
	d.mu.Lock()
	d.name = cmp.Or(mesh.TrustDomain, istio.LocalTrustDomain)
	d.mu.Unlock()
	d.once.Do(func() { close(d.known) })
	return nil
}

// Follow takes what each state says until ctx ends; it returns at once where the domain is a fixed
// one.
func (d *Domain) Follow(ctx context.Context, out sdk.Publisher) {
	select {
	case <-d.known:
		return
	default:
	}
	for {
		s, newer := out.State()
		if err := d.Saw(s); err != nil {
			out.Log(sdk.Warn, "the mesh's settings can't be read; its trust domain stays what it was", "error", err)
		}
		select {
		case <-newer:
		case <-ctx.Done():
			return
		}
	}
}

// Name returns the domain. The first call waits until the mesh's settings are known; the error,
// which wraps sdk.ErrUnavailable, says that ctx ended before.
func (d *Domain) Name(ctx context.Context) (string, error) {
	select {
	case <-d.known:
	case <-ctx.Done():
		return "", fmt.Errorf("%w: the mesh's settings, which name the trust domain, are not known yet", sdk.ErrUnavailable)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.name, nil
}

// accountPrefix begins the names of service accounts among users. Source: Kubernetes,
// "Authenticating", service account tokens. Facts of callers (sdk.Caller): the cluster that has
// issued a token, by its id, and the pod that it is bound to, NAMESPACE/NAME.
const (
	Cluster = "cluster"
	Pod     = "pod"
)

const accountPrefix = "system:serviceaccount:"

// Account returns the namespace and the name of the service account that a user is,
// system:serviceaccount:NAMESPACE:NAME; ok is false for other users.
func Account(user string) (namespace, name string, ok bool) {
	rest, ok := strings.CutPrefix(user, accountPrefix)
	namespace, name, two := strings.Cut(rest, ":")
	return namespace, name, ok && two && plain(namespace) && plain(name)
}

// plain reports whether a text can be a name of Kubernetes, and so a part of an identity: RFC
// 1123's letters.
func plain(text string) bool {
	return text != "" && len(text) <= 253 && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789-.") == ""
}
