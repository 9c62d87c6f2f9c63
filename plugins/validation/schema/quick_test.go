package schema

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/shared"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
)

// objects are those of testdata/objects-N.yaml.
func objects(t *testing.T, n int) []byte {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("testdata/objects-%d.yaml", n))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// resources reads them, whether they are right or not.
func resources(texts ...[]byte) (all []finding.Resource) {
	reader := kinds.Reader{Gateways: true, Check: func(r finding.Resource) []finding.Finding {
		all = append(all, r)
		return nil
	}}
	for _, text := range texts {
		reader.Read("a.yaml", text)
	}
	return all
}

func recorded(t *testing.T) (texts [][]byte) {
	for _, place := range [][]string{{"fixtures/crd-validation", "*.yaml"}, {"parity/cases", "*/config/*.yaml"}} {
		files, err := filepath.Glob(filepath.Join(shared.Dir(t, place[0]), place[1]))
		if err != nil || len(files) == 0 {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, text)
		}
	}
	return texts
}

// What is accepted quickly has nothing wrong for the API server's own code, whatever random edits
// make of it. And that is most of what is right.
func TestQuickIsSure(t *testing.T) {
	t.Run("own", func(t *testing.T) { sure(t, resources(objects(t, 1)), 1200) })
	t.Run("recorded", func(t *testing.T) { sure(t, resources(recorded(t)...), 20) })
}

func sure(t *testing.T, all []finding.Resource, edits int) {
	set, rnd := New(), rand.New(rand.NewPCG(1, 2))
	right, quickly, edited := 0, 0, 0
	for _, r := range all {
		c, err := set.compiled(name{r.Group, r.Kind, r.Version})
		if err != nil {
			t.Fatal(err)
		}
		if c == nil {
			continue
		}
		if c.quick == nil {
			t.Errorf("%s: nothing is accepted quickly", r.Kind)
			continue
		}
		o := object(r)
		if ok, quick := both(t, c, runtime.DeepCopyJSON(o)); ok {
			right++
			if quick {
				quickly++
			}
		}
		for range edits {
			copied := runtime.DeepCopyJSON(o)
			for range 1 + rnd.IntN(3) {
				edit(rnd, copied["spec"])
			}
			if ok, quick := both(t, c, copied); ok && quick {
				edited++
			}
		}
	}
	t.Logf("of %d that are right %d were accepted quickly, and %d that were edited", right, quickly, edited)
	if quickly < right*9/10 || edited == 0 {
		t.Errorf("of %d that are right %d were accepted quickly, and %d that were edited", right, quickly, edited)
	}
}

// both asks both.
func both(t *testing.T, c *compiled, o map[string]any) (right, quick bool) {
	t.Helper()
	whole := runtime.DeepCopyJSON(o)
	surely := c.surely(whole)
	pruning.Prune(o, c.structural, true)
	led := runtime.DeepCopyJSON(o)
	defaulting.Default(o, c.structural)
	defaulting.Default(led, c.defaults)
	if !reflect.DeepEqual(o, led) {
		t.Errorf("defaults by what leads to them: %v, not %v", led, o)
	}
	twice, some := listtype.ValidateListSetsAndMaps(nil, c.structural, o), listtype.ValidateListSetsAndMaps(nil, c.lists, o)
	if len(twice) != len(some) {
		t.Errorf("lists by what leads to them: %v, not %v", some, twice)
	}
	w, err := c.whole()
	if err != nil {
		t.Fatal(err)
	}
	quick = c.quick.accepts(o)
	found := w.check(c.structural, o, nil)
	if quick && len(found) > 0 {
		t.Errorf("accepted, but %v: %v", found, o)
	}
	if surely && (!reflect.DeepEqual(whole, o) || len(twice) > 0 || len(found) > 0) {
		t.Errorf("there is nothing to say about %v, but %v %v, and left is %v", whole, twice, found, o)
	}
	return len(found) == 0, quick
}

// others are values that may take a value's place.
var others = []any{
	"", "a", "/", "*", "a b", "unix://", "unix:///a/", "unix://@a", "1s", "-1s", "1ms", "0", "https://a.example/b",
	"a.example", "10.0.0.1", string(make([]byte, 3000)),
	int64(0), int64(-1), int64(1), int64(70000), int64(1) << 40, 0.5, -0.5, true, false, nil, map[string]any{},
	[]any{}, []any{"a", "a"}, map[string]any{"a": "b", "": "c"},
}

func other(rnd *rand.Rand) any { return runtime.DeepCopyJSONValue(others[rnd.IntN(len(others))]) }

// edit changes something somewhere below a value.
func edit(rnd *rand.Rand, v any) {
	switch v := v.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(v))
		if len(keys) == 0 {
			v[fmt.Sprint("k", rnd.IntN(3))] = other(rnd)
			return
		}
		k := keys[rnd.IntN(len(keys))]
		switch _, below := v[k].(map[string]any); rnd.IntN(6) {
		case 0:
			delete(v, k)
		case 1:
			v[k] = other(rnd)
		case 2:
			v["extra"] = runtime.DeepCopyJSONValue(v[k])
		default:
			if _, list := v[k].([]any); below || list {
				edit(rnd, v[k])
				return
			}
			v[k] = other(rnd)
		}
	case []any:
		if len(v) == 0 {
			return
		}
		i := rnd.IntN(len(v))
		switch rnd.IntN(4) {
		case 0:
			v[i] = other(rnd)
		case 1:
			v[i] = runtime.DeepCopyJSONValue(v[rnd.IntN(len(v))])
		default:
			edit(rnd, v[i])
		}
	}
}
