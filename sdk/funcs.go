package sdk

import (
	"context"

	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// RegistryFunc, ConfigSourceFunc and ControllerFunc make a function a Registry, a ConfigSource or a
// Controller.
type (
	RegistryFunc     func(ctx context.Context, out Publisher) error
	ConfigSourceFunc func(ctx context.Context, out Publisher) error
	ControllerFunc   func(ctx context.Context, out Publisher) error
)

// Run calls f.
func (f RegistryFunc) Run(ctx context.Context, out Publisher) error { return f(ctx, out) }

// Run calls f.
func (f ConfigSourceFunc) Run(ctx context.Context, out Publisher) error { return f(ctx, out) }

// Run calls f.
func (f ControllerFunc) Run(ctx context.Context, out Publisher) error { return f(ctx, out) }

// DeriverFunc makes a function a Deriver.
type DeriverFunc func(ctx context.Context, change *state.Change, out Publisher) error

// Derive calls f.
func (f DeriverFunc) Derive(ctx context.Context, change *state.Change, out Publisher) error {
	return f(ctx, change, out)
}

// GeneratorFuncs makes two functions a Generator. Without PlaceFunc all proxies are in one view,
// `all`, of each type that is served to them.
type GeneratorFuncs struct {
	PlaceFunc    func(s *state.State, p *Proxy) (map[string]string, error)
	GenerateFunc func(s *state.State, typeURL, view string, names []string) ([]Resource, error)
}

// Place calls PlaceFunc; without one each type that the plugin offers has one view for all.
func (f GeneratorFuncs) Place(s *state.State, p *Proxy) (map[string]string, error) {
	if f.PlaceFunc != nil {
		return f.PlaceFunc(s, p)
	}
	all := make(map[string]string, len(p.Types))
	for _, typeURL := range p.Types {
		all[typeURL] = "all"
	}
	return all, nil
}

// Generate calls GenerateFunc.
func (f GeneratorFuncs) Generate(s *state.State, typeURL, view string, names []string) ([]Resource, error) {
	return f.GenerateFunc(s, typeURL, view, names)
}

// PatchFunc makes a function a Patch.
type PatchFunc func(s *state.State, typeURL string, facts map[string]string, resources []Resource) ([]Resource, []string, error)

// Patch calls f.
func (f PatchFunc) Patch(s *state.State, typeURL string, facts map[string]string, resources []Resource) ([]Resource, []string, error) {
	return f(s, typeURL, facts, resources)
}

// AuthenticatorFunc makes a function an Authenticator.
type AuthenticatorFunc func(ctx context.Context, c Credentials) ([]string, error)

// Authenticate calls f.
func (f AuthenticatorFunc) Authenticate(ctx context.Context, c Credentials) ([]string, error) {
	return f(ctx, c)
}
