//lint:file-ignore SA1019 deprecated fields are read to say so, and to check them all the same

package rules

import (
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// Bounds of proxies. Source: Envoy, RingHashLbConfig.minimum_ring_size and
// MaglevLbConfig.table_size.
const (
	maxRing   = 8 << 20
	maxMaglev = 5000011
)

func (c *checker) loadBalancer(at path, l *networking.LoadBalancerSettings, o *networking.OutlierDetection) {
	if l == nil {
		return
	}
	if l.GetSimple() == networking.LoadBalancerSettings_LEAST_CONN {
		c.obsolete(at.field("simple"), "use LEAST_REQUEST instead of LEAST_CONN")
	}
	if h := l.GetConsistentHash(); h != nil {
		c.consistentHash(at.field("consistentHash"), h)
	}
	c.localities(at.field("localityLbSetting"), l.LocalityLbSetting, o == nil)
}

func (c *checker) consistentHash(at path, h *networking.LoadBalancerSettings_ConsistentHashLB) {
	switch key := h.HashKey.(type) {
	case *networking.LoadBalancerSettings_ConsistentHashLB_HttpCookie:
		if key.HttpCookie.GetName() == "" {
			c.fail(badBalancer, at.field("httpCookie").field("name"), "name required for HttpCookie")
		}
		if ttl := key.HttpCookie.GetTtl(); ttl != nil && ttl.AsDuration() < 0 {
			c.fail(badDuration, at.field("httpCookie").field("ttl"), "ttl must not be negative")
		}
	case *networking.LoadBalancerSettings_ConsistentHashLB_HttpHeaderName:
		c.headerName(at.field("httpHeaderName"), key.HttpHeaderName)
	}
	if h.GetMinimumRingSize() != 0 {
		c.obsolete(at.field("minimumRingSize"), "use ringHash.minimumRingSize instead")
	}
	if size := h.GetRingHash().GetMinimumRingSize(); size > maxRing {
		c.warn(badBalancer, at.field("ringHash").field("minimumRingSize"), "%d is more than the %d that proxies take", size, maxRing)
	}
	if size := h.GetMaglev().GetTableSize(); size != 0 && (size > maxMaglev || !isPrime(size)) {
		c.fail(badBalancer, at.field("maglev").field("tableSize"),
			"tableSize must be a prime number up to %d for maglev, not %d", maxMaglev, size).hint("write such as 65537")
	}
}

// isPrime is for numbers up to maxMaglev.
func isPrime(n uint64) bool {
	for d := uint64(2); d*d <= n; d++ {
		if n%d == 0 {
			return false
		}
	}
	return n > 1
}

// regionLabel is the label by which failover between regions already goes.
const regionLabel = "topology.kubernetes.io/region"

// localities checks a locality load balancer. Without outlier detection nothing is ever found to
// have failed.
func (c *checker) localities(at path, l *networking.LocalityLoadBalancerSetting, undetected bool) {
	if l == nil {
		return
	}
	if len(l.Distribute) > 0 && (len(l.Failover) > 0 || len(l.FailoverPriority) > 0) {
		c.fail(badLocality, at, "can not simultaneously specify 'distribute' and 'failover' or 'failoverPriority'")
	}
	if len(l.Failover) > 0 && slices.Contains(l.FailoverPriority, regionLabel) {
		c.fail(badLocality, at, "can not simultaneously set 'failover' and %s in 'failoverPriority'", regionLabel)
	}
	if undetected && (len(l.Failover) > 0 || len(l.FailoverPriority) > 0) {
		c.warn(badLocality, at, "outlier detection policy must be provided for failover").hint("add outlierDetection beside loadBalancer")
	}
	c.distribute(at.field("distribute"), l.Distribute)
	for i, f := range l.Failover {
		c.failover(at.field("failover").index(i), f)
	}
}

func (c *checker) distribute(at path, list []*networking.LocalityLoadBalancerSetting_Distribute) {
	var from []string
	for i, d := range list {
		here := at.index(i)
		from = append(from, d.GetFrom())
		sum := uint32(0)
		for _, to := range sorted(d.GetTo()) {
			weight := d.To[to]
			if weight < 1 || weight > 100 {
				c.fail(badLocality, here.field("to").key(to), "locality weight %d must be in range [1, 100]", weight)
			}
			sum += min(weight, 1000)
		}
		if sum != 100 {
			c.fail(badLocality, here.field("to"), "total locality weight %d != 100", sum)
		}
		c.distinct(here.field("to"), sorted(d.GetTo()), false)
	}
	c.distinct(at, from, true)
}

// distinct checks localities: their form, and that none covers another. Where their order counts, a
// wildcard may stand behind what it covers: it is for the rest.
func (c *checker) distinct(at path, list []string, ordered bool) {
	for i, each := range list {
		if star := strings.Index(each, "*"); star >= 0 && star != len(each)-1 || each == "" {
			c.fail(badLocality, at, "locality %s wildcard '*' number can not exceed 1 and must be in the end",
				quote(each)).hint("write REGION, REGION/ZONE or REGION/ZONE/SUBZONE")
			return
		}
		for _, other := range list[:i] {
			rest := ordered && strings.HasSuffix(each, "*") && each != other
			if coversLocality(each, other) && !rest || coversLocality(other, each) {
				c.fail(badLocality, at, "locality %s overlaps with %s", quote(each), quote(other))
			}
		}
	}
}

// coversLocality reports whether a locality is, or is within, another.
func coversLocality(a, b string) bool {
	a = strings.TrimSuffix(strings.TrimSuffix(a, "*"), "/")
	return a == "" || a == b || strings.HasPrefix(b, a+"/")
}

func (c *checker) failover(at path, f *networking.LocalityLoadBalancerSetting_Failover) {
	for _, region := range []struct{ field, name string }{{"from", f.GetFrom()}, {"to", f.GetTo()}} {
		if strings.ContainsAny(region.name, "*/") {
			c.fail(badLocality, at.field(region.field), "locality lb failover only specify region, not %s: no '*' and no '/'", quote(region.name))
		}
	}
	if f.GetFrom() == f.GetTo() {
		c.fail(badLocality, at, "locality lb failover settings must specify different regions")
	}
}
