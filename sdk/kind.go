package sdk

import (
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Kind is what a plugin is, and how one is made of its entry's config: what RegistryKind and its siblings return. A program has
// the code of the kinds that it names, and no other's.
type Kind struct {
	name    string
	deriver bool
	// schema returns that of the config; nil: there is none.
	schema func() []byte
	make   func(t *talk) (kind, error)
}

// Each of these makes a Kind of a constructor, which gets the entry's config (JSON, nil where it has none) and returns the plugin, or an
// error; a *FieldError names the field at fault. It must not start goroutines.

// RegistryKind is for a registry.
func RegistryKind(construct func(config []byte) (Registry, error)) Kind {
	return kindOf("registry", construct, func(t *talk, r Registry) kind { return newSource(t, pb.KindRegistry, r.Run) })
}

// ConfigSourceKind is for a config source.
func ConfigSourceKind(construct func(config []byte) (ConfigSource, error)) Kind {
	return kindOf("config", construct, func(t *talk, c ConfigSource) kind { return newConfigSource(t, c) })
}

// ControllerKind is for a controller.
func ControllerKind(construct func(config []byte) (Controller, error)) Kind {
	return kindOf("controller", construct, func(t *talk, c Controller) kind { return newController(t, c) })
}

// DeriverKind is for a registry or config source whose rows are a function of rows. It counts as a registry if it publishes services,
// endpoints or workloads.
func DeriverKind(construct func(config []byte) (Deriver, error)) Kind {
	k := kindOf("", construct, func(t *talk, d Deriver) kind { return newDerivation(t, d) })
	k.deriver = true
	return k
}

// GeneratorKind is for the simple form of a generator.
func GeneratorKind(construct func(config []byte) (Generator, error)) Kind {
	return kindOf("generator", construct, func(t *talk, g Generator) kind { return newGeneration(t, newGeneratorEngine(g), g) })
}

// EngineKind is for the full form of a generator.
func EngineKind(construct func(config []byte) (Engine, error)) Kind {
	return kindOf("generator", construct, func(t *talk, e Engine) kind { return newGeneration(t, e, e) })
}

// PatchKind is for a patch.
func PatchKind(construct func(config []byte) (Patch, error)) Kind {
	return kindOf("patch", construct, func(t *talk, p Patch) kind { return newPatching(t, p) })
}

// AuthenticatorKind is for an authenticator.
func AuthenticatorKind(construct func(config []byte) (Authenticator, error)) Kind {
	return kindOf("authenticator", construct, func(t *talk, a Authenticator) kind { return newAuthentication(t, a) })
}

func kindOf[T any](name string, construct func([]byte) (T, error), use func(*talk, T) kind) Kind {
	return Kind{name: name, make: func(t *talk) (kind, error) {
		made, err := construct(t.config())
		if err != nil {
			return nil, err
		}
		return use(t, made), nil
	}}
}
