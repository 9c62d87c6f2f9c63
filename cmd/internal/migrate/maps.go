package migrate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/coxswain-mesh/coxswain/cmd/internal/webhooks"
	configmesh "github.com/coxswain-mesh/coxswain/plugins/config/mesh"
	"github.com/coxswain-mesh/coxswain/plugins/shared/render"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"github.com/coxswain-mesh/coxswain/plugins/validation/rules"
)

// mostFindings is how many of one text are told.
const mostFindings = 50

// maps are ConfigMaps that istiod reads: they are read here, too, and what they say is judged.
func (m *maker) maps() {
	end := webhooks.Suffix(m.Revision)
	mesh, injector := "istio"+end, "istio-sidecar-injector"+end
	shared, _ := m.Settings["sharedMeshConfig"].(string)
	there := map[string]bool{}
	for _, c := range m.in.ConfigMaps {
		if !m.here(c.Namespace) {
			m.out(m.named("ConfigMap", c.Namespace, c.Name), Same, "it is of another namespace, and stays as it is")
			continue
		}
		there[c.Name] = true
		switch c.Name {
		case mesh, shared:
			m.mesh(c)
		case injector:
			m.templates(c)
		case "values" + end:
			m.out("ConfigMap/"+c.Name, Moot, "istiod's chart keeps values in it, which nobody reads")
		case "pilot-jwks-extra-cacerts" + end:
			m.out("ConfigMap/"+c.Name, Differs, "authorities for key sets: mount it, and set SSL_CERT_FILE")
		default:
			m.other(c)
		}
	}
	if !there[mesh] {
		m.out("ConfigMap/"+mesh, Differs, "it is not among what was read: its settings were not judged; it is read once the control plane runs")
	}
	if !there[injector] && m.injects {
		m.out("ConfigMap/"+injector, Differs, "it is not among what was read: where there is none, the built-in templates count")
	}
}

// classDefaults is the label of ConfigMaps with defaults of a class of Gateways.
const classDefaults = "gateway.istio.io/defaults-for-class"

// other is a ConfigMap that istiod's name does not say.
func (m *maker) other(c *corev1.ConfigMap) {
	what := "ConfigMap/" + c.Name
	class, ok := c.Labels[classDefaults]
	switch {
	case !ok:
		m.out(what, Same, "nothing here reads it")
	case m.Settings["manageGateways"] == true:
		m.out(what, Same, "it is read (controller/gateway): what is deployed for Gateways of the class %s is made by it", short(class))
	default:
		m.out(what, Differs, "it has defaults of what istiod deploys for Gateways of the class %s; here they are read, and Gateways "+
			"are deployed, where manageGateways is on: set it", short(class))
	}
}

// mesh judges the mesh's settings.
func (m *maker) mesh(c *corev1.ConfigMap) {
	found := 0
	for key, kind := range map[string]string{"mesh": configmesh.MeshConfig, "meshNetworks": configmesh.MeshNetworks} {
		text, ok := c.Data[key]
		if !ok {
			continue
		}
		_, faults := configmesh.Read(kind, "", []byte(text), rules.Check)
		for i, f := range faults {
			if found++; i >= mostFindings {
				m.out("ConfigMap/"+c.Name+" "+key, Differs, "there are %d more", len(faults)-i)
				break
			}
			f.File = ""
			says := "a warning"
			if f.Severity == finding.Error {
				says = "it can't be used"
			}
			m.out("ConfigMap/"+c.Name+" "+key, Differs, "%s: %s", says, f.Text())
		}
	}
	if found == 0 {
		m.out("ConfigMap/"+c.Name, Same, "it is read (config/mesh), and followed")
	}
}

// templates judges what is injected.
func (m *maker) templates(c *corev1.ConfigMap) {
	s, err := render.Read(c.Data["config"], c.Data["values"], render.Names{})
	if err != nil {
		m.out("ConfigMap/"+c.Name, Differs, "it can't be used: %v; repair it, or remove it, so that the built-in templates count", err)
		return
	}
	names := slices.DeleteFunc(s.Templates(), func(name string) bool { return ofGateways[name] != "" })
	m.out("ConfigMap/"+c.Name, Same, "it is read (controller/injector), and followed; its templates are %s", strings.Join(names, ", "))
	for _, name := range slices.Sorted(maps.Keys(ofGateways)) {
		text, there := s.Template(name)
		if sum := sha256.Sum256([]byte(strings.TrimSpace(text))); there && hex.EncodeToString(sum[:]) != ofGateways[name] {
			m.out("ConfigMap/"+c.Name+" template "+name, Differs, "it is not that of Istio 1.31's chart, and what is otherwise in it does "+
				"not count: what is deployed for a Gateway is changed by a ConfigMap with the label %s", classDefaults)
		}
	}
	m.surroundings(c, s)
}

// ofGateways are the templates of istiod's chart by which Gateways are deployed, with their
// checksums (SHA-256): here none is followed. Source: Istio 1.31, chart istiod, files/*.yaml.
var ofGateways = map[string]string{
	"kube-gateway":          "9932d67bace656cab96b5dabff8ce86ab7971b3f20d06fcd637fcb35182a0c6d",
	"waypoint":              "a8872314cc8f33ad173829f4f1654f3e5602f3de3df3ab0a3677427809259bab",
	"agentgateway":          "3488002be542673b659f58d2791ce5022a69dc476b4c6ab8b05150a62c66e58a",
	"agentgateway-waypoint": "fff0c64dba0f5dac93ddf4ebc0d4c21d963e0b741631a9dc15cad572859b3725",
}

// variableName is what a variable of the environment may be called in plugins.yaml.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// surroundings lets templates see the variables and hosts that they name: in istiod they see all.
func (m *maker) surroundings(c *corev1.ConfigMap, s *render.Settings) {
	env, hosts := map[string]bool{}, map[string]bool{}
	asks, open := map[string]map[string]bool{}, map[string]map[string]bool{}
	note := func(in map[string]map[string]bool, template, name string) {
		if in[template] == nil {
			in[template] = map[string]bool{}
		}
		in[template][name] = true
	}
	for _, call := range s.Calls() {
		if ofGateways[call.Template] != "" {
			continue
		}
		if len(call.Names) == 0 {
			note(open, call.Template, call.Function)
		}
		for _, name := range call.Names {
			switch {
			case call.Function == "getHostByName" && name != "":
				hosts[name] = true
			case variableName.MatchString(name):
				env[name] = true
			default:
				continue // there is no such variable
			}
			note(asks, call.Template, call.Function+" "+short(name))
		}
	}
	if len(env) > 0 {
		names := slices.Sorted(maps.Keys(env))
		m.set.config("controller/injector", names, "env")
		m.set.field("controller/injector", names, "allow", "env")
	}
	if len(hosts) > 0 {
		m.set.config("controller/injector", slices.Sorted(maps.Keys(hosts)), "hosts")
	}
	what := "ConfigMap/" + c.Name + " template "
	for _, template := range slices.Sorted(maps.Keys(asks)) {
		m.out(what+template, Differs, "it calls %s: plugins.yaml lets it see these (env, hosts and allow.env of controller/injector); "+
			"set the variables in the Deployment, too", told(asks[template]))
	}
	for _, template := range slices.Sorted(maps.Keys(open)) {
		m.out(what+template, Differs, "it calls %s with names that it makes as it runs, and sees nothing: add them to env, hosts and "+
			"allow.env of controller/injector in plugins.yaml", told(open[template]))
	}
}

// told are the first names of a set, so many as are told.
func told(of map[string]bool) string {
	names := slices.Sorted(maps.Keys(of))
	if more := len(names) - mostFindings; more > 0 {
		names = append(names[:mostFindings], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
