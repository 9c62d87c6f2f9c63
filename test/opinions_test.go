package test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// opinions are words of what the core is to know nothing of: they belong into plugins and into what
// the command hands over.
var opinions = regexp.MustCompile(
	`(?i:istio|spiffe|pilot|envoyfilter|sidecar|ztunnel|waypoint|citadel)|HealthInformation|\bSERVICE_ACCOUNT\b|\bCLUSTER_ID\b|"(NAMESPACE|LABELS|GENERATOR)"`,
)

// opinionated are the files of the core that have such words all the same, in how many lines, and
// why. The numbers may only become smaller.
var opinionated = map[string]struct {
	lines int
	why   string
}{
	"control/internal/state/traits.go": {2, "traits of a type that its generator may declare; older ones count on the default (docs/contract.md)"},
	"manifest/entry.go":                {1, "a word in a comment"},
	"manifest/select.go":               {5, "keys of a node's metadata by which plugins.yaml selects proxies"},
	"manifest/values.go":               {1, "a word in a comment"},
	"xds/request.go":                   {1, "an example in a hint: the form of a node's id"},
}

func TestTheCoreHasNoOpinions(t *testing.T) {
	found := map[string]int{}
	goFiles(t, "../core", func(file string) error {
		if strings.HasSuffix(file, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(file, "../core/")
		for i, line := range strings.Split(string(text), "\n") {
			if !opinions.MatchString(line) {
				continue
			}
			if found[name]++; found[name] > opinionated[name].lines {
				t.Errorf("core/%s:%d knows of what only plugins know of: %s", name, i+1, strings.TrimSpace(line))
			}
		}
		return nil
	})
	for name, may := range opinionated {
		switch {
		case may.why == "":
			t.Errorf("core/%s is on the list without a reason", name)
		case found[name] < may.lines:
			t.Errorf("core/%s has such words in %d lines only: say so in this list", name, found[name])
		}
	}
}

// TestOpinionsAreSeen: the check sees what it is to see.
func TestOpinionsAreSeen(t *testing.T) {
	for line, want := range map[string]bool{
		`strings.CutPrefix(text, "spiffe://")`: true, `fields["NAMESPACE"]`: true, `// as istiod does`: true,
		`conn.generator[url]`: false, `r.Labels`: false, `k.Namespace`: false,
	} {
		if opinions.MatchString(line) != want {
			t.Errorf("%s: seen %v", line, !want)
		}
	}
}
