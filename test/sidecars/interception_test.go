package sidecars

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/netns"
)

// proxyUser is who Istio's proxies run as: what this user sends is not intercepted again.
const proxyUser = 1337

// interception: what a workload sends goes to port 15001 and what comes for it to 15006, but for
// the proxy's own connections: those to the workload come from 127.0.0.6. What a proxy sends to its
// own pod's address comes in as from outside.
const interception = `*nat
:PREROUTING ACCEPT
:OUTPUT ACCEPT
:ISTIO_INBOUND -
:ISTIO_OUTPUT -
:ISTIO_REDIRECT -
:ISTIO_IN_REDIRECT -
-A ISTIO_REDIRECT -p tcp -j REDIRECT --to-ports 15001
-A ISTIO_IN_REDIRECT -p tcp -j REDIRECT --to-ports 15006
-A PREROUTING -p tcp -j ISTIO_INBOUND
-A ISTIO_INBOUND -p tcp --dport 15008 -j RETURN
-A ISTIO_INBOUND -p tcp --dport 15020 -j RETURN
-A ISTIO_INBOUND -p tcp --dport 15021 -j RETURN
-A ISTIO_INBOUND -p tcp --dport 15090 -j RETURN
-A ISTIO_INBOUND -p tcp -j ISTIO_IN_REDIRECT
-A OUTPUT -p tcp -j ISTIO_OUTPUT
-A ISTIO_OUTPUT -s 127.0.0.6/32 -o lo -j RETURN
-A ISTIO_OUTPUT ! -d 127.0.0.1/32 -o lo -p tcp ! --dport 15008 -m owner --uid-owner 1337 -j ISTIO_IN_REDIRECT
-A ISTIO_OUTPUT -o lo -m owner ! --uid-owner 1337 -j RETURN
-A ISTIO_OUTPUT -m owner --uid-owner 1337 -j RETURN
-A ISTIO_OUTPUT ! -d 127.0.0.1/32 -o lo -p tcp ! --dport 15008 -m owner --gid-owner 1337 -j ISTIO_IN_REDIRECT
-A ISTIO_OUTPUT -o lo -m owner ! --gid-owner 1337 -j RETURN
-A ISTIO_OUTPUT -m owner --gid-owner 1337 -j RETURN
-A ISTIO_OUTPUT -d 127.0.0.1/32 -j RETURN
-A ISTIO_OUTPUT -j ISTIO_REDIRECT
COMMIT
`

// intercept sets the rules in a pod. Services' addresses lead out of it by way of another pod,
// though nothing ever goes there.
func intercept(t *testing.T, p, way *netns.Pod) {
	t.Helper()
	p.Run(t, "ip", "route", "add", "10.96.0.0/12", "dev", way.Name, "src", p.Address)
	cmd := iptables(t)
	cmd.Stdin = strings.NewReader(interception)
	p.Finish(t, cmd)
}

// iptables is the system's iptables-restore or that of `make iptables`.
func iptables(t *testing.T) *exec.Cmd {
	t.Helper()
	files, env := envoy.Iptables(t)
	cmd := exec.Command(files["/usr/sbin/iptables-restore"])
	cmd.Env = append(os.Environ(), env...)
	return cmd
}
