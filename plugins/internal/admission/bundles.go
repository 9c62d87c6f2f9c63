package admission

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/plugins/shared/bundle"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/lead"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Resources of webhooks' configurations, in the API server's words.
const (
	Mutating   = "mutatingwebhookconfigurations"
	Validating = "validatingwebhookconfigurations"
)

// Hook is a webhook of a configuration.
type Hook struct {
	Name string
	// Labels are those that an object must have for the webhook to be asked about it.
	Labels map[string]string
}

// What the names of our webhooks end with: tags have others', too.
var suffixes = map[string]string{Mutating: "coxswain.sidecar-injector.istio.io", Validating: "validator.coxswain.io"}

// Labels of tags' configurations. Source: istio.io/api/label.
const revisionLabel, tagLabel, managedLabel = "istio.io/rev", "istio.io/tag", "app.kubernetes.io/managed-by"

// mostTags is how many tags a revision may have.
const mostTags = 500

// look is how often configurations are looked at, asking how long a question may take.
const look, asking = 5 * time.Second, 10 * time.Second

// Bundles tells the API server whom to believe that a webhook's server is ours: it writes the
// control plane's roots into webhooks' configurations, whose names are given, and touches no other.
type Bundles struct {
	Resource string
	// Names are the configurations'; none: nothing is written.
	Names []string
	// File has the roots in PEM where the port's certificate is from a file; empty: the table of
	// trust bundles has them.
	File    string
	Objects dynamic.Interface
	// Namespace and Lease say by which Lease replicas agree on who writes. Revision is the control
	// plane's; empty: the default one. Each has a Lease of its own, and the root is written into
	// the configurations of its tags, too, where the account may.
	Namespace, Lease, Revision string
	// Tried says why a webhook was not seen to refuse what it must refuse; nil: it was. Then what
	// can't be asked of it is refused, too (failurePolicy). Without Tried the policy is left as it
	// is.
	Tried func(ctx context.Context, of Hook) error

	said kube.LogLimiter
}

// Run writes until ctx ends, while this replica leads.
func (b *Bundles) Run(ctx context.Context, out sdk.Publisher) {
	if len(b.Names) == 0 {
		return
	}
	lease := b.Lease
	if b.revision() != defaultRevision {
		lease += "-" + b.Revision
	}
	err := lead.Election{Objects: sdk.ObjectsOf(out), Log: out.Log, Namespace: b.Namespace, Name: lease}.Run(ctx, func(ctx context.Context) error {
		tick := time.NewTicker(look)
		defer tick.Stop()
		for {
			s, newer := out.State()
			for _, name := range append(slices.Clone(b.Names), b.tags(ctx, out)...) {
				if err := b.keep(ctx, name, s); err != nil && ctx.Err() == nil && b.said.Allow(name, err, time.Now()) {
					out.Log(sdk.Warn, "the API server may not believe the webhook's server; it is tried again", "configuration", name, "error", err.Error())
				}
			}
			select {
			case <-ctx.Done():
				return nil
			case <-newer:
			case <-tick.C:
			}
		}
	})
	if err != nil {
		out.Log(sdk.Error, "webhooks' configurations are not kept", "error", err.Error())
	}
}

// defaultRevision is what labels call the revision that has no name.
const defaultRevision = "default"

func (b *Bundles) revision() string { return cmp.Or(b.Revision, defaultRevision) }

// tags are the configurations of the revision's tags that are labelled as ours are, or all of whose
// webhooks are called as ours are: those of another control plane have the label of a revision,
// too.
func (b *Bundles) tags(ctx context.Context, out sdk.Publisher) (names []string) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	all, err := b.resource().List(ctx, metav1.ListOptions{LabelSelector: revisionLabel + "=" + b.revision() + "," + tagLabel, Limit: mostTags})
	if err != nil {
		if ctx.Err() == nil && b.said.Allow("tags", err, time.Now()) {
			out.Log(sdk.Warn, "tags of the revision are not known: their configurations may lack the root", "error", err.Error())
		}
		return nil
	}
	for i := range all.Items {
		hooks, _, err := unstructured.NestedSlice(all.Items[i].Object, "webhooks")
		if err != nil || len(hooks) == 0 || slices.Contains(b.Names, all.Items[i].GetName()) {
			continue
		}
		if all.Items[i].GetLabels()[managedLabel] != "coxswain" && slices.ContainsFunc(hooks, func(h any) bool {
			m, _ := h.(map[string]any)
			name, _, _ := unstructured.NestedString(m, "name")
			return name != suffixes[b.Resource] && !strings.HasSuffix(name, "."+suffixes[b.Resource])
		}) {
			continue
		}
		names = append(names, all.Items[i].GetName())
	}
	return names
}

func (b *Bundles) resource() dynamic.NamespaceableResourceInterface {
	return b.Objects.Resource(schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: b.Resource})
}

// roots are those that sign for the control plane, in PEM.
func (b *Bundles) roots(s *state.State) (string, error) {
	if b.File != "" {
		text, err := os.ReadFile(b.File)
		return string(text), err
	}
	var all []string
	for _, row := range s.Table(bundle.Table).All() {
		one, err := bundle.Parse(row.Payload)
		if err != nil || !one.Local {
			continue
		}
		ders, err := one.DER()
		if err != nil {
			return "", err
		}
		for _, der := range ders {
			all = append(all, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
		}
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) == 0 {
		return "", errors.New("no root is known that signs for the control plane (controller/ca); where files have " +
			"the port's certificate, name their root: caBundleFile")
	}
	return strings.Join(all, ""), nil
}

// keep looks at a configuration, and changes what is not as it is to be.
func (b *Bundles) keep(ctx context.Context, name string, s *state.State) error {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	roots, err := b.roots(s)
	if err != nil {
		return err
	}
	of := b.resource()
	found, err := of.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil // whoever wants no webhook has none
	}
	if err != nil {
		return err
	}
	patch, open, err := b.changes(found, roots)
	if err != nil {
		return err
	}
	if len(patch) > 0 {
		text, err := json.Marshal(patch)
		if err != nil {
			return err
		}
		if _, err := of.Patch(ctx, name, types.JSONPatchType, text, metav1.PatchOptions{FieldManager: "coxswain"}); err != nil {
			return err
		}
	}
	if b.Tried == nil || !open {
		return nil
	}
	return b.close(ctx, of, found, name)
}

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value string `json:"value"`
}

// changes returns what has to be changed for the roots, and whether a webhook lets pass what can't
// be asked of it.
func (b *Bundles) changes(found *unstructured.Unstructured, roots string) (patch []operation, open bool, err error) {
	hooks, _, err := unstructured.NestedSlice(found.Object, "webhooks")
	if err != nil {
		return nil, false, err
	}
	for i, h := range hooks {
		m, _ := h.(map[string]any)
		text, _, _ := unstructured.NestedString(m, "clientConfig", "caBundle")
		has, _ := base64.StdEncoding.DecodeString(text)
		policy, _, _ := unstructured.NestedString(m, "failurePolicy")
		open = open || policy == "Ignore"
		if bytes.Equal(has, []byte(roots)) {
			continue
		}
		// The version is compared, so that nothing is written over what somebody else has changed.
		patch = append(patch, operation{"add", fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", i), base64.StdEncoding.EncodeToString([]byte(roots))})
	}
	if len(patch) > 0 {
		patch = append([]operation{{"test", "/metadata/resourceVersion", found.GetResourceVersion()}}, patch...)
	}
	return patch, open, nil
}

// close has the API server refuse what can't be asked of the webhooks that let it pass, of each
// once that was seen to work.
func (b *Bundles) close(ctx context.Context, of dynamic.ResourceInterface, found *unstructured.Unstructured, name string) error {
	hooks, _, err := unstructured.NestedSlice(found.Object, "webhooks")
	if err != nil {
		return err
	}
	var patch []operation
	for i, h := range hooks {
		m, _ := h.(map[string]any)
		if policy, _, _ := unstructured.NestedString(m, "failurePolicy"); policy != "Ignore" {
			continue
		}
		hook := Hook{}
		hook.Name, _, _ = unstructured.NestedString(m, "name")
		hook.Labels, _, _ = unstructured.NestedStringMap(m, "objectSelector", "matchLabels")
		if err := b.Tried(ctx, hook); err != nil {
			return fmt.Errorf("what %s must refuse is not refused yet, so that it stays open (failurePolicy Ignore): %w", hook.Name, err)
		}
		at := fmt.Sprintf("/webhooks/%d/", i)
		patch = append(patch, operation{"test", at + "name", hook.Name}, operation{"add", at + "failurePolicy", "Fail"})
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = of.Patch(ctx, name, types.JSONPatchType, text, metav1.PatchOptions{FieldManager: "coxswain"})
	return err
}
