// Package traces sends what each push took to a collector of OpenTelemetry: a trace for each, from
// the first change until the last proxy answered, with what plugins did for it by their own clocks.
// https://opentelemetry.io/docs/specs/otlp/
//
// A push is told whole once it is over, so that nothing is held while it is made. Where the
// collector doesn't listen, spans are dropped after a queue is full; nobody waits.
package traces

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/core/report"
	"github.com/coxswain-mesh/coxswain/core/revision"
	"github.com/coxswain-mesh/coxswain/sdk/redact"
)

// Config says where traces go.
type Config struct {
	// Endpoint is a URL: http://HOST:4317 in plain text, https://HOST:4317 by TLS. What else its
	// client needs (roots, a certificate of its own, headers) the variables OTEL_EXPORTER_OTLP_…
	// say, as for every program that speaks OTLP.
	Endpoint string
	// Ratio of the pushes is traced, 0 to 1.
	Ratio float64
	// Version is that of the program, Instance what tells it from its replicas.
	Version, Instance string
	Log               *slog.Logger
}

// Check returns what can't be.
func (c Config) Check() error {
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return fmt.Errorf("%q is no address of a collector: http://HOST:4317 or https://HOST:4317 is wanted", c.Endpoint)
	}
	if !(c.Ratio >= 0 && c.Ratio <= 1) {
		return fmt.Errorf("%v is no ratio: 0 (no push) to 1 (each)", c.Ratio)
	}
	return nil
}

// Traces sends pushes as traces. Its methods may be called by any goroutine.
type Traces struct {
	cfg      Config
	exporter *otlptrace.Exporter

	// seed tells the traces of this process from others'.
	seed    [16]byte
	sampler sdktrace.Sampler
	// waiting are pushes that are not told yet.
	waiting chan report.Push

	mu sync.Mutex
	// of has whoever does something in a trace by service: a process of its own, as OpenTelemetry
	// sees it.
	of map[string]*sdktrace.TracerProvider
}

// mostServices is how many plugins have a service of their own, mostWaiting how many pushes may
// wait to be told, mostText how long a text may be that others chose, in bytes.
const mostServices, mostWaiting, mostText = 200, 256, 300

// New connects to nobody yet.
func New(ctx context.Context, cfg Config) (*Traces, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	exporter, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpointURL(cfg.Endpoint))
	if err != nil {
		return nil, err
	}
	lines := rate.NewLimiter(rate.Every(time.Minute), 1)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		if lines.Allow() {
			cfg.Log.Warn("traces are not sent", "endpoint", cfg.Endpoint, "error", budget.Line(redact.Text(err.Error()), mostText))
		}
	}))
	t := &Traces{
		cfg: cfg, exporter: exporter, sampler: sdktrace.TraceIDRatioBased(cfg.Ratio),
		waiting: make(chan report.Push, mostWaiting), of: map[string]*sdktrace.TracerProvider{},
	}
	_, _ = rand.Read(t.seed[:]) // it never fails
	return t, nil
}

// ID is the id of a push's trace, in hexadecimal digits; ok is false where that is not traced.
func (t *Traces) ID(kind string, revision uint64) (id string, ok bool) {
	of := t.id(kind, revision)
	return of.String(), t.sampler.ShouldSample(sdktrace.SamplingParameters{TraceID: of}).Decision == sdktrace.RecordAndSample
}

func (t *Traces) id(kind string, revision uint64) trace.TraceID {
	sum := sha256.Sum256(fmt.Appendf(t.seed[:], "%s %d", kind, revision))
	return trace.TraceID(sum[:16])
}

// idKey is of the id of a trace that is to begin.
type idKey struct{}

// ids makes the ids of spans; a trace has the one that is in its context.
type ids struct{}

// NewIDs implements the SDK's IDGenerator.
func (i ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	id, _ := ctx.Value(idKey{}).(trace.TraceID)
	return id, i.NewSpanID(ctx, id)
}

// NewSpanID implements the SDK's IDGenerator.
func (ids) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	_, _ = rand.Read(id[:])
	return id
}

// tracer is that of a service.
func (t *Traces) tracer(service string) trace.Tracer {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.of[service]
	if p == nil {
		if len(t.of) == mostServices {
			for _, p = range t.of {
				break
			}
			return p.Tracer("github.com/coxswain-mesh/coxswain")
		}
		p = sdktrace.NewTracerProvider(
			sdktrace.WithSampler(sdktrace.ParentBased(t.sampler)),
			sdktrace.WithIDGenerator(ids{}),
			sdktrace.WithBatcher(shared{t.exporter}),
			sdktrace.WithResource(resource.NewSchemaless(
				attribute.String("service.name", service), attribute.String("service.version", t.cfg.Version),
				attribute.String("service.instance.id", t.cfg.Instance),
			)),
		)
		t.of[service] = p
	}
	return p.Tracer("github.com/coxswain-mesh/coxswain")
}

// shared is an exporter that several services use: it outlives each.
type shared struct{ sdktrace.SpanExporter }

func (shared) Shutdown(context.Context) error { return nil }

// Core is the service that pushes are of; plugins are Core/NAME.
const Core = "coxswain"

// Push takes a push that is over; it is lost where too many wait.
func (t *Traces) Push(p report.Push) {
	select {
	case t.waiting <- p:
	default:
	}
}

// Run tells pushes until ctx ends, and then what is left, for as long as patience.
func (t *Traces) Run(ctx context.Context, patience time.Duration) error {
	for {
		select {
		case p := <-t.waiting:
			t.tell(p)
			continue
		case <-ctx.Done():
		}
		break
	}
	for len(t.waiting) > 0 {
		t.tell(<-t.waiting)
	}
	left, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	if err := t.close(left); err != nil {
		otel.Handle(err)
	}
	return nil
}

// tell makes a trace of a push.
func (t *Traces) tell(p report.Push) {
	if p.Empty() {
		return
	}
	began, shown := p.Committed.Add(-p.Waited), p.Committed.Add(p.Took)
	core := t.tracer(Core)
	ctx, root := core.Start(context.WithValue(context.Background(), idKey{}, t.id(p.Kind, p.Revision)),
		"push "+p.Kind, trace.WithTimestamp(began), trace.WithAttributes(
			attribute.Int64("coxswain.revision", int64(p.Revision)), attribute.String("coxswain.kind", p.Kind), attribute.Bool("coxswain.held", p.Held),
			attribute.Int("coxswain.proxies", p.Proxies), attribute.Int("coxswain.left", p.Left), attribute.Int("coxswain.refusals", p.Refusals),
			attribute.StringSlice("coxswain.partial", p.Partial),
		))
	if !root.IsRecording() {
		root.End()
		return
	}
	for _, r := range p.Rows {
		root.AddEvent("change", trace.WithTimestamp(began), trace.WithAttributes(
			attribute.String("coxswain.row", r.Table+"/"+r.Key), attribute.String("coxswain.what", r.What),
			attribute.String("coxswain.plugin", r.Plugin), attribute.String("coxswain.source", redact.Text(r.Source)),
		))
	}
	_, commit := core.Start(ctx, "commit", trace.WithTimestamp(began))
	commit.End(trace.WithTimestamp(p.Committed))
	making, makes := core.Start(ctx, "make", trace.WithTimestamp(p.Committed))
	for _, w := range p.Work {
		t.work(making, w)
	}
	makes.End(trace.WithTimestamp(shown))
	serving, serve := core.Start(ctx, "serve", trace.WithTimestamp(shown))
	for _, a := range p.Answers {
		_, answer := core.Start(serving, "answer", trace.WithTimestamp(shown),
			trace.WithAttributes(attribute.String("coxswain.node", budget.Line(a.Node, mostText))))
		answer.End(trace.WithTimestamp(a.At))
	}
	for _, r := range p.Refused {
		serve.AddEvent("refusal", trace.WithTimestamp(p.Done), trace.WithAttributes(
			attribute.String("coxswain.node", budget.Line(r.Node, mostText)),
			attribute.String("coxswain.type", r.Type), attribute.String("coxswain.reason", redact.Text(r.Reason)),
		))
	}
	if p.Refusals > 0 {
		root.SetStatus(codes.Error, fmt.Sprintf("%d responses were refused", p.Refusals))
	}
	serve.End(trace.WithTimestamp(p.Done))
	root.End(trace.WithTimestamp(p.Done))
}

// work is what a plugin did: how long the core waited, and within it what the plugin says.
func (t *Traces) work(ctx context.Context, w revision.Work) {
	ctx, waited := t.tracer(Core).Start(ctx, "wait for "+w.Plugin, trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(w.Began),
		trace.WithAttributes(attribute.String("coxswain.plugin", w.Plugin)))
	ends := w.Began.Add(w.Took)
	for _, s := range w.Spans {
		if s.Began.Before(w.Began) || s.Ended.After(ends) || s.Ended.Before(s.Began) {
			continue // of other work, or by another clock
		}
		_, does := t.tracer(Core+"/"+w.Plugin).Start(ctx, s.Name, trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(s.Began))
		does.End(trace.WithTimestamp(s.Ended))
	}
	waited.End(trace.WithTimestamp(ends))
}

// close sends what is left, for as long as ctx lasts.
func (t *Traces) close(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for _, p := range t.of {
		errs = append(errs, p.Shutdown(ctx))
	}
	return errors.Join(append(errs, t.exporter.Shutdown(ctx))...)
}
