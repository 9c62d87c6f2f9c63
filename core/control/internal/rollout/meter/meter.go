// Package meter reads the metric that the stage of a push watches, of a Prometheus server.
package meter

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// Config of a Meter.
type Config struct {
	// URL of a Prometheus server, Query that is asked of it, and Every how often.
	URL, Query string
	Every      time.Duration
}

const (
	// mostAnswer is how long an answer of a Prometheus server may be, in bytes, and answerPatience
	// how long it may take; mostReason is how much is said of why there is none, in bytes.
	mostAnswer     = 1 << 20
	answerPatience = 10 * time.Second
	mostReason     = 300
)

// bounded reads answers up to a size.
type bounded struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, mostAnswer)
	}
	return resp, err
}

// Meter reads a metric of a Prometheus server.
type Meter struct {
	cfg   Config
	api   v1.API
	close func()
}

// New returns a Meter that has asked nothing yet. The error says what is wrong with the URL.
func New(cfg Config) (*Meter, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	c, err := api.NewClient(api.Config{Address: cfg.URL, Client: &http.Client{
		Transport: bounded{transport},
		// Whoever answers does not decide whom this process asks, nor whose words the reason has.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}})
	if err != nil {
		return nil, fmt.Errorf("rolloutMetricURL: %w", err)
	}
	return &Meter{cfg, v1.NewAPI(c), transport.CloseIdleConnections}, nil
}

// read asks once. Of several samples the highest counts; those that are not a number only if all
// are. The error says what there is instead of a value, in a line.
func (m *Meter) read(ctx context.Context) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, answerPatience)
	defer cancel()
	v, _, _, err := m.api.Query(ctx, m.cfg.Query, time.Now(), v1.WithTimeout(answerPatience))
	if err != nil {
		return 0, errors.New(budget.Line(err.Error(), mostReason))
	}
	switch v := v.(type) {
	case nil:
		return 0, errors.New("the answer has no data")
	case *model.Scalar:
		return float64(v.Value), nil
	case model.Vector:
		most := math.NaN()
		for _, s := range v {
			if x := float64(s.Value); math.IsNaN(most) || x > most {
				most = x
			}
		}
		if len(v) == 0 {
			return 0, errors.New("the query (rolloutMetricQuery) has no samples")
		}
		return most, nil
	}
	return 0, fmt.Errorf("the query (rolloutMetricQuery) gives a %s, not a scalar or an instant vector", v.Type())
}

// Run reads the metric, while it is watched, until ctx ends, and hands on each value, or why there
// is none, with when it was asked for.
func (m *Meter) Run(ctx context.Context, watched func() bool, measured func(value float64, err error, asked time.Time)) {
	defer m.close()
	tick := time.NewTicker(m.cfg.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !watched() {
			continue
		}
		asked := time.Now()
		v, err := m.read(ctx)
		if ctx.Err() != nil {
			return
		}
		measured(v, err, asked)
	}
}
