package conformance

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/internal/archive"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
)

// TestScenarios plays testdata/*.txtar against a server with files (generator/static), each archive
// against one of its own. Lines, with # comments:
//
//	see DOCUMENT: SECTION        where the rule stands
//	delta                        the client speaks delta (otherwise state of the world)
//	apart                        it has a stream for each type, of the type's own service; the scenario isn't played on one for all
//	together                     the other way round: on one stream for all types only
//	each TYPE …                  the scenario is played for each of these, which TYPE stands for in its other lines
//	served TYPE NAME=CONTENT … [/ TYPE …]     what there is from now on; other types stay as they are
//	client TYPE …                a request: names; `ack`, `nack`, `stale` or `foreign` say what it answers: the last response, the last but one, one
//	                             of another stream. `version` comes with the last version that it has. In delta names have + or -, and NAME@CONTENT
//	                             is an initial version: the one that the content had when it was received, else one that the server never had
//	server TYPE NAME=CONTENT …   the next response, whole. NAME= is an empty resource; -NAME is removed (delta)
//	server nothing               there is none. On streams of single types what follows shows it: the next response, or the end
//	reconnect                    the client comes back on new streams
//
// Each is played twice, on one stream for all types and on a stream for each, unless it says which.
// At the end the client ends its streams; the server must have said nothing more, and end them too.
func TestScenarios(t *testing.T) {
	for _, a := range archive.All(t) {
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			for _, f := range a.Files {
				for _, v := range variants(f.Name, string(f.Data)) {
					t.Run(v.name, func(t *testing.T) { s.play(t, v) })
				}
			}
		})
	}
}

// variant is a scenario as it is played once.
type variant struct {
	name, script string
	apart        bool
}

// variants are the types and the streams that a scenario is for.
func variants(name, script string) []variant {
	said := map[string][]string{}
	for line := range strings.Lines(script) {
		if words := strings.Fields(line); len(words) > 0 {
			said[words[0]] = words[1:]
		}
	}
	list := []variant{{name: name, script: script}}
	if kinds := said["each"]; kinds != nil {
		list = nil
		for _, kind := range kinds {
			list = append(list, variant{name: name + ", " + kind, script: strings.ReplaceAll(script, "TYPE", kind)})
		}
	}
	var all []variant
	for _, v := range list {
		if said["apart"] == nil {
			all = append(all, v)
		}
		if said["together"] == nil {
			all = append(all, variant{name: v.name + ", apart", script: v.script, apart: true})
		}
	}
	return all
}

func (s *server) play(t *testing.T, v variant) {
	p := &player{server: s, apart: v.apart, has: map[string]string{}}
	s.reset()
	defer p.stop()
	for i, line := range strings.Split(v.script, "\n") {
		line, _, _ = strings.Cut(line, " #")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if err := p.line(words[0], words[1:]); err != nil {
			t.Fatalf("line %d: %s: %v", i+1, strings.TrimSpace(line), err)
		}
	}
	if err := p.finish(); err != nil {
		t.Fatalf("at the end: %v", err)
	}
	if !p.documented {
		t.Error("it names no document: see DOCUMENT: SECTION")
	}
}

// server is a control plane with files.
type server struct {
	plane   *mesh.Plane
	file    string
	offered offered
	// revision of the files.
	revision int
}

const plugins = `plugins:
- {name: files, kind: generator, builtin: generator/static, onLoss: apply, config: {files: [%s]}}
`

// newServer starts one. It offers a type that isn't Envoy's first six, too.
func newServer(t *testing.T) *server {
	t.Helper()
	dir := t.TempDir()
	s := &server{file: filepath.Join(dir, "resources.json")}
	set := filepath.Join(dir, "plugins.yaml")
	put(t, set, fmt.Appendf(nil, plugins, s.file))
	s.offered = offered{"rtds": {"seed": "seed"}}
	text, err := s.offered.text()
	if err != nil {
		t.Fatal(err)
	}
	put(t, s.file, text)
	s.plane = mesh.Start(t, program, "", "--plugins", set, "--debounceAfter", "1ms")
	s.plane.Ready(t)
	return s
}

func (s *server) reset() { s.offered = nil }
