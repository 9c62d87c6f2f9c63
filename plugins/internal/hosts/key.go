package hosts

import (
	"net"
	"strconv"
	"strings"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// ServiceKey is the key of a row of table `services`: NAMESPACE/HOST.
func ServiceKey(namespace, host string) string { return namespace + "/" + host }

// EndpointKey is the key of a row of table `endpoints`: NAMESPACE/HOST/PORT-NAME/ADDRESS:PORT. The nth endpoint (from 1)
// of the same service, port and address has `#n` behind it, from the second on.
func EndpointKey(e *pb.Endpoint, n int) string {
	var b strings.Builder
	b.WriteString(e.Namespace + "/" + e.Host + "/" + e.PortName + "/")
	b.WriteString(net.JoinHostPort(e.Address, strconv.FormatUint(uint64(e.Port), 10)))
	if n > 1 {
		b.WriteString("#" + strconv.Itoa(n))
	}
	return b.String()
}

// Split takes a key NAMESPACE/REST apart.
func Split(key string) (namespace, rest string) {
	namespace, rest, _ = strings.Cut(key, "/")
	return namespace, rest
}
