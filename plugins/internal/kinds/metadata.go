package kinds

import (
	"encoding/json"
	"regexp"
	"slices"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/ingress"
	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"go.yaml.in/yaml/v3"
	meta "istio.io/api/meta/v1alpha1"
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
func (o *object) readMetadata() {
	o.meta.namespace = DefaultNamespace
	n := o.value("metadata")
	if n == nil || n.Kind != yaml.MappingNode {
		o.fault(o.root, CodeMetadata, "metadata.name", "is missing")
		return
	}
	pairs, faults := protoyaml.Pairs(n)
	for _, f := range faults {
		f.Field = "metadata"
		o.faults(f)
	}
	for _, p := range pairs {
		o.metadataField(p.Key, protoyaml.Resolve(p.Value))
	}
	if o.meta.name == "" && !slices.ContainsFunc(pairs, func(p protoyaml.Pair) bool { return p.Key.Value == "name" }) {
		o.fault(n, CodeMetadata, "metadata.name", "is missing")
	}
}

func (o *object) metadataField(key, value *yaml.Node) {
	field := "metadata." + key.Value
	switch key.Value {
	case "name":
		o.meta.name = o.nameOf(field, value, subdomain, maxSubdomain)
	case "namespace":
		if name := o.nameOf(field, value, label, maxLabel); name != "" {
			o.meta.namespace = name
		}
	case "labels":
		o.meta.labels = o.textMap(field, value)
	case "annotations":
		o.meta.annotations = o.textMap(field, value)
		for _, a := range Kept() {
			delete(o.meta.annotations, a)
		}
	case "creationTimestamp":
		o.meta.created = o.time(field, value)
	default:
		if !contains(metadataFields, key.Value) {
			o.faults(protoyaml.Unknown(key, field, metadataFields))
		}
	}
}

// nameOf reads a name; an empty namespace means none, but an object needs a name.
func (o *object) nameOf(field string, n *yaml.Node, form *regexp.Regexp, longest int) string {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!str" && n.Tag != "!!null" {
		o.fault(n, CodeMetadata, field, "expected a string; a number needs quotes")
		return ""
	}
	if n.Value == "" || protoyaml.IsNull(n) {
		if field == "metadata.name" {
			o.fault(n, CodeMetadata, field, "is empty")
		}
		return ""
	}
	if len(n.Value) > longest || !form.MatchString(n.Value) {
		o.fault(n, CodeMetadata, field, "%q is no name: use at most %d of a-z, 0-9, '-'%s, with a letter or digit at both ends",
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
func (o *object) textMap(field string, n *yaml.Node) map[string]string {
	if protoyaml.IsNull(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		o.fault(n, CodeMetadata, field, "expected a mapping of strings")
		return nil
	}
	pairs, faults := protoyaml.Pairs(n)
	for _, f := range faults {
		f.Field = field
		o.faults(f)
	}
	texts := make(map[string]string, len(pairs))
	for _, p := range pairs {
		value := protoyaml.Resolve(p.Value)
		if protoyaml.IsNull(value) { // an API server keeps the name, without a value
			texts[protoyaml.KeyText(p.Key)] = ""
			continue
		}
		if value.Kind != yaml.ScalarNode || value.Tag != "!!str" || protoyaml.IsWord(value) {
			o.fault(value, CodeMetadata, field+"["+p.Key.Value+"]", "expected a string, got %q; put it in quotes", value.Value)
			continue
		}
		texts[protoyaml.KeyText(p.Key)] = value.Value
	}
	return texts
}

func (o *object) time(field string, n *yaml.Node) int64 {
	if protoyaml.IsNull(n) {
		return 0
	}
	t, err := time.Parse(time.RFC3339Nano, n.Value)
	if n.Kind != yaml.ScalarNode || err != nil {
		o.fault(n, CodeMetadata, field, "expected a time such as 2006-01-02T15:04:05Z, got %q", n.Value)
		return 0
	}
	return t.UnixNano()
}

// readStatus keeps what counts of an object's status: the addresses that a controller gave to a
// ServiceEntry or an Ingress, and the condition of a WorkloadEntry's health. Nothing in a status
// makes an object faulty.
func (o *object) readStatus(table string, row *pb.Row) {
	n := o.value("status")
	switch {
	case n == nil:
	case table == ServiceEntry:
		var status networking.ServiceEntryStatus
		protoyaml.Decode(n, "status", &status)
		keep(row, AutoAddresses, allocated(&status))
	case table == WorkloadEntry:
		var status meta.IstioStatus
		protoyaml.Decode(n, "status", &status)
		keep(row, HealthCondition, health(&status))
	case table == ingress.Ingress:
		keep(row, LoadBalancer, reached(n))
	}
}

// reached are the addresses in an Ingress's status.
func reached(n *yaml.Node) string {
	_, text, err := protoyaml.JSON(n)
	var status struct {
		LoadBalancer struct{ Ingress []ingress.Address }
	}
	if err != nil || json.Unmarshal(text, &status) != nil || len(status.LoadBalancer.Ingress) == 0 {
		return ""
	}
	if text, err = json.Marshal(status.LoadBalancer.Ingress); err != nil {
		return ""
	}
	return string(text)
}

func keep(row *pb.Row, annotation, value string) {
	if value == "" {
		return
	}
	if row.Annotations == nil {
		row.Annotations = make(map[string]string, 1)
	}
	row.Annotations[annotation] = value
}

func allocated(status *networking.ServiceEntryStatus) string {
	var list []Address
	for _, a := range status.Addresses {
		list = append(list, Address{Host: a.Host, Value: a.Value})
	}
	if len(list) == 0 {
		return ""
	}
	text, err := json.Marshal(list)
	if err != nil {
		return ""
	}
	return string(text)
}

func health(status *meta.IstioStatus) string {
	for _, c := range status.Conditions {
		if c.Type == "Healthy" {
			return c.Status
		}
	}
	return ""
}
