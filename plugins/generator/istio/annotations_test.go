package istio

import (
	"bytes"
	"encoding/json"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	securityv1 "istio.io/api/security/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// TestAnnotationAlone: a policy that is no longer tried but meant, which an annotation says,
// reaches proxies, though nothing else of it changes.
func TestAnnotationAlone(t *testing.T) {
	w := newWorld(t)
	policy := func(tried string) *pb.TableRows {
		r := resource("default/none", &securityv1.AuthorizationPolicy{})
		if tried != "" {
			r.Annotations = map[string]string{"istio.io/dry-run": tried}
		}
		return rows(config.AuthorizationPolicies, r)
	}
	w.commit(append(web("10.9.9.9"), policy("true"))...)
	w.attach(1, proxy(sidecarID, nil, nil))
	onlyTried := func() bool {
		t.Helper()
		spaced, err := protojson.Marshal(w.listener(1, "virtualInbound"))
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := json.Compact(&text, spaced); err != nil {
			t.Fatal(err)
		}
		tried := bytes.Contains(text.Bytes(), []byte(`"shadowRules":{"policies":{"ns[default]-policy[none]-rule[0]"`))
		meant := bytes.Contains(text.Bytes(), []byte(`"rules":{"policies":{"ns[default]-policy[none]-rule[0]"`))
		if tried == meant {
			t.Fatalf("tried %v, meant %v", tried, meant)
		}
		return tried
	}
	for _, step := range []struct {
		tried string
		want  bool
	}{{"true", true}, {"false", false}, {"true", true}, {"", false}} {
		w.commit(policy(step.tried))
		if got := onlyTried(); got != step.want {
			t.Errorf("dry-run %q: only tried %v", step.tried, got)
		}
	}
}
