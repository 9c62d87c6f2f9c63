package meter

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// TestMeter reads what a Prometheus server answers, as its HTTP API is documented
// (prometheus.io/docs/prometheus/latest/querying/api), and what it should not answer.
func TestMeter(t *testing.T) {
	defer wait.Ended(t, goleak.IgnoreCurrent())
	vector := func(values ...string) string {
		var all []string
		for i, v := range values {
			all = append(all, fmt.Sprintf(`{"metric":{"pod":"p%d"},"value":[1435781451.781,"%s"]}`, i, v))
		}
		return fmt.Sprintf(`{"status":"success","data":{"resultType":"vector","result":[%s]}}`, strings.Join(all, ","))
	}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it follows a redirection") }))
	defer elsewhere.Close()
	for name, c := range map[string]struct {
		answer string
		code   int
		want   float64
		err    string
	}{
		"scalar":       {`{"status":"success","data":{"resultType":"scalar","result":[1435781451.781,"0.25"]}}`, 200, 0.25, ""},
		"one":          {vector("1"), 200, 1, ""},
		"highest":      {vector("-3", "NaN", "2", "1"), 200, 2, ""},
		"infinite":     {vector("+Inf", "1"), 200, math.Inf(1), ""},
		"not a number": {vector("NaN", "NaN"), 200, math.NaN(), ""},
		"warned":       {strings.Replace(vector("4"), `"data"`, `"warnings":["slow"],"data"`, 1), 200, 4, ""},
		"none":         {vector(), 200, 0, "has no samples"},
		"range":        {`{"status":"success","data":{"resultType":"matrix","result":[]}}`, 200, 0, "gives a matrix"},
		"bad query":    {`{"status":"error","errorType":"bad_data","error":"parse error: unexpected end"}`, 400, 0, "parse error: unexpected end"},
		"no API":       {"<html>not here</html>", 404, 0, "404"},
		"away":         {"", 503, 0, "503"},
		"cut":          {vector("1")[:60], 200, 0, "unexpected end of JSON"},
		"no data":      {`{"status":"success"}`, 200, 0, "no data"},
		"null":         {`{"status":"success","data":null}`, 200, 0, "no data"},
		"elsewhere":    {"", 302, 0, "302"},
		"huge":         {strings.Replace(vector("1"), `"pod"`, `"`+strings.Repeat("x", mostAnswer)+`"`, 1), 200, 0, "too large"},
		"long error":   {`{"status":"error","errorType":"execution","error":"` + strings.Repeat("x", 9000) + `"}`, 422, 0, "xxx…"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan string, 9)
			prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked <- r.URL.Path + " " + r.FormValue("query")
				w.Header().Set("Location", "http://"+elsewhere.Listener.Addr().String())
				w.WriteHeader(c.code)
				fmt.Fprint(w, c.answer)
			}))
			defer prometheus.Close()
			m, err := New(Config{URL: prometheus.URL, Query: `sum(rate(errors[1m]))`, Every: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			defer m.close()
			got, err := m.read(t.Context())
			switch {
			case c.err == "" && err != nil, c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err) || len(err.Error()) > mostReason+9):
				t.Errorf("error %v, want %q", err, c.err)
			case err == nil && got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)):
				t.Errorf("%v, want %v", got, c.want)
			}
			if q := <-asked; q != "/api/v1/query sum(rate(errors[1m]))" {
				t.Error(q)
			}
		})
	}
	away := httptest.NewServer(http.NotFoundHandler())
	away.Close()
	m, err := New(Config{URL: away.URL, Query: "up"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.read(t.Context()); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Error(err)
	}
}

// TestRun: the metric is read while it is watched alone, until the end.
func TestRun(t *testing.T) {
	defer wait.Ended(t, goleak.IgnoreCurrent())
	var questions atomic.Int32
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"scalar","result":[1435781451.781,"%d"]}}`, questions.Add(1))
	}))
	defer prometheus.Close()
	m, err := New(Config{URL: prometheus.URL, Query: "up", Every: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	looks, values := 0, make(chan float64)
	over := make(chan struct{})
	began := time.Now()
	go func() {
		defer close(over)
		m.Run(ctx, func() bool { looks++; return looks > 3 }, func(v float64, err error, asked time.Time) {
			if err != nil || asked.Before(began) || asked.After(time.Now()) {
				t.Errorf("%v, %v, asked at %v", v, err, asked)
			}
			select {
			case values <- v:
			case <-ctx.Done():
			}
		})
	}()
	if first, second := <-values, <-values; first != 1 || second != 2 {
		t.Errorf("%v and %v were read", first, second)
	}
	cancel()
	<-over
	if looks < 5 {
		t.Errorf("it was watched %d times", looks)
	}
}
