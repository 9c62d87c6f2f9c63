package show

import (
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/admin"
)

// TestRefusal: what is said of a refused resource names the patches that made it what it is.
func TestRefusal(t *testing.T) {
	r := admin.Refusal{Type: "type.googleapis.com/envoy.config.route.v3.RouteConfiguration", Name: "a", Refusing: 1, Proxies: []string{"p"}}
	if text := Refusal(r); !strings.HasPrefix(text, "RouteConfiguration a (view 0) is refused") || strings.Contains(text, "patched") {
		t.Error(text)
	}
	r.Patches = []string{"upper", "lower"}
	if text := Refusal(r); !strings.Contains(text, "\n    patched by upper, lower, which may be at fault, or what it reads\n") {
		t.Error(text)
	}
}
