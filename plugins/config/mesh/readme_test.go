package mesh

import (
	"maps"
	"os"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/sdk/state"
	"google.golang.org/protobuf/proto"
	api "istio.io/api/mesh/v1alpha1"
)

func TestReadme(t *testing.T) {
	blocks, config := readme.Example(t, 5)
	t.Chdir(t.TempDir())
	texts := make(map[string]string)
	for _, b := range blocks {
		name := b.Name()
		texts[name] = b.Text
		if err := os.WriteFile(name, []byte(b.Text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h := plugintest.Start(t, Plugin(), config)
	h.WaitSynced()
	want := Defaults()
	want.TrustDomain, want.AccessLogFile, want.DefaultConfig.DrainDuration.Seconds = "corp.example", "/dev/stdout", 10
	m, err := kinds.Decode[*api.MeshConfig](h.Rows(state.Mesh)[state.Mesh])
	if err != nil || !proto.Equal(m, want) {
		t.Errorf("got %v, %v", m, err)
	}
	words, of := readme.Line(t, texts["log"])
	h.WaitLog(func(_ sdk.Level, text string, fields map[string]string) bool {
		return text == words && maps.Equal(fields, of)
	})
}
