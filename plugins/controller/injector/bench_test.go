package injector

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/plugins/internal/protoyaml"
	"github.com/coxswain-mesh/coxswain/plugins/internal/shared"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// BenchmarkReview is what a review of a pod costs the plugin, of pods of Istio's own examples in
// turn: with the built-in templates, and with those of a ConfigMap, if the environment names files
// with what it has (INJECT_CONFIG and INJECT_VALUES).
func BenchmarkReview(b *testing.B) {
	bodies := reviews(b)
	for name, file := range map[string]string{"built-in": "", "text": os.Getenv("INJECT_CONFIG")} {
		if name == "text" && file == "" {
			continue
		}
		b.Run(name, func(b *testing.B) {
			config := defaults()
			config.From, config.NativeSidecars, config.ConfigFile, config.ValuesFile = fromFiles, "true", file, ""
			if name == "text" {
				config.ValuesFile = os.Getenv("INJECT_VALUES")
			}
			c, err := New(config)
			if err != nil {
				b.Fatal(err)
			}
			s, err := c.files()
			if err != nil {
				b.Fatal(err)
			}
			c.read(&state.State{})
			var n atomic.Int64
			b.ReportAllocs()
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					if _, err := c.review(s, sdk.Call{Method: method, Request: bodies[int(n.Add(1))%len(bodies)]}); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}

// reviews are of the pods of Istio's examples of Deployments, each of which has a name of its own.
func reviews(b *testing.B) (all [][]byte) {
	files, err := filepath.Glob(filepath.Join(shared.Dir(b, "fixtures/inject"), "*.yaml"))
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			b.Fatal(err)
		}
		for _, chunk := range protoyaml.Split(text) {
			var o struct {
				Kind     string
				Metadata struct{ Namespace string }
				Spec     struct{ Template map[string]any }
			}
			if yaml.Unmarshal(chunk.Text, &o) != nil || o.Kind != "Deployment" {
				continue
			}
			pod, err := json.Marshal(o.Spec.Template)
			if err != nil {
				b.Fatal(err)
			}
			all = append(all, review(cmp.Or(o.Metadata.Namespace, "shop"), string(pod)))
		}
	}
	if len(all) < 50 {
		b.Fatalf("there are %d pods", len(all))
	}
	return all
}
