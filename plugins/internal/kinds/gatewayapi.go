package kinds

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/ingress"
	"github.com/coxswain-mesh/coxswain/plugins/internal/objects"
	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Others are the kinds that are none of Istio's and which Reader.Gateways has read: those of the
// Gateway API, but for ReferenceGrants, Ingress and IngressClass.
func Others() []objects.Kind { return slices.Concat(gatewayapi.All(), ingress.All()) }

// OtherTables returns the tables of Others.
func OtherTables() []string { return objects.Tables(Others()) }

// Other returns that one of Others whose table it is.
func Other(table string) (objects.Kind, bool) { return objects.Lookup(Others(), table) }

// otherKind returns that one of Others that an object is of, whatever its version.
func otherKind(version, kind string) (objects.Kind, bool) {
	group, _, _ := strings.Cut(version, "/")
	return Other(group + "/" + kind)
}

// readOther reads an object of one of Others.
func (o *object) readOther(kind objects.Kind) {
	o.doc.Table = kind.Table
	o.readMetadata()
	if kind.Cluster {
		o.meta.namespace = ""
	}
	o.doc.Namespace, o.doc.Name = o.meta.namespace, o.meta.name
	if _, version, _ := strings.Cut(o.version, "/"); !kind.Serves(version) {
		o.fault(o.value("apiVersion"), CodeKind, "apiVersion", "%s has no version %q; it has %s", o.kind, version, strings.Join(kind.Versions, ", "))
		return
	}
	o.checkKeys()
	text, ok := o.plainSpec()
	if !ok {
		return
	}
	payload, path, err := kind.Encode(text)
	if err != nil {
		at := protoyaml.Locate(o.root, path)
		o.faults(protoyaml.Fault{Line: at.Line, Column: at.Column, Code: CodeObject, Field: path, Reason: err.Error()})
	}
	o.judge(nil)
	if kind.Table == gatewayapi.Gateway {
		if n := protoyaml.Child(o.value("spec"), "gatewayClassName"); n != nil {
			if why := UnservedClass(scalar(n)); why != "" {
				o.unserved(CodeUnserved, n, "spec.gatewayClassName", why)
			}
		}
	}
	if Refuses(o.doc.Faults) {
		return
	}
	payload = o.defaulted(kind, payload)
	o.doc.Row = &pb.Row{
		Key: o.doc.Key(), Created: o.meta.created, Source: Source(o.file, o.doc.Line, o.doc.Column),
		Labels: o.meta.labels, Annotations: o.meta.annotations, Payload: payload,
	}
	if order := o.reader.Order; order != nil {
		o.doc.Row.Created, o.doc.Row.Undated = order.rank(o.doc.Namespace), true
	}
	o.readStatus(kind.Table, o.doc.Row)
}

// defaulted is a payload with the defaults of the kind's schema.
func (o *object) defaulted(kind objects.Kind, payload []byte) []byte {
	if o.reader.Defaulted == nil {
		return payload
	}
	spec := o.reader.Defaulted(o.resource(nil))
	if spec == nil {
		return payload
	}
	text, err := json.Marshal(spec)
	if err != nil {
		return payload
	}
	if whole, _, err := kind.Encode(text); err == nil {
		return whole
	}
	return payload
}

// plainSpec returns the spec as JSON.
func (o *object) plainSpec() (text []byte, ok bool) {
	n := o.value("spec")
	if n == nil || protoyaml.IsNull(n) {
		o.fault(o.root, CodeObject, "spec", "is missing")
		return nil, false
	}
	_, text, err := protoyaml.JSON(n)
	if err != nil {
		o.fault(n, CodeObject, "spec", "%v", err)
	}
	return text, err == nil
}
