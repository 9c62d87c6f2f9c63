package config

import (
	"testing"

	telemetry "istio.io/api/telemetry/v1alpha1"
	typev1 "istio.io/api/type/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
)

// Telemetry is for workloads that have labels, or for those of a Gateway of the Gateway API.
func TestTelemetrySelects(t *testing.T) {
	selector := &typev1.WorkloadSelector{MatchLabels: map[string]string{"app": "a"}}
	gateway := &typev1.PolicyTargetReference{Group: "gateway.networking.k8s.io", Kind: "Gateway", Name: "gw"}
	app, ofGateway := map[string]string{"app": "a"}, map[string]string{"app": "a", istio.GatewayName: "gw"}
	for _, c := range []struct {
		name     string
		spec     *telemetry.Telemetry
		labels   map[string]string
		attached bool
		want     bool
	}{
		{"namespace", &telemetry.Telemetry{}, app, false, false},
		{"label", &telemetry.Telemetry{Selector: selector}, app, true, true},
		{"another label", &telemetry.Telemetry{Selector: selector}, map[string]string{"app": "b"}, true, false},
		{"gateway", &telemetry.Telemetry{TargetRefs: []*typev1.PolicyTargetReference{gateway}}, ofGateway, true, true},
		{"gateway, in the older field", &telemetry.Telemetry{TargetRef: gateway}, ofGateway, true, true},
		{"no gateway", &telemetry.Telemetry{TargetRefs: []*typev1.PolicyTargetReference{gateway}}, app, true, false},
	} {
		got := Telemetry{Spec: c.spec}
		if got.Attached() != c.attached || got.Selects(c.labels) != c.want {
			t.Errorf("%s: attached %v, selects %v", c.name, got.Attached(), got.Selects(c.labels))
		}
	}
}
