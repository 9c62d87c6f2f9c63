package simulator

import (
	"net/http"
	"time"

	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// Verdict is what becomes of a connection or a request.
type Verdict string

const (
	// Forwarded: it goes to one of Upstream.Clusters.
	Forwarded Verdict = "forwarded"
	// Answered: the proxy answers itself, with Answer.
	Answered Verdict = "answered"
	// Closed: the proxy closes the connection, or nobody accepts it.
	Closed Verdict = "closed"
	// Unknown: the simulator can't follow.
	Unknown Verdict = "unknown"
)

// Outcome is where a connection or a request goes, and why.
type Outcome struct {
	Verdict Verdict
	// Reason is what the verdict comes from.
	Reason string
	Way    Way
	// Answer is what the proxy answers, or what it sets on answers of upstreams.
	Answer   Answer
	Upstream Upstream
	// Delay is what a fault delays it by.
	Delay time.Duration
	// Authorizations are what filters RBAC decided, in order.
	Authorizations []Authorization
	// Chances are other outcomes that come about now and then.
	Chances []Chance
	// Assumes is what the outcome rests on and the simulator can't know.
	Assumes []string
	// Steps are the decisions, in order.
	Steps []Step
}

// Way names what was chosen.
type Way struct {
	Listener, FilterChain, RouteConfiguration, VirtualHost, Route string
	// ChainNumber is the filter chain's place in its listener, from 1, the default one's after all
	// others; 0: no chain was chosen.
	ChainNumber int
	// RouteNumber is the route's place in its virtual host, from 1; 0: no route was chosen.
	RouteNumber int
}

// Authorization is what a filter RBAC decided.
type Authorization struct {
	// Policies are the names of those that it has, in order.
	Policies []string
	// Policy is the one of them that matched; empty: none did.
	Policy string
	// Denied says that the request, or the connection, is refused.
	Denied bool
}

// Answer of the proxy. Status is 0 where an upstream answers.
type Answer struct {
	Status int
	Body   string
	Header http.Header
	// Details are those of the access log (%RESPONSE_CODE_DETAILS%), where they are known.
	Details string
}

// Upstream is where a request goes.
type Upstream struct {
	Clusters []Share
	// Mirrors get copies, as many as Percent says.
	Mirrors []Share
	// Timeout of the whole; 0: none. Retries is how often it is tried again at most, RetryOn after
	// what.
	Timeout time.Duration
	Retries int
	RetryOn string
	// Sticky is what chooses the endpoint; empty: the balancer alone.
	Sticky string
}

// Share is a cluster with the share of requests that it gets, in percent.
type Share struct {
	Cluster string
	Percent float64
	// Endpoints that are there, with their shares of the cluster's requests. Fault says why there
	// are none.
	Endpoints []Endpoint
	Fault     string
	// Request is what is sent; nil for a connection that isn't HTTP.
	Request *Request
}

// Endpoint is one of a cluster.
type Endpoint struct {
	// Address is IP:PORT, NAME:PORT where the Envoy resolves it, or a path.
	Address string
	Percent float64
	// Locality is region/zone/subzone.
	Locality string
	Priority uint32
	// TLS is what the proxy says there; nil: plain text.
	TLS *UpstreamTLS
}

// UpstreamTLS is what a proxy says and wants when it opens TLS.
type UpstreamTLS struct {
	SNI  string
	ALPN []string
	// Names are those that the server's certificate may have; empty: any.
	Names []string
	// Certificate says that the proxy has one to show.
	Certificate bool

	names []*matcherv3.StringMatcher
}

// Chance is what comes about instead in some percent of all cases.
type Chance struct {
	Percent float64
	Status  int
	Reason  string
}

// Step is a decision: what was chosen where, and why.
type Step struct{ At, Chosen, Because string }
