package migrate

import (
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
			fate, text := Same, "nothing here reads it"
			if strings.HasPrefix(c.Name, "istio-") && strings.Contains(c.Name, "gateway-class") {
				fate, text = Differs, "it is about Gateways that istiod deploys, which nobody does here"
			}
			m.out("ConfigMap/"+c.Name, fate, "%s", text)
		}
	}
	if !there[mesh] {
		m.out("ConfigMap/"+mesh, Differs, "it is not among what was read: its settings were not judged; it is read once the control plane runs")
	}
	if !there[injector] && m.injects {
		m.out("ConfigMap/"+injector, Differs, "it is not among what was read: where there is none, the built-in templates count")
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
	names := s.Templates()
	slices.Sort(names)
	m.out("ConfigMap/"+c.Name, Same, "it is read (controller/injector), and followed; its templates are %s", strings.Join(names, ", "))
}
