package settings

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spf13/pflag"
)

// Differences names the settings that two have not in common.
func Differences(a, b Settings) (names []string) {
	one, other := pflag.NewFlagSet("", pflag.ContinueOnError), pflag.NewFlagSet("", pflag.ContinueOnError)
	Flags(one, a)
	Flags(other, b)
	one.VisitAll(func(f *pflag.Flag) {
		if other.Lookup(f.Name).DefValue != f.DefValue {
			names = append(names, f.Name)
		}
	})
	return names
}

// Given returns the settings of what runs and what it reads that are not the defaults, as flags
// have them; files are named by absolute paths.
func Given(in Inputs) (map[string]string, error) {
	usual := Defaults()
	s := usual
	s.Inputs, s.Dev = in, false
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	Flags(fs, s)
	given := map[string]string{}
	for _, name := range Differences(usual, s) {
		value := fs.Lookup(name).DefValue
		if slices.Contains(paths, name) && value != "" {
			var err error
			if value, err = filepath.Abs(value); err != nil {
				return nil, fmt.Errorf("--%s: %w", name, err)
			}
		}
		given[name] = value
	}
	return given, nil
}
