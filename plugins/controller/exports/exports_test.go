package exports

import (
	"errors"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/sdk"
)

func TestConfig(t *testing.T) {
	if c, err := parse([]byte(`{"remote": "file:a.yaml", "directory": "/d"}`)); err != nil || c.Group != "multicluster.x-k8s.io" {
		t.Errorf("%+v, %v", c, err)
	}
	for config, field := range map[string]string{
		`{"domain": ""}`: "domain", `{"group": ""}`: "group", `{"version": ""}`: "version", `{"remote": "a/b"}`: "remote", `{"remote": "file:a"}`: "directory",
		`{"remote": "file:../a", "directory": "/d"}`: "remote", `{"qps": 0}`: "qps", `{"more": 1}`: "more",
	} {
		_, err := parse([]byte(config))
		var at *sdk.FieldError
		if !errors.As(err, &at) || at.Field != field {
			t.Errorf("%s: %v", config, err)
		}
	}
}

// TestReadme: the README's example is one.
func TestReadme(t *testing.T) {
	blocks, _ := readme.Example(t, 1)
	if strings.Count(blocks[0].Text, "builtin: controller/exports") != 2 {
		t.Error(blocks)
	}
}
