package finding

import (
	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/proto"
)

// Resource is one resource to check.
type Resource struct {
	// Group, Version and Kind as in apiVersion and kind. MeshConfig and MeshNetworks have a kind
	// alone, and their fields' paths begin at the message.
	Group, Version, Kind string
	Namespace, Name      string
	Labels, Annotations  map[string]string
	// Spec is a message of istio.io/api, nil for other APIs; checks don't change it.
	Spec proto.Message
	// Partial says that Spec lacks values that could not be read; what is wrong with them is told
	// already.
	Partial bool
	// Node is the whole resource as it is written; nil where there is no text.
	Node *yaml.Node
}
