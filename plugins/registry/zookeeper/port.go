package zookeeper

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/coxswain-mesh/coxswain/sdk"
)

// protocols are those of the mesh by Dubbo's. What is empty is an instance's that doesn't say, as Spring Cloud's are.
// Source: Dubbo, "Protocol".
var protocols = map[string]string{
	"": "HTTP", "tri": "GRPC", "grpc": "GRPC", "dubbo": "TCP", "rest": "HTTP", "http": "HTTP", "https": "HTTPS", "hessian": "HTTP", "webservice": "HTTP",
	"jsonrpc": "HTTP", "rmi": "TCP", "thrift": "TCP", "native-thrift": "TCP", "memcached": "TCP", "redis": "REDIS", "rsocket": "TCP", "injvm": "",
}

// servicePortsMost is how many ports a service may have.
const servicePortsMost = 64

// servicePorts are the ports of a service: all that its members have, by number, at most servicePortsMost. Where they
// differ in what they speak at a port, most of them are right.
func servicePorts(all []member, lost func(reason, string)) []*sdk.Port {
	votes := map[uint32]map[string]int{}
	for _, m := range all {
		if votes[m.port] == nil {
			votes[m.port] = map[string]int{}
		}
		votes[m.port][m.protocol]++
	}
	var out []*sdk.Port
	for _, n := range sortedKeys(votes) {
		if len(out) == servicePortsMost {
			lost(lostPorts, strconv.Itoa(int(n)))
			continue
		}
		var best string
		most := 0
		for _, p := range sortedKeys(votes[n]) {
			if votes[n][p] > most {
				best, most = p, votes[n][p]
			}
		}
		if len(votes[n]) > 1 {
			lost(lostDiffers, strconv.Itoa(int(n)))
		}
		out = append(out, &sdk.Port{Number: n, Name: fmt.Sprintf("%s-%d", strings.ToLower(best), n), Protocol: best})
	}
	return out
}

func sortedKeys[K uint32 | string, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
