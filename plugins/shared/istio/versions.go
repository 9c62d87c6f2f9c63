package istio

import (
	"fmt"

	networking "istio.io/api/networking/v1alpha3"
)

// Bounds of the expressions that an EnvoyFilter has for the versions of proxies: the text of one,
// as in Istio, and the program of all of them. An expression for versions has some thirty
// instructions; each costs a hundred bytes for as long as the EnvoyFilter is there.
const (
	maxVersionText    = 1024
	maxVersionProgram = 2048
)

var (
	errLongVersion  = fmt.Errorf("it is longer than %d characters", maxVersionText)
	errLargeVersion = fmt.Errorf("the expressions of all patches make a program of more than %d instructions", maxVersionProgram)
)

// VersionFault says what is wrong with the expression that a patch has for proxies' versions.
type VersionFault struct {
	Patch int
	Err   error
}

// VersionFaults are those of patches whose expressions are none, or too large with those before
// them; size is an expression's, in instructions. Equal ones count once.
func VersionFaults(f *networking.EnvoyFilter, size func(expression string) (int, error)) (out []VersionFault) {
	total, seen := 0, map[string]bool{}
	for i, p := range f.GetConfigPatches() {
		text := p.GetMatch().GetProxy().GetProxyVersion()
		if text == "" || seen[text] {
			continue
		}
		seen[text] = true
		if len(text) > maxVersionText {
			out = append(out, VersionFault{i, errLongVersion})
			continue
		}
		n, err := size(text)
		if total += n; err == nil && total > maxVersionProgram {
			err, total = errLargeVersion, total-n
		}
		if err != nil {
			out = append(out, VersionFault{i, err})
		}
	}
	return out
}
