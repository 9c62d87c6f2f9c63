package migrate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/coxswain-mesh/coxswain/cmd/internal/webhooks"
)

// webhooks makes configurations as istiod's are, and says what is otherwise in these.
func (m *maker) webhooks() {
	c := webhooks.Config{Revision: m.Revision, Namespace: m.Namespace, Account: m.Account, Service: m.service()}
	revision := cmp.Or(m.Revision, webhooks.Default)
	var tags []string
	known := false
	for _, h := range m.in.Mutating {
		if h.Labels[webhooks.RevisionLabel] != revision {
			if h.Labels[webhooks.RevisionLabel] != "" {
				m.out("MutatingWebhookConfiguration/"+h.Name, Same, "it is of the revision %s", short(h.Labels[webhooks.RevisionLabel]))
			}
			continue
		}
		m.Leaving = append(m.Leaving, "MutatingWebhookConfiguration/"+h.Name)
		if tag := h.Labels[webhooks.TagLabel]; tag != "" {
			tags = append(tags, tag)
			m.out("MutatingWebhookConfiguration/"+h.Name, Setting, "the tag %s is in webhooks.yaml, of the same name", tag)
			continue
		}
		known = true
		m.injecting(&c, h)
	}
	if len(m.in.Mutating) > 0 && !known {
		m.out("webhooks for pods", Differs, "no MutatingWebhookConfiguration has the label %s=%s: webhooks.yaml has "+
			"those of Istio's chart", webhooks.RevisionLabel, revision)
	}
	m.everywhere = c.Everywhere
	m.validating(revision)
	m.tags(tags)
	if err := c.Check(); err != nil {
		m.out("webhooks", Differs, "what they are made of can't be used (%v): write them by coxswain webhooks", err)
		return
	}
	if m.injects {
		m.Webhooks = append(m.Webhooks, c.Injecting())
	}
	if v := c.Judging(); m.validates && v != nil {
		m.Webhooks = append(m.Webhooks, v)
	}
	for _, tag := range tags {
		c := c
		c.Tag, c.Everywhere = tag, c.Everywhere && tag == webhooks.Default
		m.Webhooks = append(m.Webhooks, c.Injecting())
		if v := c.Judging(); v != nil {
			m.Webhooks = append(m.Webhooks, v)
		}
	}
}

// service is the Service by which istiod's port for webhooks is reached.
func (m *maker) service() string {
	for _, s := range m.in.Services {
		if s.Labels[webhooks.TagLabel] != "" {
			m.out("Service/"+s.Name, Same, "let it select the new pods: who is told the tag in place of the revision finds them by it")
		}
	}
	found, pods := "", labels.Set(m.of.Spec.Template.Labels)
	for _, s := range m.in.Services {
		if s.Labels[webhooks.TagLabel] != "" {
			continue
		}
		what := m.named("Service", s.Namespace, s.Name)
		switch {
		case !m.here(s.Namespace) || len(s.Spec.Selector) == 0 || !labels.SelectorFromSet(s.Spec.Selector).Matches(pods):
			m.out(what, Same, "it selects no pods of istiod's, and stays as it is")
		case found == "":
			found = s.Name
			m.out(what, Same, "let it select the new pods: proxies and webhooks find them by it")
		default:
			m.out(what, Same, "let it select the new pods, too, if somebody calls istiod by it")
		}
	}
	if found == "" {
		found = "istiod" + webhooks.Suffix(m.Revision)
		m.out("Service", Differs, "none selects istiod's pods: webhooks.yaml names %s, port 443 to 15017", found)
	}
	return found
}

// injecting compares a configuration with ours.
func (m *maker) injecting(c *webhooks.Config, h *admission.MutatingWebhookConfiguration) {
	what := "MutatingWebhookConfiguration/" + h.Name
	for _, w := range h.Webhooks {
		if u := w.ClientConfig.URL; u != nil {
			c.URL, _, _ = strings.Cut(*u, "/inject")
			if _, rest, _ := strings.Cut(*u, "/inject"); rest != "" {
				m.out(what, Differs, "its path says variables of pods (%s): write them into webhooks.yaml", short("/inject"+rest))
			}
		}
		if w.ReinvocationPolicy != nil {
			c.Again = *w.ReinvocationPolicy
		}
		c.Everywhere = c.Everywhere || strings.HasPrefix(w.Name, "auto.")
	}
	ours := map[string]admission.MutatingWebhook{}
	for _, w := range c.Injecting().Webhooks {
		way, _, _ := strings.Cut(w.Name, ".coxswain.")
		ours[way] = w
	}
	same := true
	for _, w := range h.Webhooks {
		way, _, _ := strings.Cut(w.Name, ".sidecar-injector.")
		our, ok := ours[way]
		switch {
		case !ok:
			m.out(what+" "+w.Name, Differs, "it is none of those of Istio's chart: add it to webhooks.yaml, with the path /inject")
		case !alike(w.NamespaceSelector, our.NamespaceSelector) || !alike(w.ObjectSelector, our.ObjectSelector):
			m.out(what+" "+w.Name, Differs, "it selects otherwise than Istio's chart has it: write its selectors into webhooks.yaml")
		case w.FailurePolicy != nil && *w.FailurePolicy == admission.Ignore:
			m.out(what+" "+w.Name, Differs, "pods are created without a proxy where istiod can't be asked "+
				"(failurePolicy Ignore): write it into webhooks.yaml, if that is meant")
		default:
			continue
		}
		same = false
	}
	if same {
		m.out(what, Setting, "%s in webhooks.yaml selects the same pods, but for those of kube-system, kube-public, "+
			"kube-node-lease and %s, which get no proxy here: what has to be created to start is always "+
			"created", webhooks.Injector(m.Revision), m.Namespace)
	}
}

// alike reports whether two select the same, but for namespaces that are named.
func alike(a, b *metav1.LabelSelector) bool {
	return fmt.Sprint(selected(a)) == fmt.Sprint(selected(b))
}

func selected(s *metav1.LabelSelector) (all []string) {
	if s == nil {
		return nil
	}
	for _, k := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		all = append(all, fmt.Sprintf("%s In [%s]", k, s.MatchLabels[k]))
	}
	for _, e := range s.MatchExpressions {
		if e.Key == corev1.LabelMetadataName {
			continue
		}
		values := slices.Sorted(slices.Values(e.Values))
		all = append(all, fmt.Sprintf("%s %s %v", e.Key, e.Operator, values))
	}
	slices.Sort(all)
	return all
}

// validating says what becomes of webhooks for objects.
func (m *maker) validating(revision string) {
	found := false
	for _, h := range m.in.Validating {
		what := "ValidatingWebhookConfiguration/" + h.Name
		switch h.Labels[webhooks.RevisionLabel] {
		case "":
			m.out(what, Same, "it has no revision: it is somebody else's")
			continue
		case revision:
		default:
			m.out(what, Same, "it is of the revision %s", short(h.Labels[webhooks.RevisionLabel]))
			continue
		}
		found = true
		m.Leaving = append(m.Leaving, what)
		m.out(what, Setting, "%s in webhooks.yaml judges the same objects", webhooks.Validator(m.Revision))
	}
	if len(m.in.Mutating)+len(m.in.Validating) > 0 && !found {
		m.validates = false
		m.out("webhooks for objects", Plugin, "there are none: controller/validator stays disabled")
	}
}

// tags have rights of their own, by name.
func (m *maker) tags(tags []string) {
	m.renamed = map[string][]string{
		"mutatingwebhookconfigurations/coxswain-injector":    {webhooks.Injector(m.Revision)},
		"validatingwebhookconfigurations/coxswain-validator": {webhooks.Validator(m.Revision)},
	}
	for _, tag := range tags {
		k := "mutatingwebhookconfigurations/coxswain-injector"
		m.renamed[k] = append(m.renamed[k], webhooks.OfTag(tag))
		if tag == webhooks.Default {
			k = "validatingwebhookconfigurations/coxswain-validator"
			m.renamed[k] = append(m.renamed[k], webhooks.DefaultValidator)
		}
	}
}
