package admin

import (
	"testing"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/google/go-cmp/cmp"
)

// losing is a Source whose faults are a test's.
type losing struct {
	twin
	faults []*pb.Row
}

func (s losing) Rows(table string) []*pb.Row {
	if table == "faults" {
		return s.faults
	}
	return s.twin.Rows(table)
}

func TestDropped(t *testing.T) {
	fault := func(shard, key, payload string) *pb.Row {
		return &pb.Row{Key: key, Shard: shard, Payload: []byte(payload)}
	}
	s := losing{faults: []*pb.Row{
		fault("etcd", "1", `{"file":"etcd:/x/1","severity":"error","field":"port","message":"is none","reason":"invalid","left":1}`),
		fault("etcd", "2", `{"file":"etcd:/x/2","severity":"error","message":"is no JSON","reason":"invalid","left":1}`),
		fault("etcd", "3", `{"file":"etcd:/x/3","severity":"error","message":"is no JSON","reason":"invalid","kept":1}`),
		fault("etcd", "4", `{"file":"etcd:/x/","severity":"error","message":"7 keys are left out","reason":"limits.records","left":7}`),
		fault("etcd", "5", `{"file":"etcd:/x/5","severity":"warning","message":"odd","reason":"disputed"}`),
		fault("other", "6", `{"file":"other","severity":"error","message":"not asked for"}`),
		fault(
			"files", "7",
			`{"file":"gw.yaml","line":3,"column":1,"kind":"Gateway","namespace":"a","name":"gw","code":"COX1003","severity":"error","message":"unknown field"}`,
		),
		fault("files", "8", `{"file":"gw.yaml","line":9,"column":1,"kind":"Gateway","namespace":"a","name":"none",`+
			`"code":"COX1003","severity":"error","message":"unknown field"}`),
		fault("files", "9", "no JSON"),
	}}
	for plugin, want := range map[string][]DroppedRows{
		"etcd": {
			{Effect: "dropped", Reason: "invalid", Severity: "error", Count: 2, Example: "etcd:/x/1: port: is none"},
			{Effect: "dropped", Reason: "limits.records", Severity: "error", Count: 7, Example: "etcd:/x/: 7 keys are left out"},
			{Effect: "kept", Reason: "invalid", Severity: "error", Count: 1, Example: "etcd:/x/3: is no JSON"},
			{Effect: "noted", Reason: "disputed", Severity: "warning", Count: 1, Example: "etcd:/x/5: odd"},
		},
		"files": {
			{Effect: "dropped", Reason: "COX1003", Severity: "error", Count: 1, Example: "gw.yaml:9:1: a/none: unknown field"},
			{Effect: "dropped", Reason: "invalid", Severity: "error", Count: 1, Example: "no JSON"},
			{Effect: "kept", Reason: "COX1003", Severity: "error", Count: 1, Example: "gw.yaml:3:1: a/gw: unknown field"},
		},
		"nobody": {},
	} {
		if d := cmp.Diff(want, Dropped(s, plugin)); d != "" {
			t.Errorf("%s: %s", plugin, d)
		}
	}
}
