package manifest

import (
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// airy puts the empty lines that an entry had back into its new text, before the lines that stood
// behind them. Where that would change what the text means, as within a block of text, it leaves
// them out.
func airy(text []byte, old []string) []byte {
	lines := slices.Collect(strings.Lines(string(text)))
	at := 0
	for i := 1; i < len(old); i++ {
		word := strings.TrimSpace(old[i])
		if word == "" {
			continue
		}
		found := slices.IndexFunc(lines[at:], func(line string) bool { return strings.TrimSpace(line) == word })
		if found < 0 {
			continue
		}
		at += found
		empty := 0
		for empty < i && strings.TrimSpace(old[i-1-empty]) == "" {
			empty++
		}
		if at > 0 && strings.TrimSpace(lines[at-1]) != "" {
			lines = slices.Insert(lines, at, slices.Repeat([]string{"\n"}, empty)...)
			at += empty
		}
		at++
	}
	if with := []byte(strings.Join(lines, "")); sameYAML(with, text) {
		return with
	}
	return text
}

func sameYAML(a, b []byte) bool {
	var one, two any
	return yaml.Unmarshal(a, &one) == nil && yaml.Unmarshal(b, &two) == nil && reflect.DeepEqual(one, two)
}
