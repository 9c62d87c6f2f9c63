package config

import (
	telemetry "istio.io/api/telemetry/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Telemetries is the table of Telemetry.
const Telemetries = "telemetry.istio.io/Telemetry"

// Telemetry says what proxies report, and where to.
type Telemetry struct {
	Meta
	Spec *telemetry.Telemetry
}

// ParseTelemetry reads a row.
func ParseTelemetry(row *pb.Row) (*Telemetry, error) {
	t := &Telemetry{Meta: parseMeta(row), Spec: &telemetry.Telemetry{}}
	return t, unmarshal(row, t.Spec)
}

// Attached reports whether the resource is for some workloads or services alone, rather than for a
// namespace.
func (t *Telemetry) Attached() bool {
	return len(t.Spec.GetSelector().GetMatchLabels()) > 0 || len(t.Spec.GetTargetRefs()) > 0 || t.Spec.GetTargetRef() != nil
}

// Selects reports whether the resource is attached to workloads of its namespace that have labels.
func (t *Telemetry) Selects(labels map[string]string) bool {
	return t.Attached() && istio.Attaches(t.Spec, true, labels)
}
