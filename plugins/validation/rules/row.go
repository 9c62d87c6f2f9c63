package rules

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Row returns what refuses the spec of a row, as Check does that of a resource from a file: rows
// come from plugins that may check nothing. Rows that are made of objects of other kinds have names
// with “~”, which no author could give, and refer to each other by them; they are taken. A spec
// that the schema of its definition would have refused before may be such that it can't be checked:
// that refuses it, too.
func Row(row *pb.Row, spec proto.Message) (err error) {
	if strings.Contains(row.Key, "~") {
		return nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it lacks something without which it can't be checked: %v", p)
		}
	}()
	namespace, name, _ := strings.Cut(row.Key, "/")
	found := Check(finding.Resource{
		Kind: string(spec.ProtoReflect().Descriptor().Name()), Namespace: namespace, Name: name, Labels: row.Labels, Annotations: row.Annotations, Spec: spec,
	})
	var text string
	n := 0
	for _, f := range found {
		if f.Severity != finding.Error {
			continue
		}
		if n++; n == 1 {
			text = f.Message
			if f.Field != "" {
				text = f.Field + ": " + text
			}
			text += " (" + f.Code + ")"
		}
	}
	switch n {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("%s", text)
	}
	return fmt.Errorf("%s; and %d more", text, n-1)
}
