package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/coxswain-mesh/coxswain/cmd/internal/settings"
	"github.com/coxswain-mesh/coxswain/core/host"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	"github.com/coxswain-mesh/coxswain/plugins/validation/report"
	"github.com/coxswain-mesh/coxswain/sdk"
	"go.yaml.in/yaml/v3"
)

var listsPlugins = regexp.MustCompile(`(?m)^["']?plugins["']?\s*:|^\s*\{`)

// isSet reports whether a file is a plugins.yaml: it has a list of plugins and is no Kubernetes
// object.
func isSet(text []byte) bool {
	if !listsPlugins.Match(text) {
		return false
	}
	var top struct {
		Plugins    yaml.Node `yaml:"plugins"`
		APIVersion string    `yaml:"apiVersion"`
	}
	_ = yaml.Unmarshal(text, &top) // what could be read is there even so
	return top.Plugins.Kind == yaml.SequenceNode && top.APIVersion == ""
}

// validateSet returns what is wrong with a plugins.yaml, and how many plugins it has. configDir is
// that of discovery's flag, which may be given later: a directory that it gives is not missed.
func validateSet(p *program, name string, text []byte, configDir string) (found []report.Fault, plugins int, err error) {
	set, err := set(settings.Inputs{ConfigDir: configDir}, name, text)
	mistakes := manifest.Mistakes(err)
	if err != nil && mistakes == nil {
		return nil, 0, err
	}
	if err == nil {
		plugins = len(set.Plugins)
		if configDir == "" {
			if err := complete(set); err != nil {
				return nil, 0, err
			}
		}
		builtins := known()
		for name, b := range builtins {
			b.Check = elsewhere(b.Check)
			builtins[name] = b
		}
		mistakes = host.Validate(set, host.Validation{Builtins: builtins, Environ: p.environ, Hint: settings.Hint})
	}
	for _, m := range mistakes {
		found = append(found, report.At(m.File, m.Line, m.Column, m.Text))
	}
	return found, plugins, nil
}

// complete gives each config/file without a directory one: discovery's --configDir does.
func complete(set *manifest.Set) error {
	for _, e := range set.Plugins {
		var config struct{ Dir any }
		if e.Builtin != "config/file" || len(e.Config) > 0 && json.Unmarshal(e.Config, &config) != nil || config.Dir != nil {
			continue
		}
		if err := e.SetConfig(map[string]any{"dir": "."}); err != nil {
			return err
		}
	}
	return nil
}

// known returns what is known of the built-in plugins.
func known() map[string]host.Builtin {
	all := map[string]host.Builtin{}
	for name, p := range builtins() {
		all[name] = host.Builtin{Schema: sdk.ConfigSchema(p), Check: func(config []byte) error { return refusal(p, config) }}
	}
	return all
}

// elsewhere is Check for a set that is to run somewhere else: that no cluster is known here,
// neither by a kubeconfig nor by a pod's account, is no mistake of it.
func elsewhere(check func([]byte) error) func([]byte) error {
	return func(config []byte) error {
		var named struct{ Kubeconfig string }
		err := check(config)
		var refused *host.RefusedError
		if errors.As(err, &refused) && refused.Field == "kubeconfig" && (len(config) == 0 || json.Unmarshal(config, &named) == nil && named.Kubeconfig == "") {
			return nil
		}
		return err
	}
}

// refusal is a plugin's word on a config, as the core has it.
func refusal(p sdk.Declaration, config []byte) error {
	err := sdk.Check(p, config)
	var field *sdk.FieldError
	if errors.As(err, &field) {
		return &host.RefusedError{Field: field.Field, Reason: fmt.Sprint(field.Err)}
	}
	return err
}
