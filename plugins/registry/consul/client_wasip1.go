//go:build wasip1

package consul

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/said"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// granted asks by way of the HTTP calls that the entry's allow.http grants.
type granted struct{ config *Config }

// most is how many questions may be under way, and longest how long one may wait: a runner takes 16
// calls at once, of 30 s each.
const most, longest = 12, 20 * time.Second

// canStop: the runner goes on with a call that nobody waits for any more.
const canStop = false

func newClient(c *Config) (client, error) { return granted{c}, nil }

func (granted) close() {}

func (g granted) services(ctx context.Context, q question) (a answer) {
	a.err = g.ask(ctx, "/v1/catalog/services", &a.names, "", q, &a)
	if a.err == nil && a.names.all == nil && !a.same {
		a.err = errNull
	}
	return a
}

func (g granted) instances(ctx context.Context, name string, q question) (a answer) {
	a.most = g.config.MaxInstances
	a.err = g.ask(ctx, "/v1/health/service/"+url.PathEscape(name), &a.listed, g.config.filter(), q, &a)
	if a.err == nil && !a.there && !a.same {
		a.err = errNull
	}
	return a
}

func (g granted) ask(ctx context.Context, path string, into any, filter string, q question, a *answer) error {
	token, err := g.config.token()
	if err != nil {
		return err
	}
	r := sdk.Request{URL: strings.TrimSuffix(g.config.Address, "/") + path + "?" + g.parameters(filter, q), Headers: map[string]string{}}
	if token != "" {
		r.Headers["X-Consul-Token"] = token
	}
	got, err := sdk.Fetch(ctx, r)
	switch {
	case err != nil:
		return said.HideIn(err, token)
	case got.Status != 200:
		return &refusal{got.Status, said.Hide(string(got.Body), token)}
	}
	a.index, _ = strconv.ParseUint(got.Headers["X-Consul-Index"], 10, 64) // 0 is refused
	a.filtered = got.Headers["X-Consul-Results-Filtered-By-Acls"] == "true"
	a.anonymous = token == "" && got.Headers["X-Consul-Default-Acl-Policy"] == "deny"
	a.streamed = got.Headers["X-Consul-Query-Backend"] == "streaming"
	a.leader = got.Headers["X-Consul-Knownleader"] == "true" || a.streamed
	if a.same = q.index != 0 && a.index == q.index; a.same { // reading it takes a module ten times as long as a process
		return nil
	}
	return json.Unmarshal(got.Body, into)
}

// parameters are those that Consul's client library sends.
func (g granted) parameters(filter string, q question) string {
	p := url.Values{}
	set := func(name, value string) {
		if value != "" {
			p.Set(name, value)
		}
	}
	set("dc", q.datacenter)
	set("ns", g.config.Namespace)
	set("partition", g.config.Partition)
	set("filter", filter)
	if q.index != 0 {
		p.Set("index", strconv.FormatUint(q.index, 10))
		p.Set("wait", strconv.FormatInt(q.wait.Milliseconds(), 10)+"ms")
	}
	switch {
	case q.consistent:
		p.Set("consistent", "")
	case g.config.Stale:
		p.Set("stale", "")
	}
	if q.direct {
		p.Set("near", byDistance)
	}
	for key, value := range g.config.Services.NodeMeta {
		p.Add("node-meta", key+":"+value)
	}
	return p.Encode()
}
