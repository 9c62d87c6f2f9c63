package expectations

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/cmd/internal/rules"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk/simulator"
)

// compare returns how what came is otherwise than what is expected.
func (w *world) compare(e *Expectation, walks []Walk) (faults []string) {
	last := walks[0]
	for _, at := range walks[1:] {
		if at.Outcome.Verdict != simulator.Forwarded && last.Outcome.Verdict == simulator.Forwarded {
			last = at // one of those behind it stops the request
		}
	}
	got := describe(last)
	switch x := e.Expect; {
	case x.Refused != nil:
		return x.Refused.compare(walks, got)
	case x.Answer != nil:
		return x.Answer.compare(walks, got)
	case x.Closed:
		if last.Outcome.Verdict != simulator.Closed {
			return []string{"want: the connection is closed; got: " + got}
		}
		return nil
	}
	if last.Outcome.Verdict != simulator.Forwarded {
		return []string{"want: it is forwarded; got: " + got}
	}
	return w.forwarded(e, walks[0])
}

// describe says what became of a request.
func describe(at Walk) string {
	o := at.Outcome
	text := fmt.Sprintf("%s by the proxy of %s: %s", o.Verdict, at.Workload, o.Reason)
	switch o.Verdict {
	case simulator.Answered:
		return fmt.Sprintf("status %d, %s", o.Answer.Status, text)
	case simulator.Forwarded:
		var list []string
		for _, s := range o.Upstream.Clusters {
			list = append(list, fmt.Sprintf("%s %% to %s", number(s.Percent), s.Cluster))
		}
		return text + ", " + strings.Join(list, ", ")
	}
	return text
}

func number(f float64) string { return strconv.FormatFloat(math.Round(f*100)/100, 'f', -1, 64) }

// denied returns the decision by which RBAC refuses, if one does.
func denied(o *simulator.Outcome) (by simulator.Authorization, ok bool) {
	for _, a := range o.Authorizations {
		if a.Denied {
			return a, true
		}
	}
	return by, false
}

// compare: every way must end in the refusal.
func (x *Refused) compare(walks []Walk, got string) (faults []string) {
	ends := walks[:1]
	if len(walks) > 1 && walks[0].Outcome.Verdict == simulator.Forwarded {
		ends = walks[1:]
	}
	for _, end := range ends {
		by, ok := denied(end.Outcome)
		switch {
		case !ok:
			return []string{"want: a policy refuses it; got: " + describe(end)}
		case x.By != "" && x.By != end.Workload:
			return []string{fmt.Sprintf("want: the proxy of %s refuses it; got: %s", x.By, got)}
		case x.Policy == "":
			continue
		}
		could := []string{by.Policy}
		if by.Policy == "" {
			could = by.Policies // each of which could allow it, and none does
		}
		if !slices.ContainsFunc(could, func(name string) bool { return rules.OfPolicy(name).Object == x.Policy }) {
			return []string{fmt.Sprintf("want: policy %s refuses it; got: %s", x.Policy, got)}
		}
	}
	return nil
}

// compare: a proxy on the way answers.
func (x *Answer) compare(walks []Walk, got string) (faults []string) {
	i := slices.IndexFunc(walks, func(at Walk) bool { return at.Outcome.Verdict == simulator.Answered })
	if i < 0 {
		return []string{"want: a proxy answers it; got: " + got}
	}
	if n := slices.IndexFunc(walks[1:], func(at Walk) bool { return at.Outcome.Verdict != simulator.Answered }); i > 0 && n >= 0 {
		return []string{"want: a proxy answers it; got, too: " + describe(walks[n+1])}
	}
	a := walks[i].Outcome.Answer
	if x.By != "" && x.By != walks[i].Workload {
		faults = append(faults, fmt.Sprintf("want: the proxy of %s answers; got: %s", x.By, got))
	}
	if x.Status != 0 && x.Status != a.Status {
		faults = append(faults, fmt.Sprintf("want: status %d; got: %s", x.Status, got))
	}
	if at := a.Header.Get("Location"); x.Location != "" && x.Location != at {
		faults = append(faults, fmt.Sprintf("want: it redirects to %s; got: %q", x.Location, at))
	}
	if x.Body != "" && x.Body != a.Body {
		faults = append(faults, fmt.Sprintf("want: body %q; got: %q", x.Body, a.Body))
	}
	return append(faults, headers(x.Headers, a.Header)...)
}

func headers(want map[string]string, got http.Header) (faults []string) {
	for _, name := range sortedKeys(want) {
		if have := strings.Join(got.Values(name), ", "); have != want[name] {
			faults = append(faults, fmt.Sprintf("want: header %s %q; got: %q", name, want[name], have))
		}
	}
	return faults
}

// forwarded compares where a request goes.
func (w *world) forwarded(e *Expectation, at Walk) (faults []string) {
	namespace := w.proxies[at.Workload].namespace
	up := at.Outcome.Upstream
	faults = append(faults, destinations(e.Expect.To, up.Clusters, namespace, "")...)
	if len(e.Expect.Mirrors) > 0 {
		faults = append(faults, destinations(e.Expect.Mirrors, up.Mirrors, namespace, "a copy goes ")...)
	}
	if text := e.Expect.Timeout; text != "" {
		want, _ := time.ParseDuration(text) // it was checked; none: 0
		if want != up.Timeout {
			faults = append(faults, fmt.Sprintf("want: timeout %s; got: %s", text, patience(up.Timeout)))
		}
	}
	if n := e.Expect.Retries; n != nil && *n != up.Retries {
		faults = append(faults, fmt.Sprintf("want: %d retries; got: %d", *n, up.Retries))
	}
	return faults
}

func patience(d time.Duration) string {
	if d == 0 {
		return none
	}
	return d.String()
}

// destinations compares all of them: each wanted one takes the clusters that it names, and none may
// be left.
func destinations(want []Destination, got []simulator.Share, namespace, what string) (faults []string) {
	left := slices.Clone(got)
	for _, d := range want {
		i := slices.IndexFunc(left, func(s simulator.Share) bool { return d.is(s.Cluster, namespace) })
		if i < 0 {
			faults = append(faults, fmt.Sprintf("want: %sto %s; got: %s", what, d, clusters(got)))
			continue
		}
		faults = append(faults, d.compare(left[i])...)
		left = slices.Delete(left, i, i+1)
	}
	for _, s := range left {
		faults = append(faults, fmt.Sprintf("%s%s %% goes to %s, which is not expected", what, number(s.Percent), s.Cluster))
	}
	return faults
}

func clusters(list []simulator.Share) string {
	if len(list) == 0 {
		return "nowhere"
	}
	var names []string
	for _, s := range list {
		names = append(names, fmt.Sprintf("%s %% to %s", number(s.Percent), s.Cluster))
	}
	return strings.Join(names, ", ")
}

// String names the destination.
func (d Destination) String() string {
	text := d.Host + d.Cluster
	if d.Port != 0 {
		text += fmt.Sprint(":", d.Port)
	}
	if d.Subset != nil && *d.Subset != "" {
		text += " subset " + *d.Subset
	}
	return text
}

// is reports whether a cluster is this destination: outbound|PORT|SUBSET|HOST.
func (d Destination) is(cluster, namespace string) bool {
	if d.Cluster != "" {
		return d.Cluster == cluster
	}
	c, ok := rules.SplitCluster(cluster)
	return ok && c.Host == istio.Resolve(d.Host, namespace, domain) && (d.Port == 0 || strconv.Itoa(d.Port) == c.Port) &&
		(d.Subset == nil || *d.Subset == c.Subset)
}

// closeEnough is how far a share in percent may be from what is expected.
const closeEnough = 0.05

func (d Destination) compare(s simulator.Share) (faults []string) {
	if d.Percent != nil && math.Abs(*d.Percent-s.Percent) > closeEnough {
		faults = append(faults, fmt.Sprintf("want: %s %% to %s; got: %s %%", number(*d.Percent), d, number(s.Percent)))
	}
	if s.Fault != "" {
		faults = append(faults, fmt.Sprintf("%s: %s", s.Cluster, s.Fault))
	}
	if d.Endpoints != nil {
		var have []string
		for _, e := range s.Endpoints {
			have = append(have, e.Address)
		}
		slices.Sort(have)
		if want := slices.Sorted(slices.Values(d.Endpoints)); !slices.Equal(want, have) {
			faults = append(faults, fmt.Sprintf("want: %s has endpoints %s; got: %s", d, strings.Join(want, ", "), strings.Join(have, ", ")))
		}
	}
	if s.Request == nil {
		return faults
	}
	if d.Path != "" && d.Path != s.Request.Path {
		faults = append(faults, fmt.Sprintf("want: path %s arrives; got: %s", d.Path, s.Request.Path))
	}
	if d.Authority != "" && d.Authority != s.Request.Host {
		faults = append(faults, fmt.Sprintf("want: host %s arrives; got: %s", d.Authority, s.Request.Host))
	}
	return append(faults, headers(d.Headers, s.Request.Header)...)
}
