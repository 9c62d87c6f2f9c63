package show

import (
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/xds"
)

// TestOverview: who refuses comes first, then who has not answered; each counts once.
func TestOverview(t *testing.T) {
	at := time.Now().Add(-time.Minute)
	kind := func(name, state, refused string) admin.ProxyTypeStatus {
		return admin.ProxyTypeStatus{TypeStatus: xds.TypeStatus{Type: "type.googleapis.com/envoy.config." + name, Refused: refused}, State: state, At: at}
	}
	proxies := []admin.ProxyStatus{
		{Node: "a", Types: []admin.ProxyTypeStatus{kind("Cluster", "synced", ""), kind("Listener", "synced", "")}},
		{Node: "b", Types: []admin.ProxyTypeStatus{kind("Cluster", "pending", ""), kind("Listener", "synced", "")}},
		{
			Node:  "c",
			Types: []admin.ProxyTypeStatus{kind("Cluster", "pending", ""), kind("Listener", "refused", "no such filter"), kind("Route", "refused", "")},
		},
		{Node: "d"},
	}
	pushes := []admin.Push{
		{Revision: 4, Kind: "full", Changed: map[string]int{"x": 1}, Sent: map[string]report.Sent{"y": {Responses: 9, Bytes: 9}}},
		{Revision: 5, Kind: "full", Changed: map[string]int{"x": 2}, Sent: map[string]report.Sent{"y": {Responses: 4, Bytes: 3000}}},
		{Revision: 6, Kind: "full"},
	}
	o := OverviewOf(proxies, pushes, 3)
	o.Rates = RatesOf(pushes, 4, 2*time.Second)
	if o.Revision != 6 || o.Proxies != 4 || o.Synced != 2 || o.Pending != 1 || o.Refusing != 1 || len(o.List) != 3 ||
		len(o.Last) != 2 || o.Last[0].Revision != 5 {
		t.Errorf("%+v", o)
	}
	if *o.Rates != (Rates{Pushes: .5, Responses: 2, Bytes: 1500}) {
		t.Errorf("rates %+v", o.Rates)
	}
	var b strings.Builder
	Mesh(&b, o, false)
	want := "revision 6; 4 proxies: 2 synced, 1 pending, 1 refusing; 0.5 pushes/s, 2.0 responses/s, 1.5 kB/s\n\n" +
		"PROXY\tSTATE\tSINCE\tTYPES\tREASON\n" +
		"c\trefused\t1m00s\tListener, Route\tno such filter\n" +
		"b\tpending\t1m00s\tCluster\t-\n" +
		"a\tsynced\t1m00s\t-\t-\n" +
		"and 1 more (--lines)\n\n"
	if got := b.String(); !strings.HasPrefix(strings.ReplaceAll(got, "1m01s", "1m00s"), want) {
		t.Errorf("it is\n%swant\n%s", got, want)
	}
}
