package serving

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
	security "istio.io/api/security/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/config"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/plugins/shared/expressions"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/envoyrules"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// regexes knows which objects have regular expressions that an Envoy refuses whose bootstrap says
// nothing of them, and which connected proxies may have such a bootstrap. Where there are both, the
// log says so, once for each object.
type regexes struct {
	// large are the fields of such objects.
	large map[state.Name][]string
	told  map[state.Name]bool
	// stock are the nodes of such proxies, by connection.
	stock map[uint64]string
	// fresh: something may be there that was not told.
	fresh bool
	lines int
}

// Bounds of what is logged: lines in all, and objects and proxies that a line names.
const (
	maxRegexLines = 100
	namedInLine   = 3
)

func newRegexes() *regexes {
	return &regexes{large: map[state.Name][]string{}, told: map[state.Name]bool{}, stock: map[uint64]string{}}
}

// withRegexes are the kinds of which expressions are made.
var withRegexes = map[string]func() proto.Message{
	config.VirtualServices:       func() proto.Message { return &networking.VirtualService{} },
	config.EnvoyFilters:          func() proto.Message { return &networking.EnvoyFilter{} },
	config.AuthorizationPolicies: func() proto.Message { return &security.AuthorizationPolicy{} },
}

// row notes a row that was taken, or which is gone (nil).
func (x *regexes) row(name state.Name, r *pb.Row) {
	made := withRegexes[name.Table]
	if made == nil {
		return
	}
	var fields []string
	if r != nil {
		spec := made()
		if proto.Unmarshal(r.Payload, spec) != nil {
			return
		}
		namespace, _, _ := strings.Cut(name.Key, "/")
		for _, e := range expressions.Of(spec, namespace) {
			fields = append(fields, e.Field)
		}
	}
	if len(fields) == 0 {
		delete(x.large, name)
		delete(x.told, name)
		return
	}
	x.large[name], x.fresh = fields, true
}

// proxy notes a proxy that is connected: stock is its node's id where it may have such a bootstrap,
// and empty otherwise.
func (x *regexes) proxy(connection uint64, stock string) {
	if stock == "" {
		delete(x.stock, connection)
		return
	}
	x.stock[connection], x.fresh = stock, true
}

// stockOf is a node's id, if its bootstrap may allow no large expressions.
func stockOf(n *node.Node) string {
	if n.Metadata.Stock && n.IsEnvoy() {
		return n.ID
	}
	return ""
}

func (x *regexes) gone(connection uint64) { delete(x.stock, connection) }

// warn says what was not said yet.
func (x *regexes) warn(out sdk.Output) {
	if !x.fresh || len(x.stock) == 0 {
		return
	}
	x.fresh = false
	var objects []string
	for _, name := range slices.SortedFunc(maps.Keys(x.large), byName) {
		if !x.told[name] {
			x.told[name] = true
			kind := name.Table[strings.LastIndexByte(name.Table, '/')+1:]
			objects = append(objects, fmt.Sprintf("%s %s %s", kind, name.Key, x.large[name][0]))
		}
	}
	if len(objects) == 0 || x.lines > maxRegexLines {
		return
	}
	if x.lines++; x.lines > maxRegexLines {
		out.Log(sdk.Warn, "more objects have regular expressions that connected proxies may refuse; they are not logged any more: "+
			"coxswain analyze --live lists all (COX3011)")
		return
	}
	out.Log(sdk.Warn, "regular expressions are larger than connected proxies may allow, which would refuse all that stands beside them",
		"objects", some(objects), "proxies", some(slices.Sorted(maps.Values(x.stock))), "code", "COX3011",
		"next", fmt.Sprintf("set re2.max_program_size.error_level to %d in their bootstraps, as coxswain bootstrap does, or write them shorter; "+
			"coxswain analyze --live lists all", envoyrules.MaxProgram))
}

func byName(a, b state.Name) int {
	return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Key, b.Key))
}

// some names the first of a list, and how many more there are.
func some(list []string) string {
	text := strings.Join(list[:min(len(list), namedInLine)], ", ")
	if more := len(list) - namedInLine; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
