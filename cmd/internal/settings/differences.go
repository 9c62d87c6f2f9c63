package settings

import "github.com/spf13/pflag"

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
