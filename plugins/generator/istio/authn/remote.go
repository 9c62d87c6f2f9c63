package authn

import (
	"cmp"
	"net/url"
	"strconv"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	jwt "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	security "istio.io/api/security/v1beta1"
)

// Fetch says who fetches key sets that are not inline.
type Fetch string

// FetchHere: the control plane. FetchHybrid: proxies where the server is a service of the mesh,
// otherwise the control plane. FetchProxy: proxies, so that keys of a server that is no service are
// not to be had.
const (
	FetchHere   Fetch = "coxswain"
	FetchHybrid Fetch = "hybrid"
	FetchProxy  Fetch = "proxy"
)

// Keys says where keys that are not inline come from.
type Keys struct {
	// Find is a set that the control plane has fetched and that Envoy takes; false: there is none.
	Find func(set string) (string, bool)
	// By says who fetches; FetchHere if empty.
	By Fetch
	// Cluster leads to a port of a host. ok: the host is a service.
	Cluster func(host string, port uint32) (name string, ok bool)
}

const (
	// fetchTimeout is how long proxies wait for keys where the rule doesn't say, keepKeys how long
	// they keep them.
	fetchTimeout = 5 * time.Second
	keepKeys     = 5 * time.Minute
)

// remote is how the proxy fetches a rule's keys itself; nil where it doesn't.
func (k Keys) remote(r *security.JWTRule) *jwt.RemoteJwks {
	if k.By != FetchHybrid && k.By != FetchProxy || r.Jwks != "" || r.JwksUri == "" {
		return nil
	}
	host, port, ok := server(r.JwksUri)
	if !ok {
		return nil
	}
	name, known := k.Cluster(host, port)
	if !known && k.By == FetchHybrid {
		return nil
	}
	return &jwt.RemoteJwks{
		HttpUri: &core.HttpUri{
			Uri:              r.JwksUri,
			HttpUpstreamType: &core.HttpUri_Cluster{Cluster: name},
			Timeout:          cmp.Or(r.Timeout, durationpb.New(fetchTimeout)),
		},
		CacheDuration: durationpb.New(keepKeys),
	}
}

// server is the host and port of a URI.
func server(uri string) (host string, port uint32, ok bool) {
	u, err := url.Parse(uri)
	if err != nil || u.Hostname() == "" {
		return "", 0, false
	}
	standard := map[string]uint32{"http": 80, "https": 443}[u.Scheme]
	if u.Port() == "" {
		return u.Hostname(), standard, standard > 0
	}
	n, err := strconv.ParseUint(u.Port(), 10, 16)
	return u.Hostname(), uint32(n), err == nil && standard > 0
}
