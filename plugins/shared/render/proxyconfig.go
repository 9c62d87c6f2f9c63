package render

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"istio.io/api/annotation"
	mesh "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	"github.com/coxswain-mesh/coxswain/plugins/validation/rules"
)

// ProxyConfig returns the settings of a pod's proxy: the mesh's, over which are laid, in this
// order, objects of kind ProxyConfig without a selector, the pod's annotation
// proxy.istio.io/config, and objects that select it; objects are those that concern the pod, as
// Concerning returns them. Variables are joined by name.
// Source: https://istio.io/latest/docs/reference/config/networking/proxy-config/
func ProxyConfig(m *mesh.MeshConfig, objects []*networking.ProxyConfig, annotations map[string]string) (*mesh.ProxyConfig, error) {
	p := proto.CloneOf(m.GetDefaultConfig())
	if p == nil {
		p = &mesh.ProxyConfig{}
	}
	selecting := func(o *networking.ProxyConfig) bool { return len(o.GetSelector().GetMatchLabels()) > 0 }
	for _, o := range objects {
		if !selecting(o) {
			layProxy(p, o)
		}
	}
	if text, ok := annotations[annotation.ProxyConfig.Name]; ok {
		if err := annotated(p, text); err != nil {
			return p, err
		}
	}
	for _, o := range objects {
		if selecting(o) {
			layProxy(p, o)
		}
	}
	return p, nil
}

// layProxy changes settings by what an object says.
func layProxy(p *mesh.ProxyConfig, o *networking.ProxyConfig) {
	if o.Concurrency != nil {
		p.Concurrency = wrapperspb.Int32(o.Concurrency.Value)
	}
	if o.Image != nil {
		p.Image = o.Image
	}
	p.ProxyMetadata = merged(p.ProxyMetadata, o.EnvironmentVariables)
}

// annotated changes settings by what an annotation says, in YAML or JSON, and refuses what no proxy
// could run with.
func annotated(p *mesh.ProxyConfig, text string) error {
	wrong := func(f protoyaml.Fault) error {
		return fmt.Errorf("annotation %s: line %d: %s: %s", annotation.ProxyConfig.Name, f.Line, f.Field, f.Reason)
	}
	was := p.ProxyMetadata
	p.ProxyMetadata = nil
	defer func() { p.ProxyMetadata = merged(was, p.ProxyMetadata) }()
	for i, chunk := range protoyaml.Split([]byte(text)) {
		root, fault := chunk.Parse()
		switch {
		case fault != nil:
			return wrong(*fault)
		case root == nil || protoyaml.IsNull(root):
			continue
		case i > 0:
			return errors.New("annotation " + annotation.ProxyConfig.Name + ": it has more than one document")
		}
		for _, f := range protoyaml.Decode(root, "", p) {
			if !f.Foreign {
				return wrong(f)
			}
		}
		if err := rules.ProxyAnnotation(root); err != nil {
			return fmt.Errorf("annotation %s: %w", annotation.ProxyConfig.Name, err)
		}
	}
	return nil
}

// ProxyObjects are objects of kind ProxyConfig, by their namespaces, each in order of their names.
type ProxyObjects map[string][]proxyObject

type proxyObject struct {
	name string
	spec *networking.ProxyConfig
}

// Add adds the object of a key, NAMESPACE/NAME.
func (p ProxyObjects) Add(key string, spec *networking.ProxyConfig) {
	namespace, name, _ := strings.Cut(key, "/")
	of := p[namespace]
	at, _ := slices.BinarySearchFunc(of, name, func(o proxyObject, name string) int { return cmp.Compare(o.name, name) })
	p[namespace] = slices.Insert(of, at, proxyObject{name, spec})
}

// Concerning returns the objects that concern pods with these labels in a namespace: those of the
// root namespace, of their own, and those that select them, the most particular last; of several of
// a sort the first by name.
func (p ProxyObjects) Concerning(root, namespace string, labels map[string]string) (out []*networking.ProxyConfig) {
	first := func(of []proxyObject, counts func(wanted map[string]string) bool) {
		at := slices.IndexFunc(of, func(o proxyObject) bool { return counts(o.spec.GetSelector().GetMatchLabels()) })
		if at >= 0 {
			out = append(out, of[at].spec)
		}
	}
	ofAll := func(wanted map[string]string) bool { return len(wanted) == 0 }
	first(p[root], ofAll)
	if namespace != root {
		first(p[namespace], ofAll)
	}
	first(p[namespace], func(wanted map[string]string) bool {
		for k, v := range wanted {
			if labels[k] != v {
				return false
			}
		}
		return len(wanted) > 0
	})
	return out
}
