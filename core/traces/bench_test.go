package traces

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/revision"
	"github.com/coxswain-mesh/coxswain/test/kit/otlp"
)

// spent is the CPU time that this process has had.
func spent(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkPush: what a push of 20 rows, of five plugins with three spans each and with as many
// answers as are told, costs from when it is over until a collector has it, the collector's part
// included; and what one costs that is not sampled. cpu-ns/op counts all threads.
func BenchmarkPush(b *testing.B) {
	p := pushed()
	for i := range 20 {
		p.Rows = append(p.Rows, p.Rows[0])
		p.Rows[i].Key = fmt.Sprintf("shop/service-%d", i)
	}
	p.Work, p.Answers = nil, nil
	for i := range 5 {
		began := p.Committed
		span := revision.Span{Name: "Commit", Began: began, Ended: began.Add(time.Millisecond)}
		p.Work = append(p.Work, revision.Work{Plugin: fmt.Sprint("plugin-", i), Began: began, Took: time.Second, Spans: []revision.Span{span, span, span}})
	}
	for i := range 50 {
		p.Answers = append(p.Answers, report.Answer{Node: fmt.Sprintf("sidecar~10.0.0.%d~web-%d.shop~shop.svc.cluster.local", i, i), At: p.Done})
	}
	for _, ratio := range []float64{1, 0} {
		b.Run(fmt.Sprintf("ratio %v", ratio), func(b *testing.B) {
			to := otlp.Start(b, nil)
			traces, err := New(b.Context(), Config{Endpoint: to.URL, Ratio: ratio, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				b.Fatal(err)
			}
			before := spent(b)
			for b.Loop() {
				p.Revision++
				traces.tell(p)
			}
			if err := traces.close(context.WithoutCancel(b.Context())); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(spent(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}
