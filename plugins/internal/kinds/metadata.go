package kinds

import (
	"encoding/json"
	"regexp"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"go.yaml.in/yaml/v3"
	networking "istio.io/api/networking/v1alpha3"
)

// metadata is what rows keep of an object's metadata.
type metadata struct {
	namespace, name     string
	created             int64
	labels, annotations map[string]string
}

// metadataFields are those of Kubernetes' ObjectMeta.
var metadataFields = []string{
	"annotations", "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers", "generateName",
	"generation", "labels", "managedFields", "name", "namespace", "ownerReferences", "resourceVersion", "selfLink", "uid",
}

// Names of objects (RFC 1123 subdomains) and of namespaces (labels), as Kubernetes checks them.
var (
	subdomain = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)
	label     = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
)

const (
	maxSubdomain = 253
	maxLabel     = 63
)

func contains(names []string, name string) bool { return slices.Contains(names, name) }

// readMetadata reads the object's metadata and notes what is wrong with it.
func (r *reader) readMetadata() {
	r.meta.namespace = DefaultNamespace
	n := r.value("metadata")
	if n == nil || n.Kind != yaml.MappingNode {
		r.fault(r.root, "metadata.name", "is missing")
		return
	}
	pairs, faults := protoyaml.Pairs(n)
	for _, f := range faults {
		f.Field = "metadata"
		r.faults(f)
	}
	for _, p := range pairs {
		r.metadataField(p.Key, protoyaml.Resolve(p.Value))
	}
	if r.meta.name == "" && !slices.ContainsFunc(pairs, func(p protoyaml.Pair) bool { return p.Key.Value == "name" }) {
		r.fault(n, "metadata.name", "is missing")
	}
}

func (r *reader) metadataField(key, value *yaml.Node) {
	field := "metadata." + key.Value
	switch key.Value {
	case "name":
		r.meta.name = r.nameOf(field, value, subdomain, maxSubdomain)
	case "namespace":
		if name := r.nameOf(field, value, label, maxLabel); name != "" {
			r.meta.namespace = name
		}
	case "labels":
		r.meta.labels = r.textMap(field, value)
	case "annotations":
		r.meta.annotations = r.textMap(field, value)
		delete(r.meta.annotations, AutoAddresses)
	case "creationTimestamp":
		r.meta.created = r.time(field, value)
	default:
		if !contains(metadataFields, key.Value) {
			r.fault(key, field, "unknown field%s", protoyaml.Suggest(key.Value, metadataFields))
		}
	}
}

// nameOf reads a name; an empty namespace means none, but an object needs a name.
func (r *reader) nameOf(field string, n *yaml.Node, form *regexp.Regexp, longest int) string {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" && n.Tag != "!!null" {
		r.fault(n, field, "expected a string; a number needs quotes")
		return ""
	}
	if n.Value == "" || protoyaml.IsNull(n) {
		if field == "metadata.name" {
			r.fault(n, field, "is empty")
		}
		return ""
	}
	if len(n.Value) > longest || !form.MatchString(n.Value) {
		r.fault(n, field, "%q is no name: use at most %d of a-z, 0-9, '-'%s, with a letter or digit at both ends",
			n.Value, longest, dotFor(longest))
		return ""
	}
	return n.Value
}

func dotFor(longest int) string {
	if longest == maxSubdomain {
		return " and '.'"
	}
	return ""
}

// textMap reads labels or annotations.
func (r *reader) textMap(field string, n *yaml.Node) map[string]string {
	if protoyaml.IsNull(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		r.fault(n, field, "expected a mapping of strings")
		return nil
	}
	pairs, faults := protoyaml.Pairs(n)
	for _, f := range faults {
		f.Field = field
		r.faults(f)
	}
	texts := make(map[string]string, len(pairs))
	for _, p := range pairs {
		value := protoyaml.Resolve(p.Value)
		if value.Kind != yaml.ScalarNode || value.Tag != "!!str" {
			r.fault(value, field+"["+p.Key.Value+"]", "expected a string, got %q; put it in quotes", value.Value)
			continue
		}
		texts[p.Key.Value] = value.Value
	}
	return texts
}

func (r *reader) time(field string, n *yaml.Node) int64 {
	if protoyaml.IsNull(n) {
		return 0
	}
	t, err := time.Parse(time.RFC3339Nano, n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		r.fault(n, field, "expected a time such as 2006-01-02T15:04:05Z, got %q", n.Value)
		return 0
	}
	return t.UnixNano()
}

// readAllocated keeps the addresses that a controller gave to a ServiceEntry. Of a status nothing else counts, and
// nothing in it makes an object faulty.
func (r *reader) readAllocated(row *pb.Row) {
	n := r.value("status")
	if n == nil {
		return
	}
	var status networking.ServiceEntryStatus
	protoyaml.Decode(n, "status", &status)
	var list []Address
	for _, a := range status.Addresses {
		list = append(list, Address{Host: a.Host, Value: a.Value})
	}
	if len(list) == 0 {
		return
	}
	text, err := json.Marshal(list)
	if err != nil {
		return
	}
	if row.Annotations == nil {
		row.Annotations = make(map[string]string, 1)
	}
	row.Annotations[AutoAddresses] = string(text)
}
