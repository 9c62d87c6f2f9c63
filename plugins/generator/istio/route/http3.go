package route

import (
	"strconv"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
)

// WithHTTP3 returns routes whose answers tell clients that HTTP/3 is spoken at the same port.
func WithHTTP3(routes []*routev3.Route, port uint32) []*routev3.Route {
	out := make([]*routev3.Route, len(routes))
	for i, r := range routes {
		out[i] = proto.CloneOf(r)
		out[i].ResponseHeadersToAdd = append(out[i].ResponseHeadersToAdd, &core.HeaderValueOption{
			Header: &core.HeaderValue{Key: "alt-svc", Value: `h3=":` + strconv.FormatUint(uint64(port), 10) + `"; ma=86400`},
		})
	}
	return out
}
