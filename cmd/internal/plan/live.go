package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"google.golang.org/protobuf/types/known/anypb"
)

// Live is a control plane that runs. It is asked by its debug pages alone, so that nothing of it
// changes.
type Live struct {
	// Addr is how it is named.
	Addr string
	// Get returns a debug page; code is HTTP's.
	Get func(ctx context.Context, page string) (code int, text []byte, err error)
}

// Pages of a control plane.
const (
	nodesPage  = "/debug/nodes"
	servedPage = "/debug/served"
)

// liveAtOnce is how many pages are asked for at once: people ask for pages, too.
const liveAtOnce = 2

func (l Live) page(ctx context.Context, page string) (code int, text []byte, err error) {
	code, text, err = l.Get(ctx, page)
	if err == nil && code != http.StatusOK && code != http.StatusNotFound {
		err = fmt.Errorf("http://%s%s: %d %s", l.Addr, page, code, text)
	}
	return code, text, err
}

// Proxies returns the connected proxies that ask for what is compared.
func (l Live) Proxies(ctx context.Context) ([]Proxy, error) {
	code, text, err := l.page(ctx, nodesPage)
	if err != nil {
		return nil, err
	}
	proxies, err := ParseProxies(text)
	if code != http.StatusOK || err != nil {
		return nil, errors.Join(fmt.Errorf("http://%s%s: %d; is it a control plane of this version?", l.Addr, nodesPage, code), err)
	}
	proxies = slices.DeleteFunc(proxies, func(p Proxy) bool {
		w := p.wants()
		return !slices.ContainsFunc(order, func(t string) bool { return len(w[t]) > 0 })
	})
	if len(proxies) == 0 {
		return nil,
			fmt.Errorf("no proxy is connected to %s whose configuration could be compared; with --against DIR and --proxies FILE a plan needs none", l.Addr)
	}
	return proxies, nil
}

func (l Live) named() string { return "live (" + l.Addr + ")" }

// answers returns what each proxy is to have, nil for those that have gone.
func (l Live) answers(ctx context.Context, r run) ([]answers, []Fault, error) {
	all, err := r.each(ctx, liveAtOnce, func(ctx context.Context, p Proxy) (answers, error) {
		code, text, err := l.page(ctx, servedPage+"?proxyID="+url.QueryEscape(p.Node.Id))
		if err != nil || code == http.StatusNotFound {
			return nil, err
		}
		var list []admin.Served
		if err := json.Unmarshal(text, &list); err != nil {
			return nil, fmt.Errorf("http://%s%s: %w; is it a control plane of this version?", l.Addr, servedPage, err)
		}
		got := answers{}
		for _, s := range list {
			if !slices.Contains(order, s.Type) {
				continue
			}
			if got[s.Type] == nil {
				got[s.Type] = map[string]*body{}
			}
			version := ""
			if s.Masked {
				version = s.Version
			}
			got[s.Type][s.Name] = r.kept.keepOf(&anypb.Any{TypeUrl: s.Type, Value: s.Value}, version)
		}
		return got, nil
	})
	return all, nil, err
}
