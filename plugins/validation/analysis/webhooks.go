package analysis

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
)

const (
	badWebhook     = "IST0139"
	badExternal    = "IST0163"
	externalNumber = "IST0164"
)

// istioDomain is how the names of webhooks for injection end.
const istioDomain = "istio.io"

// injecting is a webhook that may inject, with the samples of labels that it selects.
type injecting struct {
	of                  *Resource
	hook                *webhook
	namespaces, objects []bool
}

func (h *injecting) name() string { return h.of.Name + "/" + h.hook.Name }

// injectingWebhooks finds webhooks for injection that select the same pods, and those that lead to
// no Service.
func injectingWebhooks(w *world) {
	hooks := w.injecting()
	for _, h := range hooks {
		var others []string
		for _, o := range hooks {
			if o.name() != h.name() && meets(h.namespaces, o.namespaces) && meets(h.objects, o.objects) {
				others = append(others, o.name())
			}
		}
		if len(others) > 0 {
			slices.Sort(others)
			w.report(h.of, finding.Errorf(badWebhook, "webhooks", "%s selects pods that others select, too, and which may get two proxies: %s",
				h.hook.Name, strings.Join(atMost(others, 10), ", ")).WithHint("let the selectors exclude each other"))
		}
		to := h.hook.ClientConfig.Service
		if to != nil && !slices.ContainsFunc(w.servicesIn[to.Namespace], func(s *Resource) bool { return s.Name == to.Name }) {
			w.report(h.of, finding.Errorf(badWebhook, "webhooks", "%s leads to a service that isn't there: %s/%s", h.hook.Name, to.Namespace, to.Name).
				WithHint("remove it, or bring its control plane back: pods may not be created until then"))
		}
	}
}

// injecting returns the webhooks for injection: those of configurations with a revision, or with a
// webhook of Istio's. Each is tried with the labels that namespaces and pods may have for it.
func (w *world) injecting() (hooks []*injecting) {
	var revisions []string
	for _, r := range w.objectsOf(kindMutating) {
		of := revisionsOf(r)
		if len(of) == 0 && !slices.ContainsFunc(r.webhooks, func(h webhook) bool { return strings.HasSuffix(h.Name, istioDomain) }) {
			continue
		}
		revisions = append(revisions, of...)
		for i := range r.webhooks {
			hooks = append(hooks, &injecting{of: r, hook: &r.webhooks[i]})
		}
	}
	slices.Sort(revisions)
	revisions = slices.Compact(revisions)
	namespaces := samples(injectionLabel, []string{injectionOn, "disabled"}, revisions)
	objects := samples(injectLabel, []string{"true", "false"}, revisions)
	for _, h := range hooks {
		h.namespaces, h.objects = selected(h.hook.NamespaceSelector, namespaces), selected(h.hook.ObjectSelector, objects)
	}
	return hooks
}

// samples are labels with each value of a label, or none, and each revision, or none.
func samples(label string, values, revisions []string) (all []labels.Set) {
	for _, revision := range append([]string{""}, revisions...) {
		for _, value := range append([]string{""}, values...) {
			set := labels.Set{}
			if revision != "" {
				set[revisionLabel] = revision
			}
			if value != "" {
				set[label] = value
			}
			all = append(all, set)
		}
	}
	return all
}

func selected(s *labelSelector, samples []labels.Set) []bool {
	selector, out := s.selector(), make([]bool, len(samples))
	for i, set := range samples {
		out[i] = selector.Matches(set)
	}
	return out
}

func meets(a, b []bool) bool {
	for i := range a {
		if a[i] && b[i] {
			return true
		}
	}
	return false
}

// revisionsOf returns the revisions that a configuration's label and selectors name.
func revisionsOf(r *Resource) (list []string) {
	if revision := r.Labels[revisionLabel]; revision != "" {
		list = append(list, revision)
	}
	for _, h := range r.webhooks {
		for _, s := range []*labelSelector{h.NamespaceSelector, h.ObjectSelector} {
			if s == nil {
				continue
			}
			if revision := s.MatchLabels[revisionLabel]; revision != "" {
				list = append(list, revision)
			}
			for _, e := range s.MatchExpressions {
				if e.Key == revisionLabel {
					list = append(list, e.Values...)
				}
			}
		}
	}
	return list
}

// externalWebhooks finds webhooks that lead to an external control plane by an address, or nowhere.
func externalWebhooks(w *world) {
	for kind, names := range map[string][]string{kindValidating: {"istio-validator", "istiod-default-validator"}, kindMutating: {injectorConfig}} {
		for _, r := range w.objectsOf(kind) {
			if !slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(r.Name, name) }) {
				continue
			}
			for _, h := range r.webhooks {
				w.external(r, &h)
			}
		}
	}
}

func (w *world) external(r *Resource, h *webhook) {
	if h.ClientConfig.URL == nil {
		if h.ClientConfig.Service == nil {
			w.report(r, finding.Warnf(badExternal, "webhooks", "%s leads nowhere: it has neither a service nor a URL", h.Name))
		}
		return
	}
	at, err := url.Parse(*h.ClientConfig.URL)
	if err != nil || at.Hostname() == "" {
		w.report(r, finding.Warnf(badExternal, "webhooks", "%s leads to %q, which is no URL with a host", h.Name, *h.ClientConfig.URL))
		return
	}
	if _, err := netip.ParseAddr(at.Hostname()); err == nil {
		w.report(r, finding.Infof(externalNumber, "webhooks", "%s leads to an external control plane by its address, %s", h.Name, at.Hostname()).
			WithHint("a host name can move"))
	}
}
