package sds

import (
	"fmt"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// gateways are those that name credentials: their rows' keys, by their namespace and a credential's
// name without secrets.RootsSuffix.
type gateways map[owner][]string

type owner struct{ namespace, credential string }

// gatewaysOf reads the rows of Gateways. Only names that a Gateway has to allow are kept.
func gatewaysOf(t *state.Table) gateways {
	out := gateways{}
	for key, row := range t.All() {
		spec, err := kinds.Decode[*networking.Gateway](row)
		if err != nil {
			continue // its source says so
		}
		namespace, _ := kinds.SplitKey(key)
		for _, name := range gatewayNames(row, spec) {
			if r, err := secrets.ParseReference(name, namespace); err == nil && r.Gateway {
				of := owner{namespace, r.Text}
				out[of] = append(out[of], key)
			}
		}
	}
	return out
}

// granted returns the key of a ReferenceGrant that lets Gateways of a namespace refer to an object
// of another one; empty: there is none.
func granted(t *state.Table, from string, o secrets.Object) string {
	found := ""
	for key, row := range t.All() {
		if in, _ := kinds.SplitKey(key); in != o.Namespace {
			continue
		}
		if g, err := secrets.DecodeGrant(row); err != nil || !g.Allows(from, o) {
			continue
		}
		if found == "" || key < found {
			found = key
		}
	}
	return found
}

// admit says why a caller may not have what a reference means, if so. It adds the rows that it
// looked at.
func (e *engine) admit(c caller, r secrets.Reference, read *reading) error {
	if c.namespace == "" {
		return fmt.Errorf("the proxy's verified identity says no namespace (spiffe://DOMAIN/ns/NAMESPACE/sa/ACCOUNT)")
	}
	if !r.Gateway {
		// Whom a ConfigMap says to trust is no secret, and mostly of the server's namespace.
		if r.Namespace != c.namespace && r.Kind == secrets.Secret {
			return fmt.Errorf("it is of namespace %s, and the proxy is of %s: secrets are for their own namespace's proxies", r.Namespace, c.namespace)
		}
		return nil
	}
	by := e.gateways[owner{c.namespace, r.Text}]
	if len(by) == 0 {
		return fmt.Errorf("no Gateway of the proxy's namespace, %s, names it", c.namespace)
	}
	for _, key := range by {
		read.rows = append(read.rows, state.Name{Table: kinds.Gateway, Key: key})
	}
	if r.Namespace == c.namespace {
		return nil
	}
	o := secrets.Object{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
	key := granted(e.state.Table(secrets.Grants), c.namespace, o)
	if key == "" {
		return fmt.Errorf("it is of namespace %s, where no ReferenceGrant lets Gateways of %s have %s", r.Namespace, c.namespace, o)
	}
	read.rows = append(read.rows, state.Name{Table: secrets.Grants, Key: key})
	return nil
}
