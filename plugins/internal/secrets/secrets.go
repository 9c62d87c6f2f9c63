// Package secrets is what sources of certificates and keys publish, and generator/sds reads: rows
// of Secrets and ConfigMaps.
package secrets

import (
	"slices"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Kinds of objects.
const (
	Secret    = "Secret"
	ConfigMap = "ConfigMap"
)

// Tables of the kinds. The core shows and records nothing of the payload of rows whose table has
// `secret` in its name; of ConfigMaps there is only what to trust, which is no secret.
const (
	SecretTable    = "v1/" + Secret
	ConfigMapTable = "v1/" + ConfigMap
)

// Names of values: those of a generic Secret, and those of one of type kubernetes.io/tls.
// Source: Istio, ServerTLSSettings.credentialName; Kubernetes, kubernetes.io/tls.
const (
	GenericCertificate = "cert"
	GenericKey         = "key"
	GenericRoots       = "cacert"
	GenericRevoked     = "crl"
	Certificates       = "tls.crt"
	Key                = "tls.key"
	Staple             = "tls.ocsp-staple"
	Roots              = "ca.crt"
	Revoked            = "ca.crl"
)

// Docker is the name of the value with credentials for registries, of a Secret of type
// kubernetes.io/dockerconfigjson. Source: Kubernetes, "Docker config Secrets".
const Docker = ".dockerconfigjson"

// names are those of values that rows have, by the object's kind; others aren't read.
func names(kind string) []string {
	if kind == ConfigMap {
		return []string{GenericRoots, GenericRevoked, Roots, Revoked}
	}
	return []string{GenericCertificate, GenericKey, GenericRoots, GenericRevoked, Certificates, Key, Staple, Roots, Revoked, Docker}
}

// Wanted reports whether objects of a kind are read for the value of this name.
func Wanted(kind, name string) bool { return slices.Contains(names(kind), name) }

// Object names a Secret or a ConfigMap. Cluster is empty for those of the first cluster, and of
// files.
type Object struct {
	Cluster   string `json:"cluster,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Table returns the table that the object's row is in.
func (o Object) Table() string { return "v1/" + o.Kind }

// Key returns the key of the object's row: NAMESPACE/NAME, in other clusters than the first
// followed by @ and the cluster.
func (o Object) Key() string {
	key := o.Namespace + "/" + o.Name
	if o.Cluster != "" {
		key += "@" + o.Cluster
	}
	return key
}

// String returns kind, namespace, name and cluster of the object.
func (o Object) String() string {
	text := o.Kind + " " + o.Namespace + "/" + o.Name
	if o.Cluster != "" {
		text += " of cluster " + o.Cluster
	}
	return text
}

// Content is what a row says of an object.
type Content struct {
	// Data are the values that are wanted of the object, by their names.
	Data map[string][]byte `json:"data,omitempty"`
}

// Encode returns a row's payload: JSON with sorted keys, values in base64.
func (c Content) Encode() []byte { return encode(c) }

// Decode reads a row's payload. An error has nothing of it.
func Decode(row *pb.Row) (Content, error) { return decode[Content](row) }
