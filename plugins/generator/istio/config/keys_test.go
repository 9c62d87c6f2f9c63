package config

import (
	"slices"
	"testing"
)

func TestKeys(t *testing.T) {
	for _, list := range [][]string{nil, {"shop/a"}, {"shop/b", "shop/a"}} {
		if got := slices.Collect(KeysOf(list).All()); !slices.Equal(got, list) {
			t.Errorf("%q: %q", list, got)
		}
	}
	if KeysOf([]string{"a/b", "a/c"}) == KeysOf([]string{"a/c", "a/b"}) || KeysOf(nil) != "" {
		t.Error("order counts, and none is the zero value")
	}
}
