package kinds

import (
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// gatewayKind returns the kind of the Gateway API that an object is of, whatever its version.
func gatewayKind(version, kind string) (gatewayapi.Kind, bool) {
	group, _, _ := strings.Cut(version, "/")
	return gatewayapi.Lookup(group + "/" + kind)
}

// readGatewayAPI reads an object of the Gateway API.
func (o *object) readGatewayAPI(kind gatewayapi.Kind) {
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
	if Refuses(o.doc.Faults) {
		return
	}
	o.doc.Row = &pb.Row{
		Key: o.doc.Key(), Created: o.meta.created, Source: Source(o.file, o.doc.Line, o.doc.Column),
		Labels: o.meta.labels, Annotations: o.meta.annotations, Payload: payload,
	}
	if order := o.reader.Order; order != nil {
		o.doc.Row.Created, o.doc.Row.Undated = order.rank(o.doc.Namespace), true
	}
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
