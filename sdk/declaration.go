package sdk

import pb "github.com/coxswain-mesh/coxswain/sdk/proto"

// Declaration says what a plugin is: one of this package's types with a name that ends in Plugin.
type Declaration interface {
	declare() *plugin
}

// RegistryPlugin declares a registry.
type RegistryPlugin struct {
	// Name and Version are shown to operators; Version changes when results may change.
	Name, Version string
	// Reads names tables that the plugin wants in its State. `services@sources` leaves derived rows
	// out.
	Reads []string
	// Publishes names tables that it writes, such as services, endpoints and workloads.
	Publishes []string
	// Secrets are those of these tables whose rows are secrets: what is in them is shown and
	// recorded nowhere.
	Secrets []string
	// New makes it.
	New Constructor[Registry]
}

// ConfigSourcePlugin declares a config source.
type ConfigSourcePlugin struct {
	// Name and Version are shown to operators; Version changes when results may change.
	Name, Version string
	// Reads names tables that the plugin wants in its State. `services@sources` leaves derived rows
	// out.
	Reads []string
	// Publishes names tables that it writes, such as networking.istio.io/VirtualService.
	Publishes []string
	// Secrets are those of these tables whose rows are secrets: what is in them is shown and
	// recorded nowhere.
	Secrets []string
	// New makes it. What it returns may be a Store as well.
	New Constructor[ConfigSource]
}

// ControllerPlugin declares a controller.
type ControllerPlugin struct {
	// Name and Version are shown to operators; Version changes when results may change.
	Name, Version string
	// Reads names tables that the plugin wants in its State. `services@sources` leaves derived rows
	// out.
	Reads []string
	// Publishes names tables that it writes.
	Publishes []string
	// Secrets are those of these tables whose rows are secrets: what is in them is shown and
	// recorded nowhere.
	Secrets []string
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
	// Secrets are those of these tables whose rows are secrets: what is in them is shown and
	// recorded nowhere.
	Secrets []string
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
	// Secrets are those of these tables whose rows are secrets: what is in them is shown and
	// recorded nowhere.
	Secrets []string
	// New makes it. What it returns may be an Explainer, Answerer, Reporter, Source or Offerer as
	// well.
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
	// Secrets are those of these tables whose rows are secrets: what is in them is shown and
	// recorded nowhere.
	Secrets []string
	// New makes it. What it returns may be an Explainer, Answerer, Reporter, Rester, Source or
	// Offerer as well.
	New Constructor[Engine]
}

// PatchPlugin declares a patch.
type PatchPlugin struct {
	// Name and Version are shown to operators; Version changes when results may change.
	Name, Version string
	// Reads names tables that the patch wants in its State. `services@sources` leaves derived rows
	// out.
	Reads []string
	// Secrets are those of these tables whose rows are secrets: what is in them is shown and
	// recorded nowhere.
	Secrets []string
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
	// Reads names tables that it wants to see, if it is a Source as well: its Publisher's State has
	// them.
	Reads []string
	// Secrets are those of these tables whose rows are secrets: what is in them is shown and
	// recorded nowhere.
	Secrets []string
	// Headers are those of authorization, clusterid and x-forwarded-client-cert that it is shown of
	// callers; nil: all three.
	Headers []string
	// New makes it. What it returns may be a Source as well.
	New Constructor[Authenticator]
}

func (p RegistryPlugin) declare() *plugin {
	return &plugin{Name: p.Name, Version: p.Version, Reads: p.Reads, Publishes: p.Publishes, Secrets: p.Secrets,
		maker: p.New.maker("registry", func(ps *pluginSession, r Registry) kind { return newRegistry(ps, r) })}
}

func (p ConfigSourcePlugin) declare() *plugin {
	return &plugin{Name: p.Name, Version: p.Version, Reads: p.Reads, Publishes: p.Publishes, Secrets: p.Secrets,
		maker: p.New.maker("config", func(ps *pluginSession, c ConfigSource) kind { return newConfigSource(ps, c) })}
}

func (p ControllerPlugin) declare() *plugin {
	return &plugin{Name: p.Name, Version: p.Version, Reads: p.Reads, Publishes: p.Publishes, Secrets: p.Secrets,
		maker: p.New.maker("controller", func(ps *pluginSession, c Controller) kind { return newController(ps, c) })}
}

func (p DeriverPlugin) declare() *plugin {
	name := "config"
	if deriverKind(p.Publishes) == pb.KindRegistry {
		name = "registry"
	}
	return &plugin{Name: p.Name, Version: p.Version, Reads: p.Reads, Publishes: p.Publishes, Secrets: p.Secrets, Derives: true,
		maker: p.New.maker(name, func(ps *pluginSession, d Deriver) kind { return newDerivation(ps, d) })}
}

func (p GeneratorPlugin) declare() *plugin {
	return &plugin{Name: p.Name, Version: p.Version, Reads: p.Reads, Types: p.Types, Publishes: p.Publishes, Secrets: p.Secrets,
		maker: p.New.maker("generator", func(ps *pluginSession, g Generator) kind { return newGeneration(ps, newGeneratorEngine(g), g) })}
}

func (p EnginePlugin) declare() *plugin {
	return &plugin{Name: p.Name, Version: p.Version, Reads: p.Reads, Types: p.Types, Publishes: p.Publishes, Secrets: p.Secrets,
		maker: p.New.maker("generator", func(ps *pluginSession, e Engine) kind { return newGeneration(ps, e, e) })}
}

func (p PatchPlugin) declare() *plugin {
	return &plugin{Name: p.Name, Version: p.Version, Reads: p.Reads, Secrets: p.Secrets, Types: p.Types, Names: p.Names, Facts: p.Facts, JSON: p.JSON,
		maker: p.New.maker("patch", func(ps *pluginSession, p Patch) kind { return newPatching(ps, p) })}
}

func (p AuthenticatorPlugin) declare() *plugin {
	return &plugin{Name: p.Name, Version: p.Version, Reads: p.Reads, Secrets: p.Secrets, Headers: p.Headers,
		maker: p.New.maker("authenticator", func(ps *pluginSession, a Authenticator) kind { return newAuthentication(ps, a) })}
}

// plugin is what a declaration says, whatever its kind.
type plugin struct {
	Name, Version    string
	Reads, Publishes []string
	Secrets          []string
	Types            []Type
	Names, Facts     []string
	Headers          []string
	JSON, Derives    bool
	maker
}

// maker makes a plugin of a kind.
type maker struct {
	// kind is its name in plugins.yaml.
	kind string
	// schema returns that of the config, nil where anything goes.
	schema func() []byte
	make   func(ps *pluginSession) (kind, error)
}

// maker says how a session gets its plugin. A program has the code of the kinds that it declares,
// and no other's. Inlined, this would be in each module twice.
//
//go:noinline
func (c Constructor[K]) maker(name string, use func(ps *pluginSession, made K) kind) maker {
	return maker{name, c.schema, func(ps *pluginSession) (kind, error) {
		made, err := c.make(ps.config())
		if err != nil {
			return nil, err
		}
		return use(ps, made), nil
	}}
}
