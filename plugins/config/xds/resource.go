package xds

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
	mcp "istio.io/api/mcp/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	told "github.com/coxswain-mesh/coxswain/plugins/internal/said"
	"github.com/coxswain-mesh/coxswain/plugins/validation"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// said is a resource of an answer: its name, NAMESPACE/NAME, and its content.
type said struct {
	name     string
	sum      [sha256.Size]byte
	resource *mcp.Resource
}

// open reads the envelope of a resource. cluster: the kind's objects are in no namespace. The error
// says why it has no name that it could be known by.
func open(a *anypb.Any, cluster bool) (said, error) {
	m := &mcp.Resource{}
	if err := a.UnmarshalTo(m); err != nil {
		return said{}, fmt.Errorf("is no istio.mcp.v1alpha1.Resource: %w", err)
	}
	name := m.GetMetadata().GetName()
	namespace, own, ok := strings.Cut(name, "/")
	switch {
	case !ok || own == "" || strings.Contains(own, "/") || (namespace == "") != cluster:
		form := "NAMESPACE/NAME"
		if cluster {
			form = "/NAME"
		}
		return said{}, fmt.Errorf("metadata.name: %q is no %s", clip(name), form)
	case len(name) > mostName || strings.ContainsFunc(name, unicode.IsControl):
		return said{}, fmt.Errorf("metadata.name: %q %w", clip(name), errNobody)
	}
	return said{name, sha256.Sum256(a.Value), m}, nil
}

// mostName is how long a namespace and a name may be, with what stands between them. Source:
// Kubernetes, "Object Names and IDs".
const mostName = 63 + 1 + 253

// errNobody is of a name that no object can have: it is none of those that are known.
var errNobody = errors.New("is no name of an object: it is too long, or has control characters")

// clip shortens what a server wrote, for people.
func clip(text string) string { return told.Line(text, 100) }

// reader makes rows of resources of one type.
type reader struct {
	asked
	// server is how people call it.
	server  string
	checker *validation.Checker
	// order says which objects go before others; nil: what they say themselves.
	order *kinds.Order
}

// place is what people look a resource up by.
func (r *reader) place(name string) string { return place(r.server, r.kind.Table, name) }

func place(server, table, name string) string {
	return "xds://" + server + "/" + strings.TrimSuffix(table+"/"+name, "/")
}

// row makes the row of a resource; nil where faults have errors. It is read as an object of a file
// is, so that the same is wrong with it, whoever says it.
func (r *reader) row(s said) (*sdk.Row, []kinds.Fault) {
	namespace, name := kinds.SplitKey(s.name)
	wrong := func(severity finding.Severity, field, code, format string, args ...any) kinds.Fault {
		return kinds.Fault{
			File: r.place(s.name), Kind: r.kind.Name(), Namespace: namespace, Name: name, Severity: severity,
			Code: code, Field: field, Message: fmt.Sprintf(format, args...),
		}
	}
	spec, newer, err := r.body(s.resource.GetBody())
	if err != nil {
		return nil, []kinds.Fault{wrong(finding.Error, "body", kinds.CodeObject, "%v", err)}
	}
	text, err := r.text(namespace, name, s.resource.Metadata, spec)
	if err != nil {
		return nil, []kinds.Fault{wrong(finding.Error, "body", kinds.CodeObject, "%v", err)}
	}
	reader := kinds.Reader{Check: r.checker.Check, Defaulted: r.checker.Defaulted, Order: r.order, Grants: r.plain, Gateways: r.plain}
	documents := reader.Read(r.place(s.name), text)
	if len(documents) != 1 {
		return nil, []kinds.Fault{wrong(finding.Error, "", kinds.CodeObject, "is no object")}
	}
	d := documents[0]
	for i := range d.Faults { // there are no lines
		d.Faults[i].Line, d.Faults[i].Column = 0, 0
	}
	if newer {
		fault := wrong(finding.Warning, "spec", "", "has fields that this version of Istio's API does not know")
		fault.Hint = "they are left out"
		d.Faults = append(d.Faults, fault)
	}
	if d.Row == nil {
		return nil, d.Faults
	}
	if d.Row.Size() > kinds.MaxRow {
		return nil, append(d.Faults, wrong(finding.Error, "", kinds.CodeSize, "%s", kinds.TooLarge(d.Row.Size())))
	}
	d.Row.Source = r.place(s.name)
	return d.Row, d.Faults
}

// body reads a body as JSON. newer: it had fields that aren't known. Source: Istio, which says
// specs that are no messages of its own as google.protobuf.Struct.
func (r *reader) body(body *anypb.Any) (text []byte, newer bool, err error) {
	var spec proto.Message = &structpb.Struct{}
	switch {
	case !r.plain:
		spec, newer, err = r.spec(body)
	case body == nil:
		err = errors.New("is missing")
	default:
		err = body.UnmarshalTo(spec)
	}
	if err != nil {
		return nil, false, err
	}
	text, err = protojson.Marshal(spec)
	return text, newer, err
}

// spec reads a body, which may be of any version of the kind: they have the same fields. newer: it
// had fields that aren't known.
func (r *reader) spec(body *anypb.Any) (spec proto.Message, newer bool, err error) {
	spec = r.kind.New()
	switch {
	case body == nil:
		return nil, false, fmt.Errorf("is missing")
	case unversioned(string(body.MessageName())) != unversioned(string(spec.ProtoReflect().Descriptor().FullName())):
		return nil, false, fmt.Errorf("is a %q, not a %s", clip(body.TypeUrl), spec.ProtoReflect().Descriptor().FullName())
	}
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(body.Value, spec); err != nil {
		return nil, false, fmt.Errorf("can't be read: %w", err)
	}
	whole := r.kind.New()
	return spec, proto.Unmarshal(body.Value, whole) == nil && proto.Size(whole) != proto.Size(spec), nil
}

// unversioned is a message's name without the version of its package:
// istio.networking.v1alpha3.Gateway is istio.networking.Gateway.
func unversioned(name string) string {
	parts := strings.Split(name, ".")
	if n := len(parts); n == 4 && strings.HasPrefix(parts[2], "v") {
		return parts[0] + "." + parts[1] + "." + parts[3]
	}
	return name
}

// text is the object as JSON.
func (r *reader) text(namespace, name string, m *mcp.Metadata, spec []byte) ([]byte, error) {
	meta := map[string]any{"name": name}
	if !r.cluster {
		meta["namespace"] = namespace
	}
	if len(m.Labels) > 0 {
		meta["labels"] = m.Labels
	}
	if len(m.Annotations) > 0 {
		meta["annotations"] = m.Annotations
	}
	if t := m.CreateTime; t != nil && (t.Seconds != 0 || t.Nanos != 0) {
		if err := t.CheckValid(); err != nil {
			return nil, fmt.Errorf("metadata.createTime: %w", err)
		}
		meta["creationTimestamp"] = t.AsTime().Format(time.RFC3339Nano)
	}
	return json.Marshal(map[string]any{"apiVersion": r.kind.Group() + "/" + r.version, "kind": r.kind.Name(), "metadata": meta, "spec": json.RawMessage(spec)})
}
