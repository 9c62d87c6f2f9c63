package host

import (
	"errors"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	"strings"
	"testing"
)

// TestValidateForEach: of a config with fields of rows it is told what is wrong with the rest.
func TestValidateForEach(t *testing.T) {
	for name, tt := range map[string]struct{ config, refuses, want string }{
		"what a row has":   {"{id: {row: id}}", "id", ""},
		"what is around":   {"{in: {id: {row: id}}}", "in", ""},
		"something else":   {"{id: {row: id}, other: 1}", "other", "config.other: no"},
		"no field of rows": {"{other: 1}", "other", "config.other: no"},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := manifest.Parse("p.yaml",
				[]byte("plugins: [{name: a, kind: registry, builtin: registry/a, forEach: {table: t}, config: "+tt.config+"}]"))
			if err != nil {
				t.Fatal(err)
			}
			check := func([]byte) error { return &RefusedError{Field: tt.refuses, Reason: "no"} }
			found := Validate(set, Validation{Builtins: map[string]Builtin{"registry/a": {Check: check}}})
			var all error
			for _, m := range found {
				all = errors.Join(all, m)
			}
			if tt.want == "" && all != nil || tt.want != "" && (all == nil || !strings.Contains(all.Error(), tt.want)) {
				t.Error(all)
			}
		})
	}
}
