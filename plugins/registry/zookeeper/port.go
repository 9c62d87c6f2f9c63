package zookeeper

import "slices"

// protocols are those of the mesh by Dubbo's. What is empty is an instance's that doesn't say, as
// Spring Cloud's are. Source: Dubbo, "Protocol".
var protocols = map[string]string{
	"": "HTTP", "tri": "GRPC", "grpc": "GRPC", "dubbo": "TCP", "rest": "HTTP", "http": "HTTP", "https": "HTTPS", "hessian": "HTTP", "webservice": "HTTP",
	"jsonrpc": "HTTP", "rmi": "TCP", "thrift": "TCP", "native-thrift": "TCP", "memcached": "TCP", "redis": "REDIS", "rsocket": "TCP", "injvm": "",
}

func sortedKeys[K uint32 | string, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
