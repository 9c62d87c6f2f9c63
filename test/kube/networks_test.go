package kube_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// entrance is a Gateway of the Gateway API that stands for the gateway of the network far, by its
// address.
func entrance(name, address string) string {
	return fmt.Sprintf(
		`{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: %s, namespace: shop, labels: {topology.istio.io/network: far}}, spec: {
  gatewayClassName: istio-remote, addresses: [{type: IPAddress, value: %s}], listeners: [{name: cross, port: 15443, protocol: TLS, tls: {mode: Passthrough}}]}}`, name, address,
	)
}

// dials waits until the Envoy has these endpoints of the service, as ADDRESS:PORT, sorted.
func (w *world) dials(t *testing.T, want ...string) {
	t.Helper()
	type address struct {
		SocketAddress struct {
			Address   string
			PortValue int `json:"port_value"`
		} `json:"socket_address"`
	}
	wait.For(t, fmt.Sprintf("the Envoy dials %q", want), func() error {
		var dump struct {
			Configs []struct {
				Dynamic []struct {
					Config struct {
						Name      string `json:"cluster_name"`
						Endpoints []struct {
							Each []struct{ Endpoint struct{ Address address } } `json:"lb_endpoints"`
						}
					} `json:"endpoint_config"`
				} `json:"dynamic_endpoint_configs"`
			}
		}
		if err := json.Unmarshal([]byte(w.envoy.ConfigDump(t)), &dump); err != nil {
			return err
		}
		var got []string
		for _, c := range dump.Configs {
			for _, d := range c.Dynamic {
				for _, l := range d.Config.Endpoints {
					for _, e := range l.Each {
						if at := e.Endpoint.Address.SocketAddress; d.Config.Name == "outbound|80||web.shop.svc.cluster.local" {
							got = append(got, fmt.Sprintf("%s:%d", at.Address, at.PortValue))
						}
					}
				}
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			return fmt.Errorf("it dials %q", got)
		}
		return nil
	})
}

// TestGatewaysOfNetworks: a pod of another network is reached through the gateways that Gateways of
// the Gateway API name, from when there are definitions and Gateways, by whichever addresses they
// have, until the last one is gone; they are known to a registry that starts anew.
func TestGatewaysOfNetworks(t *testing.T) {
	there := strings.Replace(pod("web-2", second), "labels: {app: web}",
		"labels: {app: web, topology.istio.io/network: far, security.istio.io/tlsMode: istio}", 1)
	w := newWorld(t, service, pod("web-1", first), there, slice("web-1", first, "web-2", second), strings.ReplaceAll(others, "NAME", "api"))
	w.dials(t, first+":8080", second+":8080")
	w.cluster.Apply(t, kube.GatewayAPI(t))
	w.cluster.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	w.cluster.Apply(t, entrance("one", "192.0.2.1"))
	w.dials(t, first+":8080", "192.0.2.1:15443")
	w.cluster.Apply(t, documents(entrance("one", "192.0.2.3"), entrance("two", "192.0.2.2")))
	w.dials(t, first+":8080", "192.0.2.2:15443", "192.0.2.3:15443")

	w.cluster.Down()
	before := w.plane.Signal(t, "kubernetes", 9)
	wait.For(t, "the registry runs again", func() error {
		if now := w.plane.Plugins(t)["kubernetes"]; now.PID == before.PID {
			return fmt.Errorf("it is %s", now.State)
		}
		return nil
	})
	w.cluster.Up(t)
	wait.For(t, "the registry serves", func() error {
		if now := w.plane.Plugins(t)["kubernetes"]; now.State != "serving" {
			return fmt.Errorf("it is %s", now.State)
		}
		return nil
	})
	w.dials(t, first+":8080", "192.0.2.2:15443", "192.0.2.3:15443")
	w.cluster.Kubectl(t, "delete", "gateways.gateway.networking.k8s.io", "one", "-n", "shop")
	w.dials(t, first+":8080", "192.0.2.2:15443")
	w.cluster.Kubectl(t, "delete", "crd", "gateways.gateway.networking.k8s.io")
	w.dials(t, first+":8080", second+":8080")
}

// TestDualStack: with dual stack a pod of both families is one endpoint, whichever slices it is in.
// A real Envoy that finds nobody at its first address asks at the other one.
func TestDualStack(t *testing.T) {
	envoy.Binary(t)                         // or skip
	t.Setenv("COXSWAIN_DUAL_STACK", "true") // --dualStack
	const other = "fd00:244::2"
	both := strings.NewReplacer("{ip: "+first+"}", "{ip: "+first+"}, {ip: '"+other+"'}").Replace(pod("web-1", first))
	six := strings.NewReplacer("name: web-1, namespace", "name: web-6, namespace", "["+first+"]", "['"+other+"']",
		"IPv4", "IPv6").Replace(slice("web-1", first))
	c := kube.Start(t, "--service-cluster-ip-range", "10.96.0.0/16,fd00:96::/112")
	c.Apply(t,
		documents(namespace, node, strings.Replace(service, "spec: {", "spec: {ipFamilyPolicy: RequireDualStack, ", 1), both, slice("web-1", first), six))
	config := t.TempDir()
	put(t, filepath.Join(config, "gateway.yaml"), gateway)
	w := newPlane(t, c, config, "{name: kubernetes, kind: registry, builtin: registry/kubernetes, config: {kubeconfig: %q}}")
	w.dials(t, first+":8080")
	if dump := w.envoy.ConfigDump(t); !strings.Contains(dump, `"additional_addresses"`) || !strings.Contains(dump, other) {
		t.Errorf("the Envoy knows no %s", other)
	}
	w.pod.Run(t, "ip", "addr", "add", first+"/32", "dev", "lo") // where nobody listens
	w.pod.Run(t, "ip", "-6", "addr", "add", other+"/128", "dev", "lo", "nodad")
	serve(t, w.pod, other)
	w.answers(t, http.StatusOK, other)
	w.cluster.Kubectl(t, "delete", "endpointslice", "web-1", "-n", "shop") // the other slice says the same
	w.dials(t, first+":8080")
	w.answers(t, http.StatusOK, other)
}
