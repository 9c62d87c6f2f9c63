package kinds

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"go.yaml.in/yaml/v3"
)

// isSecret reports whether objects of a kind of Kubernetes' are read for certificates and keys.
func isSecret(kind string) bool { return kind == secrets.Secret || kind == secrets.ConfigMap }

// readSecret reads a Secret or a ConfigMap. One that has nothing to read is of another API. No
// fault has anything of a value in it.
func (o *object) readSecret() {
	o.doc.Table = secrets.Object{Kind: o.kind}.Table()
	o.readMetadata()
	o.doc.Namespace, o.doc.Name = o.meta.namespace, o.meta.name
	data, _ := o.values()
	if len(data) == 0 && !Refuses(o.doc.Faults) {
		o.doc.Foreign = o.version + "/" + o.kind
		o.doc.Faults = nil
		return
	}
	if err := secrets.Check(data); err != nil && !Refuses(o.doc.Faults) {
		o.fault(o.root, CodeSecret, "data", "%v", err)
	}
	if Refuses(o.doc.Faults) {
		return
	}
	o.doc.Row = &pb.Row{
		Key:     o.doc.Key(),
		Created: o.meta.created,
		Source:  Source(o.file, o.doc.Line, o.doc.Column),
		// Annotations may have the object as it was applied.
		Payload: secrets.Content{Data: data}.Encode(),
	}
}

// Values returns the values of a Secret or a ConfigMap that certificates and keys are in, by their
// names, and reports whether it has any values. The error is about those that can't be read, and
// has nothing of them.
func Values(root *yaml.Node) (data map[string][]byte, has bool, err error) {
	o := Reader{}.object("", root)
	data, has = o.values()
	for _, f := range o.doc.Faults {
		if Refuses([]Fault{f}) {
			return nil, has, fmt.Errorf("%s %s", f.Field, f.Message)
		}
	}
	return data, has, nil
}

// values reads the wanted ones, and reports whether there are any.
func (o *object) values() (data map[string][]byte, has bool) {
	data = map[string][]byte{}
	for _, field := range []string{"data", "binaryData", "stringData"} {
		has = has || o.value(field) != nil
		encoded := field == "binaryData" || field == "data" && o.kind == secrets.Secret
		o.readValues(field, encoded, data)
	}
	return data, has
}

// readValues adds the wanted values of a field.
func (o *object) readValues(field string, encoded bool, into map[string][]byte) {
	n := o.value(field)
	if n == nil || protoyaml.IsNull(n) {
		return
	}
	if n.Kind != yaml.MappingNode {
		o.fault(n, CodeSecret, field, "expected a mapping of strings")
		return
	}
	pairs, faults := protoyaml.Pairs(n)
	for range faults {
		o.fault(n, CodeSecret, field, "has a key twice, or one that is no string")
	}
	for _, p := range pairs {
		name, value := p.Key.Value, protoyaml.Resolve(p.Value)
		if !secrets.Wanted(o.kind, name) {
			continue
		}
		if value.Kind != yaml.ScalarNode || value.Tag != "!!str" {
			o.fault(value, CodeSecret, field+"["+name+"]", "expected a string; put it in quotes")
			continue
		}
		content := []byte(value.Value)
		if encoded {
			var err error
			if content, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(value.Value), "")); err != nil {
				o.fault(value, CodeSecret, field+"["+name+"]", "is not in base64; a text as it is goes into stringData")
				continue
			}
		}
		if len(content) > 0 {
			into[name] = content
		}
	}
}
