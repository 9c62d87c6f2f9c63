package show

import (
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/admin"
)

// TestWritten: what is wrong with an object that a plugin derived is told of that which people
// wrote, and that alone is listed.
func TestWritten(t *testing.T) {
	object := func(kind, key, state string, of *admin.RowName, faults ...admin.Fault) (o Object) {
		o.Kind, o.Group, o.Key, o.State, o.Served, o.Of, o.Source = kind, "g", key, state, true, of, key+".yaml:1"
		o.Faults = faults
		return o
	}
	refused := admin.Fault{}
	refused.Severity, refused.Message = "error", "proxies refuse it"
	route := &admin.RowName{Table: "g/HTTPRoute", Key: "shop/web"}
	apart := object("EnvoyFilter", "shop/apart", "refused by proxies", nil)
	apart.Refusing = 2
	derivedApart := object("VirtualService", "shop/by", "refused by proxies", &admin.RowName{Table: "g/GRPCRoute", Key: "shop/rpc"})
	derivedApart.Refusing = 1
	list := Written([]Object{
		apart, object("GRPCRoute", "shop/rpc", "ok", nil), derivedApart,
		object("HTTPRoute", "shop/web", "ok", nil), object("VirtualService", "shop/derived", "held", route, refused),
		object("VirtualService", "shop/other", "ok", nil), object("VirtualService", "shop/lost", "ok", &admin.RowName{Table: "g/HTTPRoute", Key: "shop/gone"}),
	})
	var out strings.Builder
	Objects(&out, list)
	const want = `KIND	NAME	STATE	EFFECT	SOURCE	PLUGIN
EnvoyFilter	shop/apart	refused by 2 proxies	-	shop/apart.yaml:1	
GRPCRoute	shop/rpc	refused by 1 proxy	-	shop/rpc.yaml:1	
HTTPRoute	shop/web	held	-	shop/web.yaml:1	
VirtualService	shop/other	ok	-	shop/other.yaml:1	
VirtualService	shop/lost	ok	-	shop/lost.yaml:1	

shop/web.yaml:1: HTTPRoute shop/web: error: proxies refuse it
`
	if got := out.String(); got != want {
		t.Errorf("it is\n%s", got)
	}
}
