package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"

	admission "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/spf13/cobra"
)

// hooked is what the configurations of webhooks are to say.
type hooked struct {
	revision, namespace, service, url string
}

// webhooksCommand prints the configurations of webhooks.
func webhooksCommand(p *program) *cobra.Command {
	var h hooked
	c := &cobra.Command{
		Use:   "webhooks",
		Short: "Print what has an API server ask controller/injector and controller/validator",
		Long: `Print a MutatingWebhookConfiguration and a ValidatingWebhookConfiguration, for kubectl apply. A control plane with --httpsAddr and the two plugins answers them; their setting
webhooks has to have the names that are printed, so that it writes its CA's root into them. Asked are: about pods of namespaces with the label istio-injection=enabled, or istio.io/rev with
the revision, and about pods with the label sidecar.istio.io/inject=true in other namespaces; about resources of Istio's kinds. Never asked about are kube-system, kube-public, kube-node-lease and the control
plane's own namespace: what it needs to start can always be created.

The validating one begins with failurePolicy Ignore, which controller/validator makes Fail once it was seen to refuse. They are removed by
  kubectl delete mutatingwebhookconfiguration,validatingwebhookconfiguration -l app.kubernetes.io/managed-by=coxswain`,
		Example: `  coxswain webhooks | kubectl apply -f -
  coxswain webhooks --revision canary --service coxswain | kubectl apply -f -`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			u, err := url.Parse(h.url)
			if h.url != "" && (err != nil || u.Scheme != "https" || u.Host == "") {
				return usageError{errors.New("--url is https://HOST:PORT, without a path")}
			}
			for i, object := range []any{h.mutating(), h.validating()} {
				text, err := yaml.Marshal(object)
				if err != nil {
					return err
				}
				if i > 0 {
					fmt.Fprintln(p.out, "---")
				}
				if _, err := p.out.Write(text); err != nil {
					return err
				}
			}
			return nil
		},
	}
	c.Flags().StringVar(&h.revision, "revision", "", "the control plane's revision; empty: the default one")
	c.Flags().StringVar(&h.namespace, "namespace", "istio-system", "the control plane's namespace")
	c.Flags().StringVar(&h.service, "service", "istiod", "the Service by which an API server reaches port httpsAddr, as its port 443")
	c.Flags().StringVar(&h.url, "url", "", "https://HOST:PORT of httpsAddr, for a control plane outside of the cluster, in place of a Service")
	return c
}

// name is that of a configuration.
func (h *hooked) name(kind string) string {
	name := "coxswain-" + kind
	if h.revision != "" && h.revision != "default" {
		name += "-" + h.revision
	}
	return name
}

func (h *hooked) meta(kind string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: h.name(kind), Labels: map[string]string{"app.kubernetes.io/managed-by": "coxswain", "istio.io/rev": cmp.Or(h.revision, "default")}}
}

// client is how the API server reaches the port.
func (h *hooked) client(path string) admission.WebhookClientConfig {
	if h.url != "" {
		at := h.url + path
		return admission.WebhookClientConfig{URL: &at}
	}
	port := int32(443)
	return admission.WebhookClientConfig{Service: &admission.ServiceReference{Namespace: h.namespace, Name: h.service, Path: &path, Port: &port}}
}

const injectLabel, namespaceLabel, revisionLabel = "sidecar.istio.io/inject", "istio-injection", "istio.io/rev"

func expression(key string, op metav1.LabelSelectorOperator, values ...string) metav1.LabelSelectorRequirement {
	return metav1.LabelSelectorRequirement{Key: key, Operator: op, Values: values}
}

// apart leaves those namespaces out without which nothing starts.
func (h *hooked) apart(more ...metav1.LabelSelectorRequirement) *metav1.LabelSelector {
	own := expression("kubernetes.io/metadata.name", metav1.LabelSelectorOpNotIn, "kube-system", "kube-public", "kube-node-lease", h.namespace)
	return &metav1.LabelSelector{MatchExpressions: append(more, own)}
}

func (h *hooked) mutating() *admission.MutatingWebhookConfiguration {
	const in, out, not = metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpDoesNotExist
	revision := cmp.Or(h.revision, "default")
	willing := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{expression(injectLabel, out, "false")}}
	byPod := func(namespace, pod []metav1.LabelSelectorRequirement) (*metav1.LabelSelector, *metav1.LabelSelector) {
		return h.apart(namespace...), &metav1.LabelSelector{MatchExpressions: pod}
	}
	c := &admission.MutatingWebhookConfiguration{TypeMeta: metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "MutatingWebhookConfiguration"}, ObjectMeta: h.meta("injector")}
	add := func(name string, namespaces, pods *metav1.LabelSelector) {
		fail, none, again, seconds := admission.Fail, admission.SideEffectClassNone, admission.IfNeededReinvocationPolicy, int32(10)
		c.Webhooks = append(c.Webhooks, admission.MutatingWebhook{
			Name: name + ".injector.coxswain.io", ClientConfig: h.client("/inject"), FailurePolicy: &fail, SideEffects: &none, ReinvocationPolicy: &again, TimeoutSeconds: &seconds,
			AdmissionReviewVersions: []string{"v1", "v1beta1"}, NamespaceSelector: namespaces, ObjectSelector: pods, Rules: ruled([]admission.OperationType{admission.Create}, "", "pods"),
		})
	}
	add("rev.namespace", h.apart(expression(revisionLabel, in, revision), expression(namespaceLabel, not)), willing)
	namespaces, pods := byPod([]metav1.LabelSelectorRequirement{expression(revisionLabel, not), expression(namespaceLabel, not)},
		[]metav1.LabelSelectorRequirement{expression(revisionLabel, in, revision), expression(injectLabel, out, "false")})
	add("rev.object", namespaces, pods)
	if revision == "default" {
		add("namespace", h.apart(expression(namespaceLabel, in, "enabled")), willing)
		namespaces, pods = byPod([]metav1.LabelSelectorRequirement{expression(namespaceLabel, not), expression(revisionLabel, not)},
			[]metav1.LabelSelectorRequirement{expression(injectLabel, in, "true"), expression(revisionLabel, not)})
		add("object", namespaces, pods)
	}
	return c
}

func (h *hooked) validating() *admission.ValidatingWebhookConfiguration {
	ignore, none, seconds := admission.Ignore, admission.SideEffectClassNone, int32(10)
	changes := []admission.OperationType{admission.Create, admission.Update}
	all := ruled(changes, "networking.istio.io", "*")
	for _, group := range []string{"security.istio.io", "telemetry.istio.io", "extensions.istio.io"} {
		all = append(all, ruled(changes, group, "*")...)
	}
	w := admission.ValidatingWebhook{
		Name: "validator.coxswain.io", ClientConfig: h.client("/validate"), FailurePolicy: &ignore, SideEffects: &none, TimeoutSeconds: &seconds,
		AdmissionReviewVersions: []string{"v1", "v1beta1"}, Rules: all,
	}
	if h.revision != "" && h.revision != "default" {
		w.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{revisionLabel: h.revision}}
	}
	return &admission.ValidatingWebhookConfiguration{
		TypeMeta: metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"}, ObjectMeta: h.meta("validator"),
		Webhooks: []admission.ValidatingWebhook{w},
	}
}

func ruled(operations []admission.OperationType, group, resource string) []admission.RuleWithOperations {
	return []admission.RuleWithOperations{{Operations: operations, Rule: admission.Rule{APIGroups: []string{group}, APIVersions: []string{versions(group)}, Resources: []string{resource}}}}
}

// versions are those that are asked about.
func versions(group string) string {
	if group == "" {
		return "v1"
	}
	return "*"
}
