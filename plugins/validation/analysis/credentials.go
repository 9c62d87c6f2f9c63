package analysis

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"go.yaml.in/yaml/v3"
	networking "istio.io/api/networking/v1alpha3"
)

// unusable is the code of credentials that are there and lack something, badCredential that of
// Gateways' ones.
const (
	unusable      = "COX3009"
	badCredential = "IST0161"
)

// Credentials are Secrets, or ConfigMaps, by NAMESPACE/NAME.
type Credentials map[string]Credential

// Credential is what is known of an object that TLS settings may name. Nothing of its values is
// kept.
type Credential struct {
	// Certificate and Trust are why it is no certificate with its key, and nothing to trust; nil:
	// it is, or its values are not known.
	Certificate, Trust error
}

// with returns them with one more.
func (c Credentials) with(key string, one Credential) Credentials {
	if c == nil {
		c = Credentials{}
	}
	c[key] = one
	return c
}

// credentialOf returns what the values of a Secret or a ConfigMap are good for. One without any may
// get them from somebody else.
func credentialOf(object *yaml.Node) (c Credential) {
	data, has, err := kinds.Values(object)
	switch {
	case !has:
	case err != nil:
		c.Certificate, c.Trust = err, err
	default:
		var pair secrets.Pair
		if pair, c.Certificate = secrets.Certificate(data); c.Certificate == nil {
			c.Certificate = expired(pair.Chain, time.Now())
		}
		_, c.Trust = secrets.Trusted(data)
	}
	return c
}

// expired is an error if the first certificate of a chain in PEM is of no time any more.
func expired(chain []byte, now time.Time) error {
	block, _ := pem.Decode(chain)
	if block == nil {
		return nil // that is said
	}
	if c, err := x509.ParseCertificate(block.Bytes); err == nil && now.After(c.NotAfter) {
		return fmt.Errorf("its certificate has expired, on %s", c.NotAfter.UTC().Format(time.DateOnly))
	}
	return nil
}

// credentials finds what Gateways and DestinationRules name that is not there, or lacks something,
// where such objects are known.
func credentials(w *world) {
	for _, g := range of[*networking.Gateway](w) {
		namespaces := w.gatewayNamespaces(g)
		for i, s := range g.spec.Servers {
			w.serverCredentials(g.Resource, fmt.Sprintf("spec.servers[%d].tls", i), s.GetTls(), namespaces)
		}
	}
	for _, d := range of[*networking.DestinationRule](w) {
		// A rule without a selector is for gateways, wherever they are.
		var namespaces []string
		if d.spec.WorkloadSelector != nil {
			namespaces = []string{d.Namespace}
		}
		w.policyCredential(d.Resource, "spec.trafficPolicy", d.spec.TrafficPolicy, namespaces)
		for i, subset := range d.spec.Subsets {
			w.policyCredential(d.Resource, fmt.Sprintf("spec.subsets[%d].trafficPolicy", i), subset.GetTrafficPolicy(), namespaces)
		}
	}
}

// Credentials returns, as warnings, what Gateways and DestinationRules name that is not there or
// lacks something, where such objects were read.
func (r *Reader) Credentials() []kinds.Fault {
	w := newWorld(r.Input)
	credentials(w)
	found := slices.DeleteFunc(w.found, suppressed)
	for i := range found {
		found[i].Severity = finding.Warning
	}
	return places(found)
}

// AddUnusable adds that something that a Gateway or a DestinationRule names is not served to
// proxies that ask for it, in a plugin's words. Other kinds name nothing.
func (r *Reader) AddUnusable(kind, key, source, words string) {
	if kind != "Gateway" && kind != "DestinationRule" {
		return
	}
	file, line, column := place(source)
	namespace, name := kinds.SplitKey(key)
	f := finding.Errorf(unusable, "", "%s", words)
	r.Faults = append(r.Faults, kinds.Fault{
		File: file, Line: line, Column: column, Kind: kind, Namespace: namespace, Name: name, Code: f.Code, Severity: f.Severity, Message: f.Message,
	})
}

// gatewayNamespaces are those in which a Gateway's workloads may be, which have its secrets: its
// own and those of workloads that are known.
func (w *world) gatewayNamespaces(g item[*networking.Gateway]) []string {
	namespaces := []string{g.Namespace}
	for _, each := range w.matching("", g.spec.Selector) {
		namespaces = append(namespaces, each.Namespace)
	}
	return namespaces
}

// serverCredentials checks those of a server. Its clients' roots are of the first, unless it names
// them.
func (w *world) serverCredentials(r *Resource, at string, t *networking.ServerTLSSettings, namespaces []string) {
	names := t.GetCredentialNames()
	for i, name := range names {
		w.credential(r, fmt.Sprintf("%s.credentialNames[%d]", at, i), "credentialName", name, namespaces)
	}
	field := at + ".credentialNames[0]"
	if len(names) == 0 {
		names, field = []string{t.GetCredentialName()}, at+".credentialName"
		w.credential(r, field, "credentialName", names[0], namespaces)
	}
	asks := t.GetMode() == networking.ServerTLSSettings_MUTUAL || t.GetMode() == networking.ServerTLSSettings_OPTIONAL_MUTUAL
	switch {
	case !asks || names[0] == "":
	case t.GetCaCertCredentialName() != "":
		w.credential(r, at+".caCertCredentialName", "caCertCredentialName", t.GetCaCertCredentialName(), namespaces)
	default:
		w.credential(r, field, "credentialName", names[0]+secrets.RootsSuffix, namespaces)
	}
}

// policyCredential checks those that a policy names for clients.
func (w *world) policyCredential(r *Resource, at string, p *networking.TrafficPolicy, namespaces []string) {
	w.clientCredential(r, at+".tls", p.GetTls(), namespaces)
	for i, port := range p.GetPortLevelSettings() {
		w.clientCredential(r, fmt.Sprintf("%s.portLevelSettings[%d].tls", at, i), port.GetTls(), namespaces)
	}
}

func (w *world) clientCredential(r *Resource, at string, t *networking.ClientTLSSettings, namespaces []string) {
	name, field := t.GetCredentialName(), at+".credentialName"
	if name == "" {
		return
	}
	if t.Mode == networking.ClientTLSSettings_MUTUAL {
		w.credential(r, field, "credentialName", name, namespaces)
	}
	if !t.InsecureSkipVerify.GetValue() {
		w.credential(r, field, "credentialName", name+secrets.RootsSuffix, namespaces)
	}
}

// credential checks one, in the namespaces in which it may be, or in all if there are none. Names
// of others than Kubernetes' objects are not known here.
func (w *world) credential(r *Resource, field, what, name string, namespaces []string) {
	if name == "" || strings.HasPrefix(name, secrets.ExternalScheme) {
		return
	}
	asked := secrets.AskedFor(name)
	ref, err := secrets.ParseReference(asked, r.Namespace)
	known := w.credentialsOf(ref.Kind)
	if err != nil || known == nil {
		return
	}
	if whole := strings.Contains(ref.Text, "://"+ref.Namespace+"/"); whole {
		namespaces = []string{ref.Namespace}
	}
	for _, o := range ref.Objects() {
		problem, found := known.find(o.Name, namespaces, ref.Roots)
		switch {
		case found && problem != nil:
			code := unusable
			if _, gateway := r.Spec.(*networking.Gateway); gateway {
				code = badCredential
			}
			w.report(r, finding.Errorf(code, field,
				"%s %s can't be used as %s: %v", o.Kind, o.Name, what, problem).WithHint("what needs it is not served until it is right"))
			return
		case found:
			return
		}
	}
	f := missing(field, what, strings.TrimSuffix(name, secrets.RootsSuffix))
	if ref.Kind == secrets.Secret && !ref.Gateway {
		f = f.WithHint("the secret must be in the namespace of the proxies, such as the gateway's pods")
	}
	// A Secret that is missing has no roots either.
	if last := len(w.found) - 1; last < 0 || w.found[last].Resource != r || w.found[last].Code != f.Code ||
		w.found[last].Field != f.Field || w.found[last].Message != f.Message {
		w.report(r, f)
	}
}

// credentialsOf returns those of a kind; nil: they are not known.
func (w *world) credentialsOf(kind string) Credentials {
	if kind == secrets.ConfigMap {
		return w.configMaps
	}
	return w.secrets
}

// find looks for an object in namespaces, or in all if there are none, and returns what is wrong
// with the one that is best.
func (c Credentials) find(name string, namespaces []string, roots bool) (problem error, found bool) {
	for key, each := range c {
		namespace, of, _ := strings.Cut(key, "/")
		if of != name || len(namespaces) > 0 && !slices.Contains(namespaces, namespace) {
			continue
		}
		own := each.Certificate
		if roots {
			own = each.Trust
		}
		if own == nil {
			return nil, true
		}
		problem, found = own, true
	}
	return problem, found
}
