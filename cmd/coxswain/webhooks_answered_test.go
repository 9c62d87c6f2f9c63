package main

import (
	"testing"

	"github.com/coxswain-mesh/coxswain/core/manifest"
)

func TestAnswersWebhooks(t *testing.T) {
	for text, want := range map[string]bool{
		"{name: a, kind: config, builtin: config/file, config: {dir: .}}":           false,
		"{name: a, kind: controller, builtin: controller/status}":                   false,
		"{name: a, kind: controller, builtin: controller/injector}":                 true,
		"{name: a, kind: controller, builtin: controller/validator}":                true,
		"{name: a, kind: controller, process: {command: /bin/own}}":                 true,
		"{name: a, kind: controller, builtin: controller/injector, disabled: true}": false,
	} {
		set, err := manifest.Parse("plugins.yaml", []byte("plugins: ["+text+"]"))
		if err != nil {
			t.Fatal(err)
		}
		if got := answersWebhooks(set); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}
