package webhooks

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"

	admission "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Default is the name of the revision that has none, and of the tag that stands for it.
const Default = "default"

// Labels and annotations. Source: istio.io/api/label.
const (
	RevisionLabel  = "istio.io/rev"
	TagLabel       = "istio.io/tag"
	injectLabel    = "sidecar.istio.io/inject"
	namespaceLabel = "istio-injection"
	managedLabel   = "app.kubernetes.io/managed-by"
	ours           = "coxswain"
	// AccountNote names the service account of the control plane that answers, NAMESPACE/NAME.
	AccountNote = "coxswain.io/account"
	// selectorsNote keeps the selectors of webhooks that a tag has put out of use.
	selectorsNote = "coxswain.io/selectors"
)

// What single webhooks' names end with. istioctl finds a revision by the end of the first.
const injectorSuffix, validatorSuffix = "coxswain." + istiods, "validator.coxswain.io"

// istiods is what names of istiod's webhooks for pods end with.
const istiods = "sidecar-injector.istio.io"

// isTag reports whether a configuration is a tag of ours that istioctl has made: it copies the
// labels of the revision's own, and gives webhooks istiod's names.
func isTag(m metav1.ObjectMeta) bool {
	return m.Labels[TagLabel] != "" && m.Labels[managedLabel] == ours
}

// Config is what configurations are made of.
type Config struct {
	// Revision is the control plane's; empty: the default one. Namespace is where it runs.
	Revision, Namespace string
	// Tag is a name for the revision; empty: its own configurations are meant.
	Tag string
	// Service is the Service by which an API server reaches the port, as its port 443; URL is used
	// in its place where it is not empty: https://HOST:PORT, without a path.
	Service, URL string
	// Account is the control plane's service account; empty: it is not said.
	Account string
	// Everywhere asks about pods of namespaces without labels, too; of the default revision alone.
	Everywhere bool
	// Again is whether the injector is asked once more when others have changed a pod; empty:
	// IfNeeded.
	Again admission.ReinvocationPolicyType
}

// Check reports what can't be used, by the name of the flag that gives it.
func (c Config) Check() error {
	u, err := url.Parse(c.URL)
	if c.URL != "" && (err != nil || u.Scheme != "https" || u.Host == "" || u.Path != "" || u.RawQuery != "") {
		return errors.New("--url is https://HOST:PORT, without a path")
	}
	if c.Everywhere && (c.Tag != "" || c.revision() != Default) && c.Tag != Default {
		return errors.New("--auto-inject-namespaces is for the default revision, or the tag default: pods without labels are theirs")
	}
	if c.Again != "" && c.Again != admission.NeverReinvocationPolicy && c.Again != admission.IfNeededReinvocationPolicy {
		return fmt.Errorf("--reinvocation is %q, and neither Never nor IfNeeded", c.Again)
	}
	for flag, text := range map[string]string{"revision": c.Revision, "namespace": c.Namespace, "service": c.Service, "account": c.Account, "tag": c.Tag} {
		if text == "" && flag != "namespace" && (flag != "service" || c.URL != "") {
			continue
		}
		if wrong := validation.IsDNS1123Label(text); len(wrong) > 0 {
			return fmt.Errorf("--%s is %q: %s", flag, text, wrong[0])
		}
	}
	return nil
}

// Injector is the name of the MutatingWebhookConfiguration of a revision, Validator that of its
// ValidatingWebhookConfiguration.
func Injector(revision string) string { return "coxswain-injector" + Suffix(revision) }

// Validator is explained at Injector.
func Validator(revision string) string { return "coxswain-validator" + Suffix(revision) }

// Suffix is what names of what a revision has end with; empty: it is the default one.
func Suffix(revision string) string {
	if revision == "" || revision == Default {
		return ""
	}
	return "-" + revision
}

func (c Config) revision() string { return cmp.Or(c.Revision, Default) }

func (c Config) meta(name string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Name: name, Labels: map[string]string{managedLabel: ours, RevisionLabel: c.revision()}}
	if c.Tag != "" {
		m.Labels[TagLabel] = c.Tag
	}
	if c.Account != "" {
		m.Annotations = map[string]string{AccountNote: c.Namespace + "/" + c.Account}
	}
	return m
}

// Injecting has the API server ask about pods of the revision, or of its tag.
func (c Config) Injecting() *admission.MutatingWebhookConfiguration {
	name := Injector(c.Revision)
	if c.Tag != "" {
		name = OfTag(c.Tag)
	}
	m := c.meta(name)
	m.Labels["app"] = "sidecar-injector" // by which installers of Istio find it
	return &admission.MutatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admission.SchemeGroupVersion.String(), Kind: "MutatingWebhookConfiguration"},
		ObjectMeta: m, Webhooks: c.injecting(cmp.Or(c.Tag, c.revision())),
	}
}

// Judging has it ask about objects of Istio's kinds: of the default revision, those without a label
// and those with its own; of another one those with its label; of the tag default those without a
// label. Nil: objects have no other tags.
func (c Config) Judging() *admission.ValidatingWebhookConfiguration {
	var hooks []admission.ValidatingWebhook
	name := Validator(c.Revision)
	if c.Tag == "" {
		hooks = append(hooks, c.judging("rev."+validatorSuffix, &metav1.LabelSelector{MatchLabels: map[string]string{RevisionLabel: c.revision()}}))
	}
	switch {
	case c.Tag == Default:
		name = DefaultValidator
		fallthrough
	case c.Tag == "" && c.revision() == Default:
		hooks = append(hooks, c.judging(validatorSuffix, unlabelled()))
	case c.Tag != "":
		return nil
	}
	return &admission.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admission.SchemeGroupVersion.String(), Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: c.meta(name), Webhooks: hooks,
	}
}

// unlabelled selects objects of no revision.
func unlabelled() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{expression(RevisionLabel, metav1.LabelSelectorOpDoesNotExist)}}
}

// client is how the API server reaches a path of the port.
func (c Config) client(path string) admission.WebhookClientConfig {
	if c.URL != "" {
		at := c.URL + path
		return admission.WebhookClientConfig{URL: &at}
	}
	port := int32(443)
	return admission.WebhookClientConfig{Service: &admission.ServiceReference{Namespace: c.Namespace, Name: c.Service, Path: &path, Port: &port}}
}

func expression(key string, op metav1.LabelSelectorOperator, values ...string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: op, Values: values}
}

// Apart are namespaces without which nothing starts: nobody is asked about what is created there.
func (c Config) Apart() []string {
	all := []string{"kube-system", "kube-public", "kube-node-lease"}
	if !slices.Contains(all, c.Namespace) {
		all = append(all, c.Namespace)
	}
	return all
}

// pick is one way by which pods get a proxy: labels of their namespace, and their own.
type pick struct {
	name             string
	namespaces, pods []metav1.LabelSelectorRequirement
}

// picks are the ways that are by labels with a value: a revision, or a tag. All others are those of
// the default one. Source: Istio, "Control Plane Revisions"; its charts, mutatingwebhook.yaml.
func (c Config) picks(value string) []pick {
	const in, out, not = metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpDoesNotExist
	type all = []metav1.LabelSelectorRequirement
	neither := all{expression(RevisionLabel, not), expression(namespaceLabel, not)}
	willing := expression(injectLabel, out, "false")
	ways := []pick{
		{"rev.namespace", all{expression(RevisionLabel, in, value), expression(namespaceLabel, not)}, all{willing}},
		{"rev.object", neither, all{expression(RevisionLabel, in, value), willing}},
	}
	if value == Default {
		ways = append(ways, pick{"namespace", all{expression(namespaceLabel, in, "enabled")}, all{willing}},
			pick{"object", neither, all{expression(injectLabel, in, "true"), expression(RevisionLabel, not)}})
		if c.Everywhere {
			ways = append(ways, pick{"auto", neither, all{expression(injectLabel, not), expression(RevisionLabel, not)}})
		}
	}
	return ways
}

// injecting are the webhooks for pods whose labels, or whose namespaces', have the value.
func (c Config) injecting(value string) (hooks []admission.MutatingWebhook) {
	for _, w := range c.picks(value) {
		apart := c.Apart()
		if w.name == "auto" {
			apart = append(apart, "local-path-storage")
		}
		fail, none, again, seconds := admission.Fail, admission.SideEffectClassNone, cmp.Or(c.Again, admission.IfNeededReinvocationPolicy), int32(10)
		namespaces := append(slices.Clone(w.namespaces), expression("kubernetes.io/metadata.name", metav1.LabelSelectorOpNotIn, apart...))
		hooks = append(hooks, admission.MutatingWebhook{
			Name: w.name + "." + injectorSuffix, ClientConfig: c.client("/inject"), FailurePolicy: &fail, SideEffects: &none,
			ReinvocationPolicy: &again, TimeoutSeconds: &seconds, AdmissionReviewVersions: []string{"v1", "v1beta1"},
			NamespaceSelector: &metav1.LabelSelector{MatchExpressions: namespaces},
			ObjectSelector:    &metav1.LabelSelector{MatchExpressions: w.pods}, Rules: ruled([]admission.OperationType{admission.Create}, "v1", "pods", ""),
		})
	}
	return hooks
}

// judging is a webhook for objects that a selector selects.
func (c Config) judging(name string, objects *metav1.LabelSelector) admission.ValidatingWebhook {
	ignore, none, seconds := admission.Ignore, admission.SideEffectClassNone, int32(10)
	changes := []admission.OperationType{admission.Create, admission.Update}
	return admission.ValidatingWebhook{
		Name: name, ClientConfig: c.client("/validate"), FailurePolicy: &ignore, SideEffects: &none, TimeoutSeconds: &seconds,
		AdmissionReviewVersions: []string{"v1", "v1beta1"}, ObjectSelector: objects,
		Rules: ruled(changes, "*", "*", "networking.istio.io", "security.istio.io", "telemetry.istio.io", "extensions.istio.io"),
	}
}

func ruled(operations []admission.OperationType, version, resource string, groups ...string) []admission.RuleWithOperations {
	return []admission.RuleWithOperations{{Operations: operations, Rule: admission.Rule{APIGroups: groups,
		APIVersions: []string{version}, Resources: []string{resource}}}}
}
