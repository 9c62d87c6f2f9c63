package sdk

import pb "github.com/coxswain-mesh/coxswain/sdk/proto"

// Declaration says what a plugin is: one of this package's types with a name that ends in Plugin.
type Declaration interface {
	declare() *Plugin
}

// RegistryPlugin declares a registry.
type RegistryPlugin struct {
	// Name and Version are shown to operators; Version changes when results may change.
	Name, Version string
	// Reads names tables that the plugin wants in its State. `services@sources` leaves derived rows out.
	Reads []string
	// Publishes names tables that it writes, such as services, endpoints and workloads.
	Publishes []string
	// New makes it.
	New Constructor[Registry]
}

// ConfigSourcePlugin declares a config source.
type ConfigSourcePlugin struct {
	// Name and Version are shown to operators; Version changes when results may change.
	Name, Version string
	// Reads names tables that the plugin wants in its State. `services@sources` leaves derived rows out.
	Reads []string
	// Publishes names tables that it writes, such as networking.istio.io/VirtualService.
	Publishes []string
	// New makes it. What it returns may be a Store as well.
	New Constructor[ConfigSource]
}

// ControllerPlugin declares a controller.
type ControllerPlugin struct {
	// Name and Version are shown to operators; Version changes when results may change.
	Name, Version string
	// Reads names tables that the plugin wants in its State. `services@sources` leaves derived rows out.
	Reads []string
	// Publishes names tables that it writes.
	Publishes []string
	// New makes it. What it returns may be a CallHandler as well.
	New Constructor[Controller]
}

// DeriverPlugin declares a deriver: a registry if it publishes services, endpoints or workloads, a
// config source otherwise.
type DeriverPlugin struct {
	// Name and Version are shown to operators; Version changes when results may change.
	Name, Version string
	// Reads names tables that its rows are made from. `services@sources` leaves derived rows out.
	Reads []string
	// Publishes names tables that it writes.
	Publishes []string
	// New makes it.
	New Constructor[Deriver]
}

// GeneratorPlugin declares a generator of the simple form.
type GeneratorPlugin struct {
	// Name and Version are shown to operators; Version changes when results may change.
	Name, Version string
	// Reads names tables that resources are made from. `services@sources` leaves derived rows out.
	Reads []string
	// Types are those that it offers; an Offerer may offer more.
	Types []Type
	// Publishes names tables of a generator that is a Source as well.
	Publishes []string
	// New makes it. What it returns may be an Explainer, Answerer, Reporter, Source or Offerer as well.
	New Constructor[Generator]
}

// EnginePlugin declares a generator of the full form.
type EnginePlugin struct {
	// Name and Version are shown to operators; Version changes when results may change.
	Name, Version string
	// Reads names tables that resources are made from. `services@sources` leaves derived rows out.
	Reads []string
	// Types are those that it offers; an Offerer may offer more.
	Types []Type
	// Publishes names tables of an engine that is a Source as well.
	Publishes []string
	// New makes it. What it returns may be an Explainer, Answerer, Reporter, Rester, Source or Offerer as well.
	New Constructor[Engine]
}

// PatchPlugin declares a patch.
type PatchPlugin struct {
	// Name and Version are shown to operators; Version changes when results may change.
	Name, Version string
	// Reads names tables that the patch wants in its State. `services@sources` leaves derived rows out.
	Reads []string
	// Types are those of the resources that it changes.
	Types []Type
	// Names are the resources that it wants to see, as globs with *; none means all.
	Names []string
	// Facts are those facts of views (Output.View) that it wants to know.
	Facts []string
	// JSON: it gets and returns resources as JSON (protobuf's mapping) instead of binary.
	JSON bool
	// New makes it.
	New Constructor[Patch]
}

// AuthenticatorPlugin declares an authenticator.
type AuthenticatorPlugin struct {
	// Name and Version are shown to operators; Version changes when results may change.
	Name, Version string
	// Reads names tables that it wants to see, if it is a Source as well: its Publisher's State has them.
	Reads []string
	// New makes it. What it returns may be a Source as well.
	New Constructor[Authenticator]
}

func (p RegistryPlugin) declare() *Plugin {
	return &Plugin{Name: p.Name, Version: p.Version, Reads: p.Reads, Publishes: p.Publishes, Kind: Kind{
		name: "registry", schema: p.New.schema, make: func(t *talk) (kind, error) {
			made, err := p.New.construct(t)
			if err != nil {
				return nil, err
			}
			return newSource(t, pb.KindRegistry, made.Run), nil
		},
	}}
}

func (p ConfigSourcePlugin) declare() *Plugin {
	return &Plugin{Name: p.Name, Version: p.Version, Reads: p.Reads, Publishes: p.Publishes, Kind: Kind{
		name: "config", schema: p.New.schema, make: func(t *talk) (kind, error) {
			made, err := p.New.construct(t)
			if err != nil {
				return nil, err
			}
			return newConfigSource(t, made), nil
		},
	}}
}

func (p ControllerPlugin) declare() *Plugin {
	return &Plugin{Name: p.Name, Version: p.Version, Reads: p.Reads, Publishes: p.Publishes, Kind: Kind{
		name: "controller", schema: p.New.schema, make: func(t *talk) (kind, error) {
			made, err := p.New.construct(t)
			if err != nil {
				return nil, err
			}
			return newController(t, made), nil
		},
	}}
}

func (p DeriverPlugin) declare() *Plugin {
	return &Plugin{Name: p.Name, Version: p.Version, Reads: p.Reads, Publishes: p.Publishes, Kind: Kind{
		deriver: true, schema: p.New.schema, make: func(t *talk) (kind, error) {
			made, err := p.New.construct(t)
			if err != nil {
				return nil, err
			}
			return newDerivation(t, made), nil
		},
	}}
}

func (p GeneratorPlugin) declare() *Plugin {
	return &Plugin{Name: p.Name, Version: p.Version, Reads: p.Reads, Types: p.Types, Publishes: p.Publishes, Kind: Kind{
		name: "generator", schema: p.New.schema, make: func(t *talk) (kind, error) {
			made, err := p.New.construct(t)
			if err != nil {
				return nil, err
			}
			return newGeneration(t, newGeneratorEngine(made), made), nil
		},
	}}
}

func (p EnginePlugin) declare() *Plugin {
	return &Plugin{Name: p.Name, Version: p.Version, Reads: p.Reads, Types: p.Types, Publishes: p.Publishes, Kind: Kind{
		name: "generator", schema: p.New.schema, make: func(t *talk) (kind, error) {
			made, err := p.New.construct(t)
			if err != nil {
				return nil, err
			}
			return newGeneration(t, made, made), nil
		},
	}}
}

func (p PatchPlugin) declare() *Plugin {
	return &Plugin{
		Name: p.Name, Version: p.Version, Reads: p.Reads, Types: p.Types, Names: p.Names, Facts: p.Facts, JSON: p.JSON,
		Kind: Kind{name: "patch", schema: p.New.schema, make: func(t *talk) (kind, error) {
			made, err := p.New.construct(t)
			if err != nil {
				return nil, err
			}
			return newPatching(t, made), nil
		}},
	}
}

func (p AuthenticatorPlugin) declare() *Plugin {
	return &Plugin{Name: p.Name, Version: p.Version, Reads: p.Reads, Kind: Kind{
		name: "authenticator", schema: p.New.schema, make: func(t *talk) (kind, error) {
			made, err := p.New.construct(t)
			if err != nil {
				return nil, err
			}
			return newAuthentication(t, made), nil
		},
	}}
}

func (p Plugin) declare() *Plugin { return &p }
