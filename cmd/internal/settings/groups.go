package settings

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// helpColumns is where help is wrapped.
const helpColumns = 120

// groups are the flags by what they are for. Each group begins with the flag that it names, and
// ends before the next group's, in the order of Flags.
var groups = []struct{ title, first string }{
	{"Plugins and configuration", SettingsFlag},
	{"Registries and clusters", "registries"},
	{"Certificates, and who is calling", "enableCAServer"},
	{"Addresses and TLS", "grpcAddr"},
	{"When changes reach proxies", "debounceAfter"},
	{"Load and memory", "pushThrottle"},
	{"What clients may do", "maxRequestBytes"},
	{"Connections", "keepaliveInterval"},
	{"History and stages of a push", "stateDir"},
	{"Log", "logLevel"},
}

// common are the flags that most people use.
var common = []string{
	SettingsFlag, "plugins", "configDir", "meshConfig", "registries", "kubeconfig", "namespace",
	"grpcAddr", "httpAddr", "secureGRPCAddr", "stateDir", "logLevel",
}

// Help returns the usage of the flags that Flags added, in groups by purpose: of those that most
// people use or, with all, of each. Hidden flags are left out.
func Help(fs *pflag.FlagSet, all bool) string {
	var parts []*pflag.FlagSet
	at, known := -1, append(Names(), SettingsFlag)
	fs.VisitAll(func(f *pflag.Flag) {
		next := at + 1
		if next < len(groups) && groups[next].first == f.Name {
			at = next
			parts = append(parts, pflag.NewFlagSet(groups[at].title, pflag.ContinueOnError))
			parts[at].SortFlags = false
		}
		if at >= 0 && !f.Hidden && slices.Contains(known, f.Name) && (all || slices.Contains(common, f.Name)) {
			parts[at].AddFlag(f)
		}
	})
	var out strings.Builder
	for i, part := range parts {
		if part.HasFlags() {
			out.WriteString(groups[i].title + ":\n" + part.FlagUsagesWrapped(helpColumns) + "\n")
		}
	}
	return strings.TrimSuffix(out.String(), "\n")
}
