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

// annotated changes settings by what an annotation says, in YAML or JSON.
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
	}
	return nil
}

// ProxyObject is an object of kind ProxyConfig.
type ProxyObject struct {
	namespace, name string
	spec            *networking.ProxyConfig
}

// NewProxyObject returns the one of a key, NAMESPACE/NAME.
func NewProxyObject(key string, spec *networking.ProxyConfig) *ProxyObject {
	namespace, name, _ := strings.Cut(key, "/")
	return &ProxyObject{namespace, name, spec}
}

// Concerning returns the objects that concern pods with these labels in a namespace: those of the
// root namespace, of their own, and those that select them, the most particular last; of several of
// a sort the first by name.
func Concerning(objects []*ProxyObject, root, namespace string, labels map[string]string) (out []*networking.ProxyConfig) {
	all := slices.Clone(objects)
	slices.SortFunc(all, func(a, b *ProxyObject) int { return cmp.Compare(a.name, b.name) })
	first := func(of func(p *ProxyObject) bool) {
		if at := slices.IndexFunc(all, of); at >= 0 {
			out = append(out, all[at].spec)
		}
	}
	first(func(p *ProxyObject) bool {
		return p.namespace == root && len(p.spec.GetSelector().GetMatchLabels()) == 0
	})
	if namespace != root {
		first(func(p *ProxyObject) bool {
			return p.namespace == namespace && len(p.spec.GetSelector().GetMatchLabels()) == 0
		})
	}
	first(func(p *ProxyObject) bool {
		wanted := p.spec.GetSelector().GetMatchLabels()
		for k, v := range wanted {
			if labels[k] != v {
				return false
			}
		}
		return p.namespace == namespace && len(wanted) > 0
	})
	return out
}
