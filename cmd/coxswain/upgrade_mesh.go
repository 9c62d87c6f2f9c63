package main

import (
	"fmt"
	"os"

	"github.com/coxswain-mesh/coxswain/cmd/internal/migrate"
	"github.com/coxswain-mesh/coxswain/core/manifest"
	configmesh "github.com/coxswain-mesh/coxswain/plugins/config/mesh"
	"github.com/coxswain-mesh/coxswain/plugins/controller/injector"
	"github.com/coxswain-mesh/coxswain/plugins/shared/render"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"github.com/coxswain-mesh/coxswain/plugins/validation/rules"
)

// ofInjector is what an upgrade check says something of, beside kinds of settings of the mesh.
const ofInjector = "injector"

// read judges what plugins of a set read when they start: the mesh's settings, and templates of
// the injector. in has the ConfigMaps that were read; nil: no cluster is read.
func (r *upgradeReport) read(set *manifest.Set, in *migrate.Input) {
	for _, e := range set.Builtins("config/mesh") {
		places, err := configmesh.Places(e.Config)
		if e.Disabled || err != nil { // it was said with the plugins
			continue
		}
		for _, p := range places {
			r.mesh(p, in)
		}
	}
	for _, e := range set.Builtins("controller/injector") {
		if place, err := injector.Place(e.Config); !e.Disabled && err == nil {
			r.templates(place, in)
		}
	}
}

// mesh judges a text with settings of the mesh.
func (r *upgradeReport) mesh(p configmesh.Named, in *migrate.Input) {
	name, text := p.File, []byte(nil)
	if p.File != "" {
		var err error
		if text, err = configmesh.File(p.File); err != nil {
			r.add(isRefused, p.Kind, fmt.Sprintf("%s: %v", p.File, err))
			return
		}
		if text == nil {
			r.add(isUnread, p.Kind, p.File+" is not there; without it the defaults count")
			return
		}
	} else {
		data, ok := r.configMap(p.Kind, p.Namespace, p.ConfigMap, in)
		if !ok {
			return
		}
		name, text = fmt.Sprintf("ConfigMap %s, %s", p.ConfigMap, p.Key), []byte(data[p.Key])
	}
	_, faults := configmesh.Read(p.Kind, name, text, rules.Check)
	for _, f := range faults {
		means := isPassed
		if f.Severity == finding.Error {
			means = isRefused
		}
		r.add(means, p.Kind, fmt.Sprintf("%s:%d:%d: %s", name, f.Line, f.Column, f.Text()))
	}
	if len(faults) == 0 {
		r.add(isFine, p.Kind, name+" is taken")
	}
}

// templates judges templates and values of the injector.
func (r *upgradeReport) templates(p injector.Named, in *migrate.Input) {
	var config, values, name string
	if p.ConfigMap != "" {
		data, ok := r.configMap(ofInjector, p.Namespace, p.ConfigMap, in)
		if !ok {
			return
		}
		name, config, values = "ConfigMap "+p.ConfigMap, data["config"], data["values"]
	} else {
		name = "the built-in templates"
		for _, file := range []struct {
			path string
			into *string
		}{{p.ConfigFile, &config}, {p.ValuesFile, &values}} {
			if file.path == "" {
				continue
			}
			text, err := injector.File(file.path)
			switch {
			case os.IsNotExist(err):
				r.add(isUnread, ofInjector, file.path+" is not there")
				return
			case err != nil:
				r.refuse(ofInjector, err)
				return
			}
			name, *file.into = file.path, text
		}
	}
	if _, err := render.Read(config, values, p.Names); err != nil {
		r.refuse(ofInjector, fmt.Errorf("%s: %w", name, err))
		return
	}
	r.add(isFine, ofInjector, name+" is taken")
}

// configMap returns what a ConfigMap of the cluster has; false: it was not read, which is said.
func (r *upgradeReport) configMap(of, namespace, name string, in *migrate.Input) (data map[string]string, ok bool) {
	if in == nil {
		r.add(isUnread, of, fmt.Sprintf("ConfigMap %s of namespace %s: --live reads it, or --filename with it in a file", name, namespace))
		return nil, false
	}
	c := in.ConfigMap(namespace, name)
	if c == nil {
		r.add(isUnread, of, fmt.Sprintf("ConfigMap %s of namespace %s is not among what was read; where there is none, the defaults count", name, namespace))
		return nil, false
	}
	return c.Data, true
}
