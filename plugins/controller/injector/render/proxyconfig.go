package render

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"istio.io/api/annotation"
	mesh "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
)

// ProxyConfig returns the settings of a pod's proxy: the mesh's, over which those objects of kind
// ProxyConfig are laid that concern it, in this order, and then the pod's annotation
// proxy.istio.io/config. Variables are joined by name.
func ProxyConfig(m *mesh.MeshConfig, objects []*networking.ProxyConfig, annotations map[string]string) (*mesh.ProxyConfig, error) {
	p := proto.CloneOf(m.GetDefaultConfig())
	if p == nil {
		p = &mesh.ProxyConfig{}
	}
	for _, o := range objects {
		if o.Concurrency != nil {
			p.Concurrency = wrapperspb.Int32(o.Concurrency.Value)
		}
		if o.Image != nil {
			p.Image = o.Image
		}
		p.ProxyMetadata = merged(p.ProxyMetadata, o.EnvironmentVariables)
	}
	text, ok := annotations[annotation.ProxyConfig.Name]
	if !ok {
		return p, nil
	}
	return p, annotated(p, text)
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
