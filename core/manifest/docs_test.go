package manifest

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/manifest/internal/strict"
)

// Every example of docs/plugins.md is a set, and every key is named there.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/plugins.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1)
	if len(examples) == 0 {
		t.Error("no examples")
	}
	for _, example := range examples {
		if _, err := Parse("example", example[1]); err != nil {
			t.Errorf("%v\n%s", err, example[1])
		}
	}
	for _, key := range allKeys(reflect.TypeFor[Set]()) {
		named := regexp.MustCompile("`([a-z]+\\.)?" + key + "`")
		if key != "plugins" && !named.Match(text) {
			t.Errorf("`%s` is not explained", key)
		}
		if !strings.Contains(string(text), key+":") {
			t.Errorf("no example has %s", key)
		}
	}
}

func allKeys(t reflect.Type) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	var keys []string
	for _, f := range strict.Fields(t) {
		keys = append(append(keys, f.Key), allKeys(f.Type)...)
	}
	return keys
}
