package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// TestMeasures: what plugins report is shown as they said it last, under names of their own, and no
// plugin can spoil what others report, or make more series than it may.
func TestMeasures(t *testing.T) {
	m := newMeasures()
	report := func(plugin string, refused int, samples ...*pb.Sample) {
		t.Helper()
		if n := m.Measured(plugin, samples); n != refused {
			t.Errorf("%s %v: %d refused, not %d", plugin, samples, n, refused)
		}
	}
	done := func(value float64) *pb.Sample {
		return &pb.Sample{Name: "done_total", Counter: true, Value: value, Labels: map[string]string{"what": "a\n" + strings.Repeat("x", 100)}}
	}
	report("a", 0, done(1), done(3), &pb.Sample{Name: "depth", Value: -2})
	report("b", 0, done(5))
	report("b", 1, &pb.Sample{Name: "done_total", Value: 1, Labels: map[string]string{"what": "gauge"}})
	report("b", 1, &pb.Sample{Name: "done_total", Counter: true, Value: 1, Labels: map[string]string{"other": "label"}})
	report("b", 6, nil, &pb.Sample{Name: "Bad"}, &pb.Sample{Name: "a b"}, &pb.Sample{Name: "x", Labels: map[string]string{"plugin": "a"}},
		&pb.Sample{Name: "x_total", Counter: true, Value: -1}, &pb.Sample{Name: strings.Repeat("x", longestName+1)})
	for i := range mostSeries {
		m.Measured("c", []*pb.Sample{{Name: "many", Labels: map[string]string{"i": fmt.Sprint(i)}}})
	}
	report("c", 1, &pb.Sample{Name: "many", Labels: map[string]string{"i": "more"}})
	report("c", 0, &pb.Sample{Name: "many", Value: 7, Labels: map[string]string{"i": "0"}})

	r := prometheus.NewRegistry()
	r.MustRegister(m)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{
		"# TYPE plugin_done_total counter", `plugin_done_total{plugin="a",what="a x`, `plugin_depth{plugin="a"} -2`, `plugin_many{i="0",plugin="c"} 7`,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in\n%s", want, b.String()[:min(2000, b.Len())])
		}
	}
	if strings.Contains(b.String(), "more") || strings.Contains(b.String(), "gauge\"") {
		t.Error("what was refused is shown")
	}
}
