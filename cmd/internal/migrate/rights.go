package migrate

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/coxswain-mesh/coxswain"
	"github.com/coxswain-mesh/coxswain/cmd/internal/webhooks"
	"sigs.k8s.io/yaml"
)

// rights are those of deploy/kubernetes that the settings need, with the names of the revision, and
// in its namespace.
func (m *maker) rights() ([]byte, error) {
	end := webhooks.Suffix(m.Revision)
	maps := []string{"istio" + end}
	if shared, _ := m.Settings["sharedMeshConfig"].(string); shared != "" {
		maps = append(maps, shared)
	}
	for resource, names := range map[string][]string{
		"configmaps/istio": maps, "configmaps/istio-sidecar-injector": {"istio-sidecar-injector" + end},
		"leases/istio-gateway-deployment-default": {"istio-gateway-deployment-" + cmp.Or(m.Revision, webhooks.Default)},
		"leases/coxswain-injector":                {"coxswain-injector" + end}, "leases/coxswain-validator": {"coxswain-validator" + end},
		"leases/istio-gateway-status-leader-default": {"istio-gateway-status-leader-" + cmp.Or(m.Revision, webhooks.Default)},
	} {
		m.renamed[resource] = names
	}
	out := &bytes.Buffer{}
	for _, file := range m.files() {
		text, err := coxswain.Rights(file)
		if err != nil {
			return nil, err
		}
		for i, document := range bytes.Split(text, []byte("\n---\n")) {
			var o map[string]any
			if err := yaml.Unmarshal(document, &o); err != nil {
				return nil, fmt.Errorf("%s.yaml: document %d: %w", file, i+1, err)
			}
			m.rename(o, end)
			written, err := yaml.Marshal(o)
			if err != nil {
				return nil, err
			}
			if out.Len() > 0 {
				out.WriteString("---\n")
			}
			out.Write(written)
		}
	}
	for _, o := range m.multiCluster {
		written, err := yaml.Marshal(o)
		if err != nil {
			return nil, err
		}
		out.WriteString("---\n")
		out.Write(written)
	}
	return out.Bytes(), nil
}

// files returns those of deploy/kubernetes whose rights are needed, and reports which signers are
// to be named in them.
func (m *maker) files() []string {
	files := []string{"rights"}
	if m.injects || m.validates {
		files = append(files, "webhooks")
	}
	provider, _ := m.Settings["pilotCertProvider"].(string)
	if m.Settings["externalCA"] != nil || bytes.HasPrefix([]byte(provider), []byte("k8s.io/")) {
		files = append(files, "signers")
		if names := m.signers(); len(names) > 0 {
			m.renamed["signers/issuers.example.com/*"] = names
			m.out("signers of the cluster", Same, "rights.yaml names %s", strings.Join(names, ", "))
		} else {
			m.out("signers of the cluster", Differs, "name yours in rights.yaml, in the place of those of the example")
		}
	}
	if m.Settings["manageGateways"] == true {
		files = append(files, "gateways")
	}
	if m.Settings["autoRegistration"] == true {
		files = append(files, "registration")
	}
	if m.Settings["enableAnalysis"] == true {
		files = append(files, "analysis")
	}
	if m.Settings["untaintNodes"] == true {
		files = append(files, "untaint")
	}
	if m.Settings["enableClusterTrustBundleAPI"] == true {
		files = append(files, "trustbundles")
	}
	if m.exports {
		files = append(files, "exports")
	}
	return files
}

// rename gives an object the names of the revision: all that is made is called coxswain….
func (m *maker) rename(o map[string]any, end string) {
	named := func(of any) {
		if r, ok := of.(map[string]any); ok {
			r["name"] = fmt.Sprint(r["name"]) + end
			if r["namespace"] != nil {
				r["namespace"] = m.Namespace
			}
		}
	}
	named(o["metadata"])
	named(o["roleRef"])
	for _, s := range list(o["subjects"]) {
		named(s)
	}
	for _, r := range list(o["rules"]) {
		rule, _ := r.(map[string]any)
		for i, group := range list(rule["apiGroups"]) {
			if called := m.renamed[fmt.Sprintf("group/%v", group)]; called != nil {
				list(rule["apiGroups"])[i] = called[0]
			}
		}
		resources := list(rule["resources"])
		names := list(rule["resourceNames"])
		if len(names) == 0 || len(resources) == 0 {
			continue
		}
		var all []any
		for _, n := range names {
			called, ok := m.renamed[fmt.Sprintf("%v/%v", resources[0], n)]
			if !ok {
				all = append(all, n)
			}
			for _, c := range called {
				all = append(all, c)
			}
		}
		rule["resourceNames"] = all
	}
}

func list(of any) []any { l, _ := of.([]any); return l }
