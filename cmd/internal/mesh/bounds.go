package mesh

import (
	"strings"

	"google.golang.org/protobuf/proto"
	security "istio.io/api/security/v1beta1"

	"github.com/coxswain-mesh/coxswain/core/environment"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

const authorizations = "security.istio.io/AuthorizationPolicy"

// policies are the kinds whose objects may forbid something: without one of them more would be
// allowed. Filters and modules can decide, too.
var policies = []string{
	authorizations, "security.istio.io/PeerAuthentication", "security.istio.io/RequestAuthentication",
	"networking.istio.io/EnvoyFilter", "extensions.istio.io/WasmPlugin", "extensions.istio.io/TrafficExtension",
}

// Bounds are those of namespaces, whose objects may cost so many bytes (0: a quarter of memory, the
// core's; without that, there is no bound). The objects of free namespaces, joined by commas, may
// cost anything, and those of the control plane's own.
func Bounds(bytes int64, memory uint64, own, free string) environment.Bounds {
	if bytes == 0 {
		bytes = int64(memory / 4)
	}
	b := environment.Bounds{Bytes: bytes, Policies: policies, Free: []string{own}, Instead: forbidding}
	for name := range strings.SplitSeq(free, ",") {
		if name = strings.TrimSpace(name); name != "" {
			b.Free = append(b.Free, name)
		}
	}
	return b
}

// forbidding is an AuthorizationPolicy that denies everything to whatever is in a namespace. No
// object of a cluster can have its name.
func forbidding(namespace string) (table string, row *pb.Row) {
	spec, _ := proto.MarshalOptions{Deterministic: true}.Marshal(&security.AuthorizationPolicy{ // never fails
		Action: security.AuthorizationPolicy_DENY, Rules: []*security.Rule{{}},
	})
	return authorizations, &pb.Row{Key: namespace + "/~policies-that-do-not-fit", Source: "namespace " + namespace + " is full", Payload: spec}
}
