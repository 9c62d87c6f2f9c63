package test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What one type may have at most: whoever meets it has to keep that in mind. Fields of embedded
// structs of this module count, too.
const (
	mostMethods = 30
	mostFields  = 16
)

// large are the types that have more, with what they have now, and why that is so: these numbers
// may only become smaller. A folder stands for all types in it and below.
var large = map[string]struct {
	methods, fields int
	why             string
}{
	"cmd/coxswain.program":               {62, 4, "a method for each command"},
	"cmd/internal/bootstrap.Config":      {8, 19, "a field for each thing that can be set"},
	"cmd/internal/settings.Clients":      {1, 19, "a field for each thing that can be set"},
	"cmd/internal/settings.Inputs":       {1, 21, "a field for each thing that can be set"},
	"cmd/internal/settings.Settings":     {4, 80, "a field for each thing that can be set"},
	"core/admin.Plugin":                  {0, 28, "an answer in JSON: a field for each thing that is shown"},
	"core/control.Config":                {0, 17, "a field for each thing that can be set"},
	"core/control.Control":               {207, 33, "when revisions begin, and what plugins publish, are still in it (docs/decisions/halls.md)"},
	"core/control.known":                 {7, 25, "all roles of a plugin are one still (docs/decisions/halls.md)"},
	"core/control.session":               {27, 60, "all roles of a plugin are one still (docs/decisions/halls.md)"},
	"core/environment.Environment":       {54, 10, "tables at each of their revisions: committed, pending, held, unsettled"},
	"core/manifest.Entry":                {19, 27, "a field for each thing that can be set"},
	"core/host.slot":                     {13, 19, "an entry, its process and the next one are one still"},
	"core/host/process.Spec":             {1, 18, "a field for each thing that can be set"},
	"core/host/process.child":            {27, 21, "a process, its carrier and its limits"},
	"core/host/wasm.stdio":               {18, 20, "a guest's two streams, and all that it may ask for by them"},
	"core/server.Config":                 {1, 26, "a field for each thing that can be set"},
	"core/server.metrics":                {14, 17, "a field for each metric"},
	"core/swap.Change":                   {6, 18, "what may be asked of a change, and what became of it"},
	"core/swap.Swapper":                  {73, 14, "each kind of change is a method of it still"},
	"core/swap/api.Detail":               {0, 33, "an answer in JSON: a field for each thing that is shown"},
	"core/view.Views":                    {38, 14, "all that a generator may say of views is told to it"},
	"core/xds.Config":                    {1, 18, "a field for each thing that can be set"},
	"core/xds.machine":                   {47, 11, "both variants of the protocol are one machine"},
	"core/xds.stream":                    {29, 37, "a stream's own settings, metrics and limits"},
	"core/xds.watch":                     {22, 24, "what was sent, acknowledged, refused and is still to come of a type"},
	"plugins/internal/protoyaml.decoder": {37, 5, "a method for each sort of value"},
	"plugins/registry/consul.Config":     {14, 29, "a field for each thing that can be set"},
	"plugins/registry/consul.written":    {0, 24, "a field for each thing that can be set"},
	"plugins/registry/eureka.Config":     {13, 33, "a field for each thing that can be set"},
	"plugins/registry/eureka.held":       {0, 17, "what is known of a service of which nothing new is taken"},
	"plugins/registry/eureka.written":    {0, 27, "a field for each thing that can be set"},
	"plugins/registry/nacos.Config":      {13, 32, "a field for each thing that can be set"},
	"plugins/registry/nacos.written":     {0, 26, "a field for each thing that can be set"},
	"plugins/registry/zookeeper.Config":  {12, 24, "a field for each thing that can be set"},
	"plugins/registry/zookeeper.written": {0, 20, "a field for each thing that can be set"},
	"plugins/validation/rules.checker":   {174, 11, "a method for each rule"},
	"sdk.generation":                     {32, 22, "a generator's session: what it was told, and what it has said"},
	"sdk/incr.Graph":                     {62, 24, "functions and collections are nodes of one graph"},
	"sdk/plugintest.Harness":             {58, 40, "what a test may do with a plugin"},
	"sdk/plugintest.kit":                 {58, 18, "a method for each case of the suite"},
	"sdk/plugintest.shop":                {11, 44, "embeds the harness"},
	"sdk/plugintest.world":               {9, 19, "embeds what cases share"},
	"sdk/simulator.check":                {8, 18, "embeds a walk"},
	"sdk/simulator.walk":                 {73, 14, "a method for each thing that an Envoy does with a request"},
	"test/mutants.result":                {0, 19, "an answer in JSON: a field for each thing that is shown"},
	"test/registries.world":              {42, 12, "what trials of all registries do"},
	"test/scenario.Call":                 {0, 27, "a field for each thing that a test may ask or expect"},

	"plugins/generator/istio/listener.Reporting": {8, 18, "a field for each thing that splits listeners"},
	"plugins/generator/istio/node.Metadata":      {0, 29, "a field for each thing that a proxy may say"},
	"plugins/generator/istio/tables.Tables":      {1, 23, "a field for each table"},
}

// machines are pure: events and the time go in, actions come out.
var machines = []string{"core/caller", "core/deadline", "core/environment", "core/feed", "core/guard", "core/patch", "core/placement", "core/revision", "core/stage", "core/store", "core/trial"}

// clocks are what a machine may not call.
var clocks = map[string][]string{
	"time": {"Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Sleep"},
	"sync": {"Mutex", "RWMutex", "WaitGroup", "Cond"},
}

// sources yields the Go files that people write and that are no tests, by folder.
func sources(t *testing.T) map[string][]*ast.File {
	t.Helper()
	all := map[string][]*ast.File{}
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (name == "testdata" || strings.HasPrefix(name, ".") && name != ".."):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if !ast.IsGenerated(f) {
			folder := filepath.ToSlash(strings.TrimPrefix(filepath.Dir(file), "../"))
			all[folder] = append(all[folder], f)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// sized is how large a type is.
type sized struct{ methods, fields int }

// typesOf returns the types of a package, and how large they are; fields counts those of a struct.
// Files for other systems have methods of their own; the same one counts once.
func typesOf(files []*ast.File, fields func(*ast.File, ast.Expr) int) map[string]*sized {
	all := map[string]*sized{}
	of := func(name string) *sized {
		if all[name] == nil {
			all[name] = &sized{}
		}
		return all[name]
	}
	seen := map[string]bool{}
	for _, f := range files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if name := receiver(d); name != "" && !seen[name+"."+d.Name.Name] {
					seen[name+"."+d.Name.Name] = true
					of(name).methods++
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if ts, ok := s.(*ast.TypeSpec); ok {
						of(ts.Name.Name).fields = max(of(ts.Name.Name).fields, fields(f, ts.Type))
					}
				}
			}
		}
	}
	return all
}

func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	e := d.Recv.List[0].Type
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// structs are the structs of the module by FOLDER.NAME, and the file that each is in.
type structs map[string]struct {
	file *ast.File
	of   *ast.StructType
}

func structsOf(folders map[string][]*ast.File) structs {
	all := structs{}
	for folder, files := range folders {
		for _, f := range files {
			ast.Inspect(f, func(n ast.Node) bool {
				if ts, ok := n.(*ast.TypeSpec); ok {
					if s, ok := ts.Type.(*ast.StructType); ok {
						all[folder+"."+ts.Name.Name] = struct {
							file *ast.File
							of   *ast.StructType
						}{f, s}
					}
				}
				return true
			})
		}
	}
	return all
}

// fields counts those of a type in a folder's file, where it is a struct.
func (all structs) fields(folder string, f *ast.File, e ast.Expr) (n int) {
	s, ok := e.(*ast.StructType)
	if !ok {
		return 0
	}
	for _, field := range s.Fields.List {
		if len(field.Names) > 0 {
			n += len(field.Names)
			continue
		}
		in, name := embedded(folder, f, field.Type)
		if of, ok := all[in+"."+name]; ok {
			n += all.fields(in, of.file, of.of)
		} else {
			n++
		}
	}
	return n
}

// embedded returns the folder and the name of an embedded type.
func embedded(folder string, f *ast.File, e ast.Expr) (in, name string) {
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	switch x := e.(type) {
	case *ast.Ident:
		return folder, x.Name
	case *ast.SelectorExpr:
		for _, i := range f.Imports {
			of := strings.Trim(i.Path.Value, `"`)
			if pkg, ok := x.X.(*ast.Ident); ok && (i.Name != nil && i.Name.Name == pkg.Name || i.Name == nil && path.Base(of) == pkg.Name) {
				return local(of), x.Sel.Name
			}
		}
	}
	return "", ""
}

// TestSizesOfTypes: small functions are not paid for by large types.
func TestSizesOfTypes(t *testing.T) {
	found := map[string]bool{}
	folders := sources(t)
	all := structsOf(folders)
	for folder, files := range folders {
		for name, is := range typesOf(files, func(f *ast.File, e ast.Expr) int { return all.fields(folder, f, e) }) {
			if is.methods <= mostMethods && is.fields <= mostFields {
				continue
			}
			id := folder + "." + name
			may, listed := large[id]
			for at := folder; !listed && at != "."; at = path.Dir(at) {
				id = at
				may, listed = large[at]
			}
			found[id] = true
			switch {
			case !listed:
				t.Errorf("%s.%s has %d methods and %d fields; a type has %d and %d at most: split it", folder, name, is.methods, is.fields, mostMethods, mostFields)
			case is.methods > max(may.methods, mostMethods) || is.fields > max(may.fields, mostFields):
				t.Errorf("%s.%s has grown to %d methods and %d fields; it is too large already", folder, name, is.methods, is.fields)
			case id == folder+"."+name && (may.methods > max(is.methods, mostMethods) || may.fields > max(is.fields, mostFields)):
				t.Logf("%s has only %d methods and %d fields now: say so in this list", id, is.methods, is.fields)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(large)) {
		switch {
		case large[id].why == "":
			t.Errorf("%s is on the list without a reason", id)
		case !found[id] && !slices.Contains(slices.Collect(maps.Keys(folders)), id):
			t.Errorf("%s is not too large (any more): take it off the list", id)
		}
	}
}

// TestMachinesHaveNoClock: whoever drives a machine says what time it is.
func TestMachinesHaveNoClock(t *testing.T) {
	all := sources(t)
	for _, folder := range machines {
		if len(all[folder]) == 0 {
			t.Errorf("%s has no files", folder)
		}
		for _, f := range all[folder] {
			for _, what := range impure(f) {
				t.Errorf("%s: a machine has %s", folder, what)
			}
		}
	}
}

// impure returns what of a file no machine may have.
func impure(f *ast.File) (found []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = append(found, "a goroutine")
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && slices.Contains(clocks[x.Name], n.Sel.Name) {
				found = append(found, fmt.Sprintf("%s.%s", x.Name, n.Sel.Name))
			}
		}
		return true
	})
	return found
}

// TestSizesAreSeen: the checks see what they are to see.
func TestSizesAreSeen(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", `package x
import ("sync"; "time")
type T[S any] struct { a, b int; *inner; mu sync.Mutex }
type inner struct { c, d, e int }
func (t *T[S]) m() { go t.n(); time.Sleep(1) }
func (T[S]) n() {}
func (T[S]) n() {}`, 0)
	if err != nil {
		t.Fatal(err)
	}
	all := structsOf(map[string][]*ast.File{"x": {f}})
	if is := typesOf([]*ast.File{f}, func(f *ast.File, e ast.Expr) int { return all.fields("x", f, e) })["T"]; *is != (sized{methods: 2, fields: 6}) {
		t.Errorf("T has %+v", *is)
	}
	if got := strings.Join(impure(f), ", "); got != "sync.Mutex, a goroutine, time.Sleep" {
		t.Errorf("it has %s", got)
	}
}
