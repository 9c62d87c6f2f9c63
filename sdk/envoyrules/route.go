package envoyrules

import (
	"fmt"
	"math"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
)

// What Envoy refuses of route configurations besides the rules of single fields. Each of these
// costs all of a route configuration.
// Source: Envoy 1.40, which was given each of them.

// maxBody is how large the body of a direct response may be, in bytes, where the route
// configuration doesn't say.
const maxBody = 4096

func routeConfiguration(c *route.RouteConfiguration) error {
	most := maxBody
	if limit := c.GetMaxDirectResponseBodySizeBytes(); limit != nil {
		most = int(limit.GetValue())
	}
	if err := changes(c); err != nil {
		return err
	}
	taken := Domains{}
	for i, h := range c.GetVirtualHosts() {
		err := virtualHost(h)
		for _, r := range h.GetRoutes() {
			if n := len(r.GetDirectResponse().GetBody().GetInlineString()) + len(r.GetDirectResponse().GetBody().GetInlineBytes()); err == nil && n > most {
				err = fmt.Errorf("direct_response of %d bytes, where %d are allowed", n, most)
			}
		}
		if d := taken.claim(h.GetDomains()); err == nil && d != "" {
			err = fmt.Errorf("domain %q is there already", d)
		}
		if err != nil {
			return fmt.Errorf("virtual_hosts[%d]: %w", i, err)
		}
	}
	return nil
}

// Domains are those that virtual hosts of a route configuration have. Envoy doesn't heed their
// case, and refuses to have one twice.
type Domains map[string]bool

// Take takes a domain; false: another virtual host has it.
func (d Domains) Take(domain string) bool {
	domain = strings.ToLower(domain)
	if d[domain] {
		return false
	}
	d[domain] = true
	return true
}

// claim takes domains, up to the first that is there already.
func (d Domains) claim(list []string) string {
	for _, each := range list {
		if !d.Take(each) {
			return each
		}
	}
	return ""
}

// twice is a domain of a list that is there before, too; empty: none is. Short lists are compared
// as they are, which takes no memory.
func twice(list []string) string {
	if len(list) > 16 {
		return Domains{}.claim(list)
	}
	for i, d := range list {
		for _, before := range list[:i] {
			if strings.EqualFold(d, before) {
				return d
			}
		}
	}
	return ""
}

func virtualHost(h *route.VirtualHost) error {
	if d := twice(h.GetDomains()); d != "" {
		return fmt.Errorf("domain %q is there twice", d)
	}
	if err := changes(h); err != nil {
		return err
	}
	for i, r := range h.GetRoutes() {
		if err := routeRules(r); err != nil {
			return fmt.Errorf("routes[%d]: %w", i, err)
		}
	}
	return retries(h.GetRetryPolicy())
}

func routeRules(r *route.Route) error {
	if err := changes(r); err != nil {
		return err
	}
	return action(r.GetRoute())
}

// changes checks what is done to headers.
func changes(of interface {
	GetRequestHeadersToAdd() []*core.HeaderValueOption
	GetResponseHeadersToAdd() []*core.HeaderValueOption
	GetRequestHeadersToRemove() []string
	GetResponseHeadersToRemove() []string
}) error {
	for _, list := range [][]*core.HeaderValueOption{of.GetRequestHeadersToAdd(), of.GetResponseHeadersToAdd()} {
		for _, o := range list {
			if fixed(o.GetHeader().GetKey()) {
				return fmt.Errorf("header %q can't be set", o.GetHeader().GetKey())
			}
			if err := Format(o.GetHeader().GetValue()); err != nil {
				return fmt.Errorf("header %q: %w", o.GetHeader().GetKey(), err)
			}
		}
	}
	for _, list := range [][]string{of.GetRequestHeadersToRemove(), of.GetResponseHeadersToRemove()} {
		for _, name := range list {
			if fixed(name) {
				return fmt.Errorf("header %q can't be removed", name)
			}
		}
	}
	return nil
}

// fixed reports whether Envoy lets nobody change a header.
func fixed(name string) bool { return strings.HasPrefix(name, ":") || strings.EqualFold(name, "host") }

func action(a *route.RouteAction) error {
	if a == nil {
		return nil
	}
	if err := weights(a.GetWeightedClusters()); err != nil {
		return fmt.Errorf("weighted_clusters: %w", err)
	}
	rewrites := 0
	for _, given := range []bool{a.GetPrefixRewrite() != "", a.GetRegexRewrite() != nil, a.GetPathRewritePolicy() != nil} {
		if given {
			rewrites++
		}
	}
	if rewrites > 1 {
		return fmt.Errorf("several of prefix_rewrite, regex_rewrite and path_rewrite_policy")
	}
	upgrades := Domains{}
	for _, u := range a.GetUpgradeConfigs() {
		if !upgrades.Take(u.GetUpgradeType()) {
			return fmt.Errorf("upgrade %q is there twice", u.GetUpgradeType())
		}
	}
	return retries(a.GetRetryPolicy())
}

func weights(w *route.WeightedCluster) error {
	if w == nil {
		return nil
	}
	sum := uint64(0)
	for i, c := range w.GetClusters() {
		sum += uint64(c.GetWeight().GetValue())
		if err := changes(c); err != nil {
			return fmt.Errorf("clusters[%d]: %w", i, err)
		}
	}
	switch {
	case sum > math.MaxUint32:
		return fmt.Errorf("the sum of weights, %d, exceeds %d", sum, uint32(math.MaxUint32))
	case sum == 0:
		return fmt.Errorf("the sum of weights is 0")
	}
	return nil
}

func retries(p *route.RetryPolicy) error {
	b := p.GetRetryBackOff()
	if b.GetBaseInterval() != nil && b.GetMaxInterval() != nil && b.GetMaxInterval().AsDuration() < b.GetBaseInterval().AsDuration() {
		return fmt.Errorf("retry_back_off: max_interval is less than base_interval")
	}
	return nil
}
