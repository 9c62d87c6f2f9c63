package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/sdk"
)

// TestREADMEsHaveConfigs: the table of each plugin's README has the keys of its config, and their
// defaults.
func TestREADMEsHaveConfigs(t *testing.T) {
	for name, p := range builtins() {
		t.Run(name, func(t *testing.T) {
			var schema object
			if err := json.Unmarshal(sdk.ConfigSchema(p), &schema); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile("../../plugins/" + name + "/README.md")
			if err != nil {
				t.Fatal(err)
			}
			_, section, _ := strings.Cut(string(text), "\n## Config\n")
			section, _, _ = strings.Cut(section, "\n## ")
			want := keysOf("", schema)
			have, unknown := rowsOf(section, want)
			for _, key := range slices.Sorted(maps.Keys(want)) {
				if have[key] == "" {
					t.Errorf("%s is in no row", key)
				}
				for _, d := range want[key] {
					if !strings.Contains(have[key], d) {
						t.Errorf("%s has the default %s: %s", key, d, have[key])
					}
				}
			}
			for _, key := range unknown {
				t.Errorf("there is no key %s", key)
			}
		})
	}
}

// keysOf returns the paths of the values in a schema, with the words of their defaults.
func keysOf(path string, schema object) map[string][]string {
	all := map[string][]string{}
	properties, _ := schema["properties"].(object)
	for name, of := range properties {
		at := strings.TrimPrefix(path+"."+name, ".")
		below := of.(object)
		for below["items"] != nil {
			at, below = at+"[]", below["items"].(object)
		}
		if below["properties"] != nil {
			maps.Copy(all, keysOf(at, below))
			continue
		}
		at = strings.TrimSuffix(at, "[]")
		all[at] = words(of.(object)["default"])
	}
	return all
}

// words returns what must be read of a default.
func words(d any) (all []string) {
	switch d := d.(type) {
	case nil:
		return nil
	case float64:
		return []string{strconv.FormatFloat(d, 'f', -1, 64)}
	case []any:
		for _, e := range d {
			all = append(all, words(e)...)
		}
		return all
	case object:
		for k, e := range d {
			all = append(append(all, k), words(e)...)
		}
		return all
	}
	return []string{fmt.Sprint(d)}
}

var (
	row  = regexp.MustCompile("(?m)^\\| (`[^|]*)\\|.*$")
	code = regexp.MustCompile("`([^`]+)`")
)

// rowsOf returns the rows of tables that begin with keys, by each known key, and the keys that
// aren't known. A row of an object is that of all keys in it that it names.
func rowsOf(text string, known map[string][]string) (all map[string]string, unknown []string) {
	all = map[string]string{}
	for _, r := range row.FindAllStringSubmatch(text, -1) {
		keys := code.FindAllStringSubmatch(r[1], -1)
		first := keys[0][1]
		for _, key := range keys {
			whole := key[1]
			if _, ok := known[whole]; !ok && whole != first {
				whole = first[:strings.LastIndex(first, ".")+1] + whole // as the first, but for its last name
			}
			if _, ok := known[whole]; ok {
				all[whole] = r[0]
				continue
			}
			within := false
			for k := range known {
				if rest, ok := strings.CutPrefix(k, whole+"."); ok {
					within = true
					if strings.Contains(r[0], "`"+rest+"`") || strings.Contains(r[0], rest+":") {
						all[k] = r[0]
					}
				}
			}
			if !within {
				unknown = append(unknown, key[1])
			}
		}
	}
	return all, unknown
}
