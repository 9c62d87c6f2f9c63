package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"github.com/coxswain-mesh/coxswain/test/kit/mutated"
)

// TestAsAnAPIServer: what an API server stores of an object is what is read of it, and what it
// refuses is refused, for random edits of objects: nulls, empty maps and lists, values of other
// types, unknown fields, words that YAML 1.1 takes for booleans, numbers in quotes, numbers of
// enums. The judge goes the way of an API server, with its own code; a real one is asked by
// test/kube TestStoredAsRead.
func TestAsAnAPIServer(t *testing.T) {
	set, rnd := New(), rand.New(rand.NewPCG(46, 1))
	texts := [][]byte{bytes.ReplaceAll(objects(t, 1), []byte("1m"), []byte("60s")), objects(t, 2)} // the mapping has no minutes
	stored, refused, differ := 0, 0, 0
	for _, text := range texts {
		for _, chunk := range protoyaml.Split(text) {
			object := map[string]any{}
			if err := yaml.Unmarshal(chunk.Text, &object); err != nil {
				t.Fatal(err)
			}
			for range 60 {
				edited := mutated.Text(t, rnd, object)
				want, err := serve(set, edited)
				row, faults := readHere(set, edited)
				switch {
				case err != nil && row == nil:
					refused++
				case err == nil && row != nil && proto.Equal(want, row):
					stored++
				default:
					if differ++; differ < 10 {
						t.Errorf("an API server has %v (%v), here is %v (%v) of\n%s", want, err, row, faults, edited)
					}
				}
			}
		}
	}
	t.Logf("%d stored, %d refused alike, %d otherwise", stored, refused, differ)
	if stored < 150 || refused < 150 {
		t.Error("too few of either")
	}
}

// serve is an object's spec after what an API server does to it; the error says that it refuses it.
func serve(set *Set, text []byte) (proto.Message, error) {
	var o map[string]any
	if err := yaml.Unmarshal(text, &o); err != nil {
		return nil, err
	}
	group, version, _ := bytes.Cut([]byte(fmt.Sprint(o["apiVersion"])), []byte("/"))
	c, err := set.compiled(name{string(group), fmt.Sprint(o["kind"]), string(version)})
	if err != nil || c == nil {
		return nil, fmt.Errorf("no schema: %v", err)
	}
	o = whole64(o).(map[string]any)
	pruning.Prune(o, c.structural, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(o, c.structural)
	if err := objectmeta.Coerce(nil, o, c.structural, false, false); err != nil {
		return nil, err
	}
	defaulting.Default(o, c.structural)
	twice := listtype.ValidateListSetsAndMaps(nil, c.structural, o)
	w, err := c.whole()
	if err != nil {
		return nil, err
	}
	if found := w.check(c.structural, o, twice); finding.Refuses(found) {
		return nil, fmt.Errorf("%v", found)
	}
	kind, ok := kinds.Lookup(string(group) + "/" + fmt.Sprint(o["kind"]))
	if !ok {
		return nil, fmt.Errorf("no kind")
	}
	spec := kind.New()
	if o["spec"] == nil {
		return spec, nil
	}
	kept, err := json.Marshal(o["spec"])
	if err != nil {
		return nil, err
	}
	return spec, protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(kept, spec)
}

// whole64 has whole numbers as an API server reads them.
func whole64(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for k := range v {
			v[k] = whole64(v[k])
		}
	case []any:
		for i := range v {
			v[i] = whole64(v[i])
		}
	case float64:
		if i := int64(v); float64(i) == v {
			return i
		}
	}
	return value
}

// readHere is an object's spec as it is read here; nil where it is refused.
func readHere(set *Set, text []byte) (proto.Message, []kinds.Fault) {
	docs := kinds.Reader{Check: set.Check}.Read("a.yaml", text)
	if len(docs) != 1 || docs[0].Row == nil {
		return nil, docs[0].Faults
	}
	kind, _ := kinds.Lookup(docs[0].Table)
	spec := kind.New()
	if err := proto.Unmarshal(docs[0].Row.Payload, spec); err != nil {
		return nil, []kinds.Fault{{Message: err.Error()}}
	}
	return spec, docs[0].Faults
}
