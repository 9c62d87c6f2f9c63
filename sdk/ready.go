package sdk

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// construct agrees on the contract's version and makes the plugin.
func (t *talk) construct() (k kind, err error) {
	if !slices.Contains(t.hello.Versions, session.Version) {
		return nil, fmt.Errorf("the core speaks versions %v of the contract, this plugin speaks version %d: build it with an SDK of the core's version",
			t.hello.Versions, session.Version)
	}
	if err := t.plugin.check(); err != nil {
		return nil, err
	}
	err = caught(t.plugin.Name, func() error {
		k, err = t.plugin.make(t)
		return err
	})
	return k, err
}

// check finds mistakes in the declaration.
func (p *Plugin) check() error {
	n := 0
	for _, set := range []bool{
		p.Registry != nil, p.ConfigSource != nil, p.Deriver != nil, p.Generator != nil,
		p.Engine != nil, p.Patch != nil, p.Authenticator != nil, p.Controller != nil,
	} {
		if set {
			n++
		}
	}
	switch {
	case p.Name == "":
		return errors.New("the plugin has no name: set Plugin.Name")
	case n != 1:
		return fmt.Errorf("plugin %s has %d constructors: set exactly one of Plugin's Registry, ConfigSource, …", p.Name, n)
	}
	return nil
}

// make calls the constructor.
func (p *Plugin) make(t *talk) (kind, error) {
	c := t.hello.Config
	switch {
	case p.Registry != nil:
		return build(p.Registry, c, func(r Registry) kind { return newSource(t, pb.KindRegistry, r.Run) })
	case p.ConfigSource != nil:
		return build(p.ConfigSource, c, func(s ConfigSource) kind { return newSource(t, pb.KindConfig, s.Run) })
	case p.Controller != nil:
		return build(p.Controller, c, func(r Controller) kind { return newSource(t, pb.KindController, r.Run) })
	case p.Deriver != nil:
		return build(p.Deriver, c, func(d Deriver) kind { return newDerivation(t, d) })
	case p.Generator != nil:
		return build(p.Generator, c, func(g Generator) kind { return newGeneration(t, newGeneratorEngine(g), g) })
	case p.Engine != nil:
		return build(p.Engine, c, func(e Engine) kind { return newGeneration(t, e, e) })
	case p.Patch != nil:
		return build(p.Patch, c, func(x Patch) kind { return newPatching(t, x) })
	}
	return build(p.Authenticator, c, func(a Authenticator) kind { return newAuthentication(t, a) })
}

func build[T any](constructor func([]byte) (T, error), config []byte, use func(T) kind) (kind, error) {
	if len(config) == 0 {
		config = nil
	}
	made, err := constructor(config)
	if err != nil {
		return nil, err
	}
	return use(made), nil
}

func (t *talk) ready(k kind) *pb.Ready {
	p := t.plugin
	r := &pb.Ready{
		Version: session.Version, Plugin: p.Name, PluginVersion: p.Version, Kind: k.proto(),
		Publishes: p.Publishes, ConfigSchema: p.ConfigSchema, Derives: p.Deriver != nil,
		Names: p.Names, Facts: p.Facts, Json: p.JSON,
	}
	for _, name := range p.Reads {
		table, sources := strings.CutSuffix(name, "@sources")
		r.Reads = append(r.Reads, &pb.Read{Table: table, Sources: sources})
	}
	if x, ok := k.(interface{ offers() []Type }); ok {
		p.Types = append(slices.Clone(p.Types), x.offers()...)
	}
	for _, typ := range p.Types {
		r.Types = append(r.Types, &typ)
	}
	if x, ok := k.(interface{ reports() bool }); ok {
		r.Reports = x.reports()
	}
	return r
}

// deriverKind is what a deriver counts as: a registry if it publishes what registries do.
func deriverKind(publishes []string) pb.Kind {
	for _, table := range publishes {
		switch table {
		case state.Services, state.Endpoints, state.Workloads:
			return pb.KindRegistry
		}
	}
	return pb.KindConfig
}

// kindName returns the kind as plugins.yaml names it.
func (p *Plugin) kindName() string {
	switch {
	case p.Registry != nil:
		return "registry"
	case p.ConfigSource != nil:
		return "config"
	case p.Generator != nil, p.Engine != nil:
		return "generator"
	case p.Patch != nil:
		return "patch"
	case p.Authenticator != nil:
		return "authenticator"
	case p.Deriver != nil && deriverKind(p.Publishes) == pb.KindRegistry:
		return "registry"
	case p.Deriver != nil:
		return "config"
	}
	return "controller"
}
