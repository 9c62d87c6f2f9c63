// Command weigh prints how much of the program each built-in plugin and each module is:
// `go run ./test/weigh PROGRAM`, of a program that has its symbols; `make sizes` builds one.
//
// A package weighs what its functions have of the program's text, and the same part of the rest
// (tables of lines, types, data), which no symbol says whose it is. A plugin's own weight is that
// of the packages that nothing else needs: what would go with it.
package main

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// linked is the package of the program.
const linked = "./cmd/coxswain"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: weigh PROGRAM")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "weigh:", err)
		os.Exit(1)
	}
}

func run(program string, out io.Writer) error {
	weights, size, err := read(program)
	if err != nil {
		return err
	}
	g, err := list()
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, g.report(weights, size))
	return err
}

// read returns the bytes of each package's functions, and how long a program is without symbols.
func read(program string) (weights map[string]uint64, size uint64, err error) {
	f, err := elf.Open(program)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	for _, s := range f.Sections {
		if s.Type != elf.SHT_NOBITS && s.Type != elf.SHT_SYMTAB && s.Name != ".strtab" && !strings.HasPrefix(s.Name, ".debug") {
			size += s.FileSize
		}
	}
	symbols, err := f.Symbols()
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w; build it without -ldflags=-s", program, err)
	}
	weights = map[string]uint64{}
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC {
			weights[packageOf(s.Name)] += s.Size
		}
	}
	return weights, size, nil
}

// packageOf is the path of the package that a symbol is of.
func packageOf(symbol string) string {
	symbol = strings.TrimPrefix(symbol, "type:.eq.")
	whole, _, _ := strings.Cut(symbol, "[")
	slash := strings.LastIndexByte(whole, '/')
	if dot := strings.IndexByte(whole[slash+1:], '.'); dot >= 0 {
		whole = whole[:slash+1+dot]
	}
	return strings.ReplaceAll(whole, "%2e", ".")
}

// node is a package, as `go list` has it.
type node struct {
	ImportPath, Name string
	Imports          []string
	ImportMap        map[string]string
	Module           *struct{ Path string }
}

// graph has the packages that the program is made of, by their paths.
type graph map[string]node

func list() (graph, error) {
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Name,Imports,ImportMap,Module", linked)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	g := graph{}
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var n node
		if err := d.Decode(&n); errors.Is(err, io.EOF) {
			return g, nil
		} else if err != nil {
			return nil, err
		}
		g[n.ImportPath] = n
	}
}

// program is the path of the package that is linked.
func (g graph) program() string {
	for path, n := range g {
		if n.Name == "main" && strings.HasSuffix(path, strings.TrimPrefix(linked, ".")) {
			return path
		}
	}
	return ""
}

// reached returns what a package needs, itself too, were it not for some others.
func (g graph) reached(from string, without func(string) bool) map[string]bool {
	seen, todo := map[string]bool{}, []string{from}
	for len(todo) > 0 {
		path := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[path] || without(path) {
			continue
		}
		seen[path] = true
		n := g[path]
		for _, i := range n.Imports {
			todo = append(todo, cmp.Or(n.ImportMap[i], i))
		}
	}
	return seen
}

var plugin = regexp.MustCompile(`/plugins/((?:authenticator|config|controller|generator|patch|registry)/\w+)$`)

// row of a table.
type row struct {
	name       string
	alone, all uint64
	by         string
}

func (g graph) report(weights map[string]uint64, size uint64) string {
	var text uint64
	for _, w := range weights {
		text += w
	}
	sum := func(paths map[string]bool) (n uint64) {
		for p := range paths {
			of := p
			if p == g.program() {
				of = "main"
			}
			n += weights[of]
		}
		return n
	}
	whole := g.reached(g.program(), func(string) bool { return false })
	alone := func(without func(string) bool) uint64 {
		return sum(whole) - sum(g.reached(g.program(), without))
	}
	megabytes := func(n uint64) string { return fmt.Sprintf("%.1f", float64(n)*float64(size)/float64(max(text, 1))/1e6) }
	var plugins, modules []row
	needs := map[string][]string{}
	for path := range g {
		m := plugin.FindStringSubmatch(path)
		if m == nil {
			continue
		}
		all := g.reached(path, func(string) bool { return false })
		plugins = append(plugins, row{name: m[1], alone: alone(func(p string) bool { return p == path || strings.HasPrefix(p, path+"/") }), all: sum(all)})
		for p := range all {
			if mod := g[p].Module; mod != nil && !slices.Contains(needs[mod.Path], m[1]) {
				needs[mod.Path] = append(needs[mod.Path], m[1])
			}
		}
	}
	for mod, by := range needs {
		of := func(p string) bool { return g[p].Module != nil && g[p].Module.Path == mod }
		in := map[string]bool{}
		for p := range whole {
			if of(p) {
				in[p] = true
			}
		}
		modules = append(modules, row{name: mod, alone: alone(of), all: sum(in), by: some(by)})
	}
	heaviest(plugins)
	heaviest(modules)
	var b strings.Builder
	fmt.Fprintf(&b, "The program has %.1f MB without symbols, %.1f of them functions.\n\n", float64(size)/1e6, float64(text)/1e6)
	fmt.Fprintf(&b, "| built-in plugin | MB that would go with it | MB of all that it needs |\n|---|---|---|\n")
	for _, r := range plugins {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.name, megabytes(r.alone), megabytes(r.all))
	}
	fmt.Fprintf(&b, "\n| module | MB that would go with it | MB of its own | needed by |\n|---|---|---|---|\n")
	for _, r := range modules[:min(len(modules), 30)] {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.name, megabytes(r.alone), megabytes(r.all), r.by)
	}
	return b.String()
}

// some are plugins by their names, or how many there are where these are many.
func some(names []string) string {
	if len(names) > 4 {
		return fmt.Sprintf("%d plugins", len(names))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// heaviest puts those first with which most would go.
func heaviest(rows []row) {
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.alone, a.alone), cmp.Compare(b.all, a.all), cmp.Compare(a.name, b.name))
	})
}
