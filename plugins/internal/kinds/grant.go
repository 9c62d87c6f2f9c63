package kinds

import (
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Grants is the kind of ReferenceGrants, which is none of Istio's: Reader.Grants has it read.
// Source: Gateway API, "Versioning".
func Grants() Kind { return Kind{Table: secrets.Grants, Versions: []string{"v1", "v1beta1"}} }

// isGrant reports whether an object is a ReferenceGrant.
func isGrant(version, kind string) bool {
	group, version, _ := strings.Cut(version, "/")
	return group+"/"+kind == secrets.Grants && Grants().serves(version)
}

// readGrant reads a ReferenceGrant.
func (o *object) readGrant() {
	o.doc.Table = secrets.Grants
	o.readMetadata()
	o.doc.Namespace, o.doc.Name = o.meta.namespace, o.meta.name
	var spec secrets.Grant
	if n := o.value("spec"); n == nil {
		o.fault(o.root, CodeObject, "spec", "is missing")
	} else if n.Decode(&spec.ReferenceGrantSpec) != nil {
		o.fault(n, CodeObject, "spec", "expected from and to, lists of mappings of strings")
	} else if err := spec.Check(); err != nil {
		o.fault(n, CodeObject, "spec", "%v", err)
	}
	if !Refuses(o.doc.Faults) {
		o.doc.Row = &pb.Row{Key: o.doc.Key(), Created: o.meta.created, Source: Source(o.file, o.doc.Line, o.doc.Column), Payload: spec.Encode()}
	}
}
