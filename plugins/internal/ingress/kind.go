// Package ingress knows Kubernetes' Ingress and IngressClass: their tables, which Ingresses are to
// be served, and at which addresses they are reached.
//
// Package objects says how the spec of an object stands in a row. Source: k8s.io/api/networking/v1.
package ingress

import (
	networking "k8s.io/api/networking/v1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/objects"
)

// Group is the API group.
const Group = networking.GroupName

// Tables of the kinds.
const (
	Ingress = Group + "/Ingress"
	Class   = Group + "/IngressClass"
)

// kinds is never changed.
var kinds = []objects.Kind{
	{Table: Ingress, Versions: []string{"v1"}, Spec: func() any { return &networking.IngressSpec{} }},
	{Table: Class, Versions: []string{"v1"}, Cluster: true, Spec: func() any { return &networking.IngressClassSpec{} }},
}

// All returns the kinds.
func All() []objects.Kind { return append([]objects.Kind(nil), kinds...) }
