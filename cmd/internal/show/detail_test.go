package show

import (
	"bytes"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/core/swap/api"
)

func TestRowsAreShown(t *testing.T) {
	at := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	d := &api.Detail{
		Plugin: admin.Plugin{Name: "etcd", Away: &admin.Away{Since: at, Why: "connection refused", Drops: at.Add(5 * time.Minute), Dropped: true}},
		Tables: []admin.TableRows{
			{Table: "endpoints", Served: 4, Held: 1, Hidden: []admin.HiddenRows{
				{By: "kube", Reason: "priority", Text: "plugin kube has priority 10 (merge), this one 0", Rows: 2, Example: "shop/a.example/http/10.0.0.1:80"},
				{
					By: "se", Reason: "order",
					Text: "plugin se has the same key, and stands earlier in plugins.yaml", Rows: 1,
					Example: "shop/b.example/http/10.0.0.2:80",
				},
			}},
			{Table: "services", Served: 3},
		},
		Dropped: []admin.DroppedRows{
			{Effect: "dropped", Reason: "limits.records", Count: 7, Example: "etcd:/x/: 7 keys are left out"},
			{Effect: "kept", Reason: "invalid", Count: 1, Example: "etcd:/x/1: ports[0].number: no number"},
		},
	}
	const want = `  its source is away since 2026-11-01 12:00:00: connection refused; its rows went at 2026-11-01 12:05:00, and come back with it (onLoss)
  rows of endpoints: 4 served, 3 hidden, changes of 1 held: coxswain hold show etcd
    hidden, 2 (priority): plugin kube has priority 10 (merge), this one 0; such as shop/a.example/http/10.0.0.1:80
    hidden, 1 (order): plugin se has the same key, and stands earlier in plugins.yaml; such as shop/b.example/http/10.0.0.2:80
  rows of services: 3 served, 0 hidden
  dropped, 7 (limits.records): such as etcd:/x/: 7 keys are left out
  kept as they were, 1 (invalid): such as etcd:/x/1: ports[0].number: no number
`
	var out bytes.Buffer
	if Rows(&out, d); out.String() != want {
		t.Errorf("it is shown as\n%s\nand not as\n%s", out.String(), want)
	}
}
