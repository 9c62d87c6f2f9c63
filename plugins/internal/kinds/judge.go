package kinds

import (
	"cmp"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"google.golang.org/protobuf/proto"
)

// judge asks the check about an object, unless its text is too large to be walked again. Kinds of
// the Gateway API have no message.
func (o *object) judge(spec proto.Message) {
	if o.reader.Check == nil || slices.ContainsFunc(o.doc.Faults, func(f Fault) bool { return f.Code == protoyaml.CodeTooLarge }) {
		return
	}
	for _, f := range o.reader.Check(o.resource(spec)) {
		o.found(f)
	}
}

// resource is the object with its spec, if that is a message.
func (o *object) resource(spec proto.Message) finding.Resource {
	group, version, _ := strings.Cut(o.version, "/")
	return finding.Resource{
		Group: group, Version: version, Kind: o.kind, Namespace: o.meta.namespace, Name: o.meta.name,
		Labels: o.meta.labels, Annotations: o.meta.annotations, Spec: spec, Partial: Refuses(o.doc.Faults), Node: o.root,
	}
}

// found notes a finding. Where something was wrong in reading the same place already, the finding
// explains it.
func (o *object) found(f finding.Finding) {
	at := protoyaml.Locate(o.root, f.Field)
	for i, known := range o.doc.Faults {
		if known.Line == at.Line && known.Column == at.Column && known.Code < "COX1100" {
			o.doc.Faults[i].Hint = cmp.Or(known.Hint, more(known, f))
			return
		}
	}
	o.doc.Faults = append(o.doc.Faults, Fault{
		File: o.file, Line: at.Line, Column: at.Column,
		Code: f.Code, Severity: f.Severity, Field: f.Field, Message: f.Message, Hint: f.Hint,
	})
}

// more returns what a finding says beyond a fault of the same place.
func more(known Fault, f finding.Finding) string {
	if start, _, _ := strings.Cut(f.Message, ":"); strings.HasPrefix(known.Message, start) {
		return ""
	}
	return f.Message
}
