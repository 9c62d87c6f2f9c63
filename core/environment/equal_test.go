package environment

import (
	"testing"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// TestEqual: whatever a reader of a row may go by makes it another row; where it came from doesn't.
func TestEqual(t *testing.T) {
	base := func() *pb.Row {
		return &pb.Row{
			Key: "a", Payload: []byte("1"), Created: 7, Labels: map[string]string{"app": "a"}, Annotations: map[string]string{"dry-run": "true"},
			Source: "a.yaml:1", Shard: "files",
		}
	}
	for what, c := range map[string]struct {
		edit func(*pb.Row)
		same bool
	}{
		"nothing":                    {func(*pb.Row) {}, true},
		"its source":                 {func(r *pb.Row) { r.Source = "b.yaml:2" }, true},
		"its shard":                  {func(r *pb.Row) { r.Shard = "others" }, true},
		"its payload":                {func(r *pb.Row) { r.Payload = []byte("2") }, false},
		"its age":                    {func(r *pb.Row) { r.Created = 8 }, false},
		"the value of a label":       {func(r *pb.Row) { r.Labels["app"] = "b" }, false},
		"one label more":             {func(r *pb.Row) { r.Labels["version"] = "1" }, false},
		"no labels":                  {func(r *pb.Row) { r.Labels = nil }, false},
		"the value of an annotation": {func(r *pb.Row) { r.Annotations["dry-run"] = "false" }, false},
		"one annotation more":        {func(r *pb.Row) { r.Annotations["other"] = "x" }, false},
		"no annotations":             {func(r *pb.Row) { r.Annotations = nil }, false},
	} {
		t.Run(what, func(t *testing.T) {
			edited := base()
			c.edit(edited)
			if got := Equal(base(), edited); got != c.same {
				t.Errorf("equal: %v", got)
			}
			e, s := New(), &Shard{Name: "files"}
			e.Pending.Update(s, "t", []*pb.Row{base()}, nil)
			e.Pending.Commit(false, nil)
			e.Pending.Update(s, "t", []*pb.Row{edited}, nil)
			if changed := len(e.Pending.Commit(false, nil)["t"]) > 0; changed == c.same {
				t.Errorf("a change to commit: %v", changed)
			}
		})
	}
	if !Equal(nil, nil) || Equal(base(), nil) || Equal(nil, base()) {
		t.Error("a row equals none")
	}
}
