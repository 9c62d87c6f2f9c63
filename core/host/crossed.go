package host

import (
	"github.com/coxswain-mesh/coxswain/core/manifest"
	"regexp"
	"slices"
	"strings"
)

var limitPattern = regexp.MustCompile(`\b(limits|wasm)\.([a-zA-Z]+)`)

// Crossed returns the limit of plugins.yaml that an error names, as `limits.NAME` or `wasm.memory`: NAME or `wasm.memory`; none: "". Only the first
// line is the core's, what follows may be the plugin's own words.
func Crossed(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	for _, m := range limitPattern.FindAllStringSubmatch(line, -1) {
		switch {
		case m[0] == "wasm.memory":
			return m[0]
		case m[1] == "limits" && slices.Contains(manifest.LimitNames(), m[2]):
			return m[2]
		}
	}
	return ""
}
