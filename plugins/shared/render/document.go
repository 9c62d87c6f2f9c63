package render

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	mesh "istio.io/api/mesh/v1alpha1"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
)

// Offline injects into objects of files.
type Offline struct {
	*Settings
	Mesh                 *mesh.MeshConfig
	Native               bool
	Revision, Compliance string
	// User and Group are those that proxies run as; 0: Istio's.
	User, Group int64
	// Skipped is called with the kind and name of what gets no proxy, and why.
	Skipped func(what, why string)
}

// places are where workloads have what their pods are made of; {} is the pod itself.
var places = map[string]struct{ meta, spec []string }{
	"Pod":                   {[]string{"metadata"}, []string{"spec"}},
	"CronJob":               {[]string{"spec", "jobTemplate", "metadata"}, []string{"spec", "jobTemplate", "spec", "template", "spec"}},
	"Deployment":            podTemplate,
	"DeploymentConfig":      podTemplate,
	"ReplicaSet":            podTemplate,
	"StatefulSet":           podTemplate,
	"DaemonSet":             podTemplate,
	"Job":                   podTemplate,
	"ReplicationController": podTemplate,
}

var podTemplate = struct{ meta, spec []string }{[]string{"spec", "template", "metadata"}, []string{"spec", "template", "spec"}}

// Object returns an object, as JSON has it, with a proxy in its pods; as it is, if it has none, or
// they are to get none. Lists are gone through.
func (o *Offline) Object(object map[string]any) (map[string]any, error) {
	kind, _ := object["kind"].(string)
	if items, ok := object["items"].([]any); ok && kind == "List" {
		for i := range items {
			m, ok := items[i].(map[string]any)
			if !ok {
				continue
			}
			is, err := o.Object(m)
			if err != nil {
				return nil, err
			}
			items[i] = is
		}
		return object, nil
	}
	at, ok := places[kind]
	if !ok {
		return object, nil
	}
	return o.workload(object, kind, at.meta, at.spec)
}

// part returns what stands at a path.
func part(of map[string]any, path []string) map[string]any {
	for _, k := range path {
		of, _ = of[k].(map[string]any)
	}
	return of
}

// notObject returns the first place on a path where something else than an object stands; empty:
// there is none.
func notObject(of map[string]any, path []string) string {
	for i, k := range path {
		next, ok := of[k].(map[string]any)
		if !ok {
			if of[k] == nil {
				return ""
			}
			return strings.Join(path[:i+1], ".")
		}
		of = next
	}
	return ""
}

func (o *Offline) workload(object map[string]any, kind string, meta, spec []string) (map[string]any, error) {
	var head struct {
		metav1.TypeMeta
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if err := convert(object, &head); err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	what := kind + " " + types.NamespacedName{Namespace: head.Metadata.Namespace, Name: head.Metadata.Name}.String()
	if at := notObject(object, spec); at != "" {
		return nil, fmt.Errorf("%s: %s is no object", what, at)
	}
	podSpec := part(object, spec)
	if podSpec == nil {
		if o.Skipped != nil {
			o.Skipped(what, "it has no "+strings.Join(spec, "."))
		}
		return object, nil
	}
	raw := map[string]any{"spec": podSpec}
	if m := part(object, meta); m != nil {
		raw["metadata"] = m
	}
	pod := &corev1.Pod{}
	if err := convert(raw, pod); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	changed, err := o.pod(pod, head.TypeMeta, head.Metadata, what)
	if err != nil || changed == nil {
		return object, err
	}
	changes, err := Changes(pod, changed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	result, err := Apply(raw, changes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	m, _ := result.(map[string]any)
	for key, path := range map[string][]string{"metadata": meta, "spec": spec} {
		part(object, path[:len(path)-1])[path[len(path)-1]] = m[key]
	}
	return object, nil
}

// pod returns the pod with a proxy; nil if it is to have none.
func (o *Offline) pod(pod *corev1.Pod, kind metav1.TypeMeta, head metav1.ObjectMeta, what string) (*corev1.Pod, error) {
	namespace := pod.Namespace
	if namespace == "" {
		namespace = head.Namespace
	}
	if yes, why := o.Required(pod, namespace); !yes {
		if o.Skipped != nil {
			o.Skipped(what, why)
		}
		return nil, nil
	}
	of := types.NamespacedName{Namespace: head.Namespace, Name: head.Name}
	if kind.Kind == "Pod" {
		of, kind = Owner(pod)
	}
	proxy, err := ProxyConfig(o.Mesh, nil, pod.Annotations)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	out, err := o.Inject(Request{
		Pod: pod, Of: of, Kind: kind, Mesh: o.Mesh, Proxy: proxy, Native: o.Native, Revision: o.Revision,
		Compliance: o.Compliance, User: o.User, Group: o.Group,
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return out, nil
}

func convert(from, to any) error {
	text, err := json.Marshal(from)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

// mostDocument is how large a file may be.
const mostDocument = 64 << 20

// Stream writes what a file's documents become, with --- between them. Those that get no proxy stay
// as they are, comments and all. The error names the line where the document starts.
func (o *Offline) Stream(text []byte, to io.Writer) error {
	if len(text) > mostDocument {
		return fmt.Errorf("it has %d bytes; %d are the most", len(text), mostDocument)
	}
	first := true
	for _, chunk := range protoyaml.Split(text) {
		var object map[string]any
		if err := yaml.Unmarshal(chunk.Text, &object); err != nil {
			return fmt.Errorf("line %d: %w", chunk.Before+1, err)
		}
		if object == nil {
			continue
		}
		out := bytes.TrimSpace(chunk.Text)
		if kind, _ := object["kind"].(string); kind == "List" || places[kind].spec != nil {
			before, err := yaml.Marshal(object)
			if err != nil {
				return err
			}
			changed, err := o.Object(object)
			if err != nil {
				return fmt.Errorf("line %d: %w", chunk.Before+1, err)
			}
			after, err := yaml.Marshal(changed)
			if err != nil {
				return err
			}
			if !bytes.Equal(before, after) {
				out = bytes.TrimSpace(after)
			}
		}
		if !first {
			out = append([]byte("---\n"), out...)
		}
		first = false
		if _, err := fmt.Fprintf(to, "%s\n", out); err != nil {
			return err
		}
	}
	return nil
}

// ConfigMap returns the keys config and values of a ConfigMap, in YAML or JSON.
func ConfigMap(text []byte) (config, values string, err error) {
	m := corev1.ConfigMap{}
	if err := yaml.Unmarshal(text, &m); err != nil {
		return "", "", err
	}
	if m.Kind != "ConfigMap" || m.Data["config"] == "" {
		return "", "", errors.New("it is no ConfigMap with a key config")
	}
	return m.Data["config"], m.Data["values"], nil
}
