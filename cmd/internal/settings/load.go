package settings

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-viper/mapstructure/v2"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
	yamlv3 "go.yaml.in/yaml/v3"

	"github.com/coxswain-mesh/coxswain/core/server"
)

// Load returns the settings from the file that --settings names, the environment and the flags,
// checked. Unknown are variables with our prefix that are no setting.
func Load(fs *pflag.FlagSet, environ []string) (s Settings, unknown []string, err error) {
	environ = adopted(environ)
	k := koanf.New(".")
	path, err := fs.GetString(SettingsFlag)
	if err != nil {
		return s, nil, err
	}
	if path == "" {
		path = lookup(environ, Variable(SettingsFlag))
	}
	at := places{}
	if path != "" {
		if err := loadFile(k, path, at); err != nil {
			return s, nil, err
		}
	}
	variables, unknown := environment(environ)
	given, err := variables.Read()
	if err != nil {
		return s, nil, fmt.Errorf("environment: %w", err)
	}
	if err := at.variables(given); err != nil {
		return s, nil, err
	}
	if err := k.Load(variables, nil); err != nil {
		return s, nil, fmt.Errorf("environment: %w", err)
	}
	at.flags(fs)
	if err := k.Load(posflag.ProviderWithFlag(fs, ".", k, func(f *pflag.Flag) (string, any) {
		if f.Hidden || !slices.Contains(Names(), f.Name) {
			return "", nil
		}
		return f.Name, posflag.FlagVal(fs, f)
	}), nil); err != nil {
		return s, nil, fmt.Errorf("flags: %w", err)
	}
	s = Defaults()
	if err := k.UnmarshalWithConf("", &s, koanf.UnmarshalConf{DecoderConfig: &mapstructure.DecoderConfig{
		TagName:          "setting",
		Result:           &s,
		WeaklyTypedInput: true, // variables are text
		DecodeHook:       duration,
	}}); err != nil {
		return s, nil, fmt.Errorf("settings: %w", err)
	}
	if s.IstiodDefaults {
		s.Ports.likeIstiod(at)
	}
	s.Ports.nowhere()
	s.Webhooks = s.HTTPSAddr != "" && !s.ReadOnly
	return s, unknown, at.locate(s.Check())
}

// likeIstiod sets the addresses that nobody gave to where istiod listens in its pod. Plain text is
// nobody's default.
func (p *Ports) likeIstiod(given places) {
	for _, a := range []struct {
		name  string
		field *string
		is    string
	}{{"grpcAddr", &p.GRPCAddr, server.None}, {"secureGRPCAddr", &p.SecureGRPCAddr, ":15012"},
		{"httpAddr", &p.HTTPAddr, ":8080"}, {"monitoringAddr", &p.MonitoringAddr, ":15014"}} {
		if _, ok := given[a.name]; !ok {
			*a.field = a.is
		}
	}
}

// duration reads times, which need a unit.
func duration(_, to reflect.Type, value any) (any, error) {
	if to != reflect.TypeFor[time.Duration]() {
		return value, nil
	}
	if v, ok := value.(time.Duration); ok {
		return v, nil
	}
	return time.ParseDuration(fmt.Sprint(value))
}

// Names returns the names of all settings.
func Names() []string {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	Flags(fs, Defaults())
	var names []string
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Name != SettingsFlag {
			names = append(names, f.Name)
		}
	})
	return names
}

// Variables returns the environment variables of all settings.
func Variables() []string {
	all := Names()
	for i, n := range all {
		all[i] = Variable(n)
	}
	return all
}

// loadFile reads a file of settings. Paths in it are relative to its folder.
func loadFile(k *koanf.Koanf, path string, at places) error {
	if err := checkFile(path, at); err != nil {
		return err
	}
	if err := k.Load(file.Provider(path), yaml.Parser()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, name := range paths {
		if p := k.String(name); p != "" && !filepath.IsAbs(p) {
			if err := k.Set(name, filepath.Join(filepath.Dir(path), p)); err != nil {
				return fmt.Errorf("%s: %s: %w", path, name, err)
			}
		}
	}
	return nil
}

// paths are the settings that name files and folders.
var paths = []string{"plugins", "configDir", "meshConfig", "networksConfig", "kubeconfig", "clusterKubeconfigs", "caCertFile", "tlsCertFile", "tlsKeyFile"}

// checkFile refuses keys that are no setting and values that can't be, with their place, and notes
// where the others stand.
func checkFile(path string, at places) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	var doc yamlv3.Node
	if err := yamlv3.Unmarshal(b, &doc); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if len(doc.Content) == 0 {
		return nil
	}
	m := doc.Content[0]
	if m.Kind != yamlv3.MappingNode {
		return fmt.Errorf("%s:%d:%d: want a mapping of settings, such as `debounceAfter: 100ms`", path, m.Line, m.Column)
	}
	var errs []error
	for i := 0; i < len(m.Content); i += 2 {
		if key := m.Content[i]; !slices.Contains(Names(), key.Value) {
			errs = append(errs, fmt.Errorf("%s:%d:%d: unknown setting %q%s", path, key.Line, key.Column, key.Value, Hint(key.Value, Names())))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	return at.scalars(path, m)
}

// environment returns a provider of the settings among variables, and the names of others that have
// our prefix.
func environment(environ []string) (*env.Env, []string) {
	names := map[string]string{}
	for _, n := range Names() {
		names[Variable(n)] = n
	}
	var unknown []string
	for _, e := range environ {
		key, _, _ := strings.Cut(e, "=")
		if strings.HasPrefix(key, Prefix) && names[key] == "" && !others(key) {
			unknown = append(unknown, key)
		}
	}
	return env.Provider(".", env.Opt{
		Prefix:        Prefix,
		EnvironFunc:   func() []string { return environ },
		TransformFunc: func(k, v string) (string, any) { return names[k], v },
	}), unknown
}

// others says which variables with our prefix are none of a control plane's settings: those of
// other commands, of tests, and what Kubernetes sets in pods for a Service called coxswain.
func others(key string) bool {
	switch key {
	case Variable(SettingsFlag), "COXSWAIN_ADDR", "COXSWAIN_ADMIN", "COXSWAIN_TOKEN", "COXSWAIN_SHARED",
		"COXSWAIN_ENVOY", "COXSWAIN_PROGRAM", "COXSWAIN_TEST_PROGRAM", "COXSWAIN_TEST_PLAIN", "COXSWAIN_TEST_ALL",
		"COXSWAIN_NO_SKIPS", "COXSWAIN_MANY", "COXSWAIN_SKIPPED", "COXSWAIN_PROFILE":
		return true
	}
	return strings.HasPrefix(key, "COXSWAIN_SERVICE_") || strings.HasPrefix(key, "COXSWAIN_PORT")
}

func lookup(environ []string, name string) string {
	for _, e := range environ {
		if key, value, _ := strings.Cut(e, "="); key == name {
			return value
		}
	}
	return ""
}
