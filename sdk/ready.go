package sdk

import (
	"errors"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/sdk/internal/text"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/session"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// construct agrees on the contract's version and makes the plugin.
func (ps *pluginSession) construct() (k kind, err error) {
	if !slices.Contains(ps.hello.Versions, session.Version) {
		return nil, text.Error("the core speaks versions ", versions(ps.hello.Versions), " of the contract, this plugin speaks version ", session.Version,
			": build it with an SDK of the core's version")
	}
	if err := ps.plugin.check(); err != nil {
		return nil, err
	}
	err = caught(ps.plugin.Name, func() error {
		k, err = ps.plugin.make(ps)
		return err
	})
	return k, err
}

// config is the entry's, nil where it has none.
func (ps *pluginSession) config() []byte {
	if len(ps.hello.Config) == 0 {
		return nil
	}
	return ps.hello.Config
}

func versions(list []uint32) string {
	all := make([]string, len(list))
	for i, v := range list {
		all[i] = text.Of(v)
	}
	return "[" + strings.Join(all, " ") + "]"
}

// check finds mistakes in the declaration.
func (p *plugin) check() error {
	switch {
	case p.Name == "":
		return errors.New("the plugin has no name: set Name of its declaration")
	case p.schema == nil:
		return text.Error("plugin ", p.Name, " can't be made: set New of its declaration to what sdk.WithConfig or one of its siblings returns")
	}
	return nil
}

func (ps *pluginSession) ready(k kind) *pb.Ready {
	p, types := ps.plugin, ps.plugin.Types
	r := &pb.Ready{
		Version: session.Version, Plugin: p.Name, PluginVersion: p.Version, Kind: k.proto(),
		Publishes: p.Publishes, Secrets: p.Secrets, ConfigSchema: p.schema(), Derives: p.Derives,
		Names: p.Names, Facts: p.Facts, Json: p.JSON,
	}
	if p.Headers != nil {
		r.Headers = &pb.HeaderNames{Names: p.Headers}
	}
	reads := p.Reads
	if x, ok := k.(interface{ reads() []string }); ok {
		reads = append(slices.Clone(reads), x.reads()...)
	}
	for _, name := range reads {
		table, sources := strings.CutSuffix(name, "@sources")
		r.Reads = append(r.Reads, &pb.Read{Table: table, Sources: sources})
	}
	if x, ok := k.(interface{ offers() []Type }); ok {
		types = append(slices.Clone(types), x.offers()...)
	}
	for _, typ := range types {
		r.Types = append(r.Types, &typ)
	}
	if x, ok := k.(interface{ writes() []string }); ok {
		r.Writes = x.writes()
	}
	if x, ok := k.(interface{ methods() []string }); ok {
		r.Methods = x.methods()
	}
	if x, ok := k.(interface{ reports() bool }); ok {
		r.Reports = x.reports()
	}
	if x, ok := k.(interface{ hears(*pb.Ready) }); ok {
		x.hears(r)
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
