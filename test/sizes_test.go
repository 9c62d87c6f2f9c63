package test

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/internal/sizes"
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
	"cmd/coxswain.program":                {60, 4, "a method for each command"},
	"cmd/internal/bootstrap.Config":       {8, 19, "a field for each thing that can be set"},
	"cmd/internal/settings.Clients":       {1, 19, "a field for each thing that can be set"},
	"cmd/internal/settings.Inputs":        {1, 21, "a field for each thing that can be set"},
	"cmd/internal/settings.Settings":      {4, 83, "a field for each thing that can be set"},
	"core/admin.Plugin":                   {0, 29, "an answer in JSON: a field for each thing that is shown"},
	"core/control.Config":                 {0, 19, "a field for each thing that can be set"},
	"core/control.Control":                {48, 10, "a method for each thing that is asked of the core from outside"},
	"core/manifest.Entry":                 {19, 27, "a field for each thing that can be set"},
	"core/host.slot":                      {13, 19, "an entry, its process and the next one are one still"},
	"core/host/process.Spec":              {1, 18, "a field for each thing that can be set"},
	"core/host/process.child":             {27, 21, "a process, its carrier and its limits"},
	"core/host/wasm.stdio":                {18, 20, "a guest's two streams, and all that it may ask for by them"},
	"core/control/internal/middle.Config": {0, 18, "a field for each thing that can be set"},
	"core/report.Push":                    {0, 18, "an answer in JSON: a field for each thing that is shown"},
	"core/control/internal/state.push":    {3, 20, "embeds what is shown of it"},
	"core/server.Config":                  {1, 26, "a field for each thing that can be set"},
	"core/swap/api.Detail":                {0, 34, "an answer in JSON: a field for each thing that is shown"},
	"core/xds.Config":                     {1, 17, "a field for each thing that can be set"},
	"core/xds.machine":                    {47, 11, "both variants of the protocol are one machine"},
	"core/xds.stream":                     {29, 37, "a stream's own settings, metrics and limits"},
	"core/xds.watch":                      {23, 23, "what was sent, acknowledged, refused and is still to come of a type"},
	"plugins/internal/protoyaml.decoder":  {37, 5, "a method for each sort of value"},
	"plugins/registry/consul.Config":      {13, 25, "a field for each thing that can be set"},
	"plugins/registry/eureka.Config":      {12, 27, "a field for each thing that can be set"},
	"plugins/registry/eureka.held":        {0, 17, "what is known of a service of which nothing new is taken"},
	"plugins/registry/nacos.Config":       {11, 27, "a field for each thing that can be set"},
	"plugins/registry/zookeeper.Config":   {10, 20, "a field for each thing that can be set"},
	"plugins/validation/rules.checker":    {174, 11, "a method for each rule"},
	"sdk.generation":                      {31, 22, "a generator's session: what it was told, and what it has said"},
	"sdk/incr.Graph":                      {62, 24, "functions and collections are nodes of one graph"},
	"sdk/plugintest.Harness":              {58, 40, "what a test may do with a plugin"},
	"sdk/plugintest.kit":                  {58, 18, "a method for each case of the suite"},
	"sdk/plugintest.shop":                 {11, 44, "embeds the harness"},
	"sdk/plugintest.world":                {9, 19, "embeds what cases share"},
	"sdk/simulator.check":                 {8, 18, "embeds a walk"},
	"sdk/simulator.walk":                  {73, 14, "a method for each thing that an Envoy does with a request"},
	"test/mutants.result":                 {0, 19, "an answer in JSON: a field for each thing that is shown"},
	"test/registries.world":               {42, 12, "what trials of all registries do"},
	"test/scenario.Call":                  {0, 27, "a field for each thing that a test may ask or expect"},

	"plugins/generator/istio/listener.Reporting": {8, 18, "a field for each thing that splits listeners"},
	"plugins/generator/istio/node.Metadata":      {0, 29, "a field for each thing that a proxy may say"},
	"plugins/generator/istio/tables.Tables":      {1, 23, "a field for each table"},
}

// machines are pure: events and the time go in, actions come out.
var machines = []string{
	"core/caller", "core/control/internal/feed", "core/control/internal/members",
	"core/control/internal/middle", "core/control/internal/patch",
	"core/control/internal/pipeline", "core/control/internal/serving",
	"core/control/internal/stage", "core/control/internal/state", "core/control/internal/status",
	"core/control/internal/store", "core/control/internal/trial", "core/deadline",
	"core/environment", "core/guard", "core/placement", "core/revision", "core/rollout",
}

// clocks are what a machine may not call.
var clocks = map[string][]string{
	"time": {"Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Sleep"},
	"sync": {"Mutex", "RWMutex", "WaitGroup", "Cond"},
}

// sources are the Go files that people write and that are no tests, by folder.
func sources(t *testing.T) sizes.Tree {
	t.Helper()
	all, err := sizes.Read("..")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestSizesOfTypes: small functions are not paid for by large types.
func TestSizesOfTypes(t *testing.T) {
	found := map[string]bool{}
	folders := sources(t)
	for name, is := range folders.Types(strings.TrimSuffix(module, "/")) {
		if is.Methods <= mostMethods && is.Fields <= mostFields {
			continue
		}
		id := name
		may, listed := large[id]
		for at := name[:strings.LastIndex(name, ".")]; !listed && at != "."; at = path.Dir(at) {
			id = at
			may, listed = large[at]
		}
		found[id] = true
		switch {
		case !listed:
			t.Errorf("%s has %d methods and %d fields; a type has %d and %d at most: split it", name, is.Methods, is.Fields, mostMethods, mostFields)
		case is.Methods > max(may.methods, mostMethods) || is.Fields > max(may.fields, mostFields):
			t.Errorf("%s has grown to %d methods and %d fields; it is too large already", name, is.Methods, is.Fields)
		case id == name && (may.methods > max(is.Methods, mostMethods) || may.fields > max(is.Fields, mostFields)):
			t.Logf("%s has only %d methods and %d fields now: say so in this list", id, is.Methods, is.Fields)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(large)) {
		switch {
		case large[id].why == "":
			t.Errorf("%s is on the list without a reason", id)
		case !found[id] && folders[id] == nil:
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
			for _, what := range impure(f.File) {
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
	f, err := sizes.Parse("x.go", []byte(`package x
import ("sync"; "time")
// T is one.
type T[S any] struct { a, b int; *inner; mu sync.Mutex }
type inner struct { c, d, e int } // Its fields are T's.
func (t *T[S]) m() { go t.n(); time.Sleep(1) }
func (T[S]) n() {
}
func (T[S]) n() {}
`))
	if err != nil {
		t.Fatal(err)
	}
	if is := (sizes.Tree{"x": {f}}).Types("")["x.T"]; *is != (sizes.Type{Methods: 2, Fields: 6}) {
		t.Errorf("T has %+v", *is)
	}
	if !slices.Equal(f.Functions, []int{1, 2, 1}) || len(f.Lines) != 9 || f.Comments != 1 || f.Wide != 0 {
		t.Errorf("functions have %v lines, the file %d, %d of them comments, %d wide", f.Functions, len(f.Lines), f.Comments, f.Wide)
	}
	if got := strings.Join(impure(f.File), ", "); got != "sync.Mutex, a goroutine, time.Sleep" {
		t.Errorf("it has %s", got)
	}
}
