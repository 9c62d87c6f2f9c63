package migrate

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Bounds of what is read.
const (
	mostBytes     = 16 << 20
	mostDocuments = 20_000
)

// Input is what is known of an istiod, and of what came with it.
type Input struct {
	Deployments []*appsv1.Deployment
	ConfigMaps  []*corev1.ConfigMap
	Services    []*corev1.Service
	Mutating    []*admission.MutatingWebhookConfiguration
	Validating  []*admission.ValidatingWebhookConfiguration
	// Others are all else; of Secrets no more than their names is kept.
	Others []Other

	documents int
}

// Read adds the objects of a text: documents of YAML, or JSON, and lists of them. The error says
// which document can't be read, and repeats nothing of it.
func (in *Input) Read(name string, text io.Reader) error {
	limited := &io.LimitedReader{R: text, N: mostBytes + 1}
	documents := kyaml.NewYAMLReader(bufio.NewReader(limited))
	for n := 1; ; n++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: document %d can't be read", name, n)
		}
		if limited.N <= 0 {
			return fmt.Errorf("%s has more than %d bytes", name, mostBytes)
		}
		if len(bytes.TrimSpace(document)) == 0 {
			continue
		}
		raw, err := yaml.YAMLToJSON(document)
		if err != nil {
			return fmt.Errorf("%s: document %d is no YAML", name, n)
		}
		if err := in.add(raw); err != nil {
			return fmt.Errorf("%s: document %d: %w", name, n, err)
		}
	}
}

// add takes an object, or those of a list.
func (in *Input) add(raw []byte) error {
	if in.documents++; in.documents > mostDocuments {
		return fmt.Errorf("there are more than %d objects", mostDocuments)
	}
	if string(raw) == "null" {
		return nil
	}
	var head struct {
		metav1.TypeMeta
		Metadata struct {
			Name, Namespace string
			Labels          map[string]string
		}
		Items []json.RawMessage
	}
	if json.Unmarshal(raw, &head) != nil || head.Kind == "" || head.APIVersion == "" {
		return errors.New("it is no Kubernetes object: it has no apiVersion, or no kind")
	}
	if strings.HasSuffix(head.Kind, "List") {
		for _, item := range head.Items {
			if err := in.add(item); err != nil {
				return err
			}
		}
		return nil
	}
	group, _, _ := strings.Cut(head.APIVersion, "/")
	switch group + " " + head.Kind {
	case "apps Deployment":
		return into(raw, head.Kind, head.Metadata.Name, &in.Deployments)
	case "v1 ConfigMap":
		return into(raw, head.Kind, head.Metadata.Name, &in.ConfigMaps)
	case "v1 Service":
		return into(raw, head.Kind, head.Metadata.Name, &in.Services)
	case "admissionregistration.k8s.io MutatingWebhookConfiguration":
		return into(raw, head.Kind, head.Metadata.Name, &in.Mutating)
	case "admissionregistration.k8s.io ValidatingWebhookConfiguration":
		return into(raw, head.Kind, head.Metadata.Name, &in.Validating)
	}
	o := Other{Kind: head.Kind, Namespace: head.Metadata.Namespace, Name: head.Metadata.Name}
	if o.Kind == "Namespace" {
		o.labels = head.Metadata.Labels
	}
	if err := o.read(group, raw); err != nil {
		return err
	}
	in.Others = append(in.Others, o)
	return nil
}

func into[T any](raw []byte, kind, name string, all *[]*T) error {
	v := new(T)
	if json.Unmarshal(raw, v) != nil {
		return fmt.Errorf("%s/%s is not as its kind is", kind, name)
	}
	*all = append(*all, v)
	return nil
}

// discovery returns the container that runs istiod; nil if none does.
func discovery(d *appsv1.Deployment) *corev1.Container {
	of := d.Spec.Template.Spec.Containers
	for i := range of {
		words := slices.Concat(of[i].Command, of[i].Args)
		if of[i].Name == "discovery" || slices.Contains(words, "discovery") || slices.ContainsFunc(words, starts) {
			return &of[i]
		}
	}
	return nil
}

// program is istiod's.
const program = "pilot-discovery"

// starts reports whether a word, which may be a shell's text, names istiod's program.
func starts(word string) bool { return strings.Contains(word, program) }

// istiod finds the Deployment, of that name if it is not empty.
func (in *Input) istiod(name string) (*appsv1.Deployment, error) {
	var found []*appsv1.Deployment
	var names []string
	for _, d := range in.Deployments {
		if discovery(d) != nil && (name == "" || d.Name == name) {
			found, names = append(found, d), append(names, d.Name)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, fmt.Errorf("there are %d Deployments of istiod: %q; --deployment says which", len(found), names)
	case name != "":
		return nil, fmt.Errorf("no Deployment is called %s and runs `discovery`", name)
	}
	return nil, errors.New("no Deployment runs istiod: " +
		"none has a container that is called discovery, or that runs pilot-discovery, or has the argument discovery")
}
