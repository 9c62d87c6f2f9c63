package sidecars

import "testing"

// TestPlain: sidecars without certificates pass on what workloads send in plain text.
// https://istio.io/latest/docs/ops/configuration/traffic-management/traffic-routing/
func TestPlain(t *testing.T) {
	for _, protocol := range []string{"sotw", "delta"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, settings{protocol: protocol})
			through(t, "HTTP at the service's address", func() (seen, error) { return askHTTP(w.client, webAddress+":80", web) })
			through(t, "TCP at the service's address", func() (seen, error) { return askTCP(w.client, webAddress+":9000") })
			for cluster, suffix := range map[string]string{
				"cluster.outbound|80||" + web:   ".upstream_rq_200",
				"cluster.outbound|9000||" + web: ".upstream_cx_total",
			} {
				if w.count(t, w.client, cluster, suffix) == 0 {
					t.Errorf("the client's sidecar knows of nothing sent to %s", cluster)
				}
			}
			through(t, "HTTP at the pod's address", func() (seen, error) { return askHTTP(w.client, w.server.Address+":8080", web) })
			if w.count(t, w.client, "cluster.PassthroughCluster", ".upstream_cx_total") == 0 {
				t.Error("the pod's address is not passed through")
			}
			through(t, "a port that no service names", func() (seen, error) { return askTCP(w.client, w.server.Address+":9999") })
			if w.count(t, w.server, "tcp.InboundPassthroughCluster", ".downstream_cx_total") == 0 {
				t.Error("a port that no service names is not passed through")
			}
			through(t, "the workload itself through its service", func() (seen, error) { return askHTTP(w.server, webAddress+":80", web) })
			through(t, "a pod without a sidecar", func() (seen, error) { return askHTTP(w.stranger, w.server.Address+":8080", web) })
			w.happy(t)
		})
	}
}
