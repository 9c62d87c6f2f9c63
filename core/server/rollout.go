package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/coxswain-mesh/coxswain/core/budget"
	"github.com/coxswain-mesh/coxswain/core/control"
	"github.com/coxswain-mesh/coxswain/core/control/operations"
	"github.com/coxswain-mesh/coxswain/core/rollout"
	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/model"
)

// Rollout is how pushes have stages.
type Rollout struct {
	// Stages say who tries changes first, and for how long; nil: pushes have no stages.
	Stages *control.Stages
	// URL of a Prometheus server, Query that is asked of it, and Every how often, if a metric is
	// watched.
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

// meter reads a metric of a Prometheus server.
type meter struct {
	cfg   Rollout
	api   v1.API
	close func()
}

func newMeter(cfg Rollout) (*meter, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	c, err := api.NewClient(api.Config{Address: cfg.URL, Client: &http.Client{
		Transport: bounded{transport},
		// Whoever answers does not decide whom this process asks, nor whose words the reason has.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}})
	if err != nil {
		return nil, fmt.Errorf("rolloutMetricURL: %w", err)
	}
	return &meter{cfg, v1.NewAPI(c), transport.CloseIdleConnections}, nil
}

// read asks once. Of several samples the highest counts; those that are not a number only if all
// are. The error says what there is instead of a value, in a line.
func (m *meter) read(ctx context.Context) (float64, error) {
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

// stages are the stages of pushes, and what reads their metric; nil: none is read.
type stages struct {
	*operations.Rollout
	meter *meter
}

func newStages(cfg Rollout, c *control.Control) (s *stages, err error) {
	s = &stages{Rollout: operations.NewRollout(c.Operator())}
	if cfg.Stages != nil && cfg.Stages.Metric {
		s.meter, err = newMeter(cfg)
	}
	return s, err
}

// run reads the metric, if there is one, while a stage is watched, until ctx ends.
func (s *stages) run(ctx context.Context) {
	if s.meter == nil {
		return
	}
	defer s.meter.close()
	tick := time.NewTicker(s.meter.cfg.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if !s.Watches() {
			continue
		}
		asked := time.Now()
		v, err := s.meter.read(ctx)
		if ctx.Err() != nil {
			return
		}
		s.Measured(v, err, asked)
	}
}

// staged are metrics of how far the stage is.
type staged struct {
	of          *operations.Rollout
	state, held *prometheus.Desc
}

func newStaged(of *operations.Rollout) *staged {
	return &staged{
		of,
		prometheus.NewDesc("coxswain_rollout_state", "1 for how far the stage of a push is: off, idle, staged or withdrawn.", []string{"state"}, nil),
		prometheus.NewDesc("coxswain_rollout_held_proxies", "Connected proxies that are served what was served before the stage.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (s *staged) Describe(out chan<- *prometheus.Desc) { out <- s.state; out <- s.held }

// Collect implements prometheus.Collector.
func (s *staged) Collect(out chan<- prometheus.Metric) {
	is := s.of.Shown()
	for _, state := range []rollout.State{rollout.Off, rollout.Idle, rollout.Staged, rollout.Withdrawn} {
		v := 0.0
		if is.State == state {
			v = 1
		}
		out <- prometheus.MustNewConstMetric(s.state, prometheus.GaugeValue, v, string(state))
	}
	out <- prometheus.MustNewConstMetric(s.held, prometheus.GaugeValue, float64(len(is.Held)))
}
