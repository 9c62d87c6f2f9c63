package cluster

import (
	"strconv"
	"strings"
)

// StatOf is what a name in statistics can be made of.
type StatOf struct {
	// Host is the service's full name, Short its short one (as ShortHost has it), Name its name.
	Host, Short, Name string
	Port              uint32
	PortName          string
	// Target is the workload's port; 0 towards services.
	Target uint32
	Subset string
}

// StatName fills a pattern of MeshConfig (inboundClusterStatName, outboundClusterStatName).
func StatName(pattern string, of StatOf) string {
	number := func(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
	return strings.NewReplacer(
		"%SERVICE%", of.Short, "%SERVICE_NAME%", of.Name, "%SERVICE_FQDN%", of.Host, "%SUBSET_NAME%", of.Subset,
		"%TARGET_PORT%", number(of.Target), "%SERVICE_PORT%", number(of.Port), "%SERVICE_PORT_NAME%", of.PortName,
	).Replace(pattern)
}

// ShortHost is what %SERVICE% stands for: NAME.NAMESPACE for a service of Kubernetes, and otherwise
// the host.
func ShortHost(registry, host, name, namespace string) string {
	if registry == kubernetes {
		return name + "." + namespace
	}
	return host
}
