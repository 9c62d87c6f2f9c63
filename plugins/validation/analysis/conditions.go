package analysis

import (
	"slices"

	"github.com/coxswain-mesh/coxswain/plugins/internal/gatewayapi"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
)

const badCondition = "IST0171"

// watched are the conditions that say by False that something is wrong, by the kinds that have
// them. Source: Istio, the conditions of its statuses; Gateway API, GatewayConditionType and
// RouteConditionType.
var watched = map[string][]string{
	"/" + kindService:         {"istio.io/WaypointBound"},
	kinds.ServiceEntry:        {"istio.io/WaypointBound"},
	kinds.WorkloadEntry:       {"istio.io/WaypointBound"},
	kinds.AuthorizationPolicy: {"ZtunnelAccepted", "WaypointAccepted"},
	gatewayapi.Gateway:        {"Accepted", "Programmed", "ResolvedRefs"},
	gatewayapi.HTTPRoute:      {"Accepted", "Programmed", "ResolvedRefs"},
	gatewayapi.GRPCRoute:      {"Accepted", "Programmed", "ResolvedRefs"},
}

// conditions finds objects whose status says that something is wrong.
func conditions(w *world) {
	for _, r := range w.resources {
		if len(r.conditions) == 0 {
			continue
		}
		of := watched[r.Group+"/"+r.Kind]
		for _, c := range r.conditions {
			part := c.Type == "WaypointAccepted" && c.Reason == "PartiallyInvalid"
			if slices.Contains(of, c.Type) && (c.Status == "False" || part) {
				w.report(r, finding.Warnf(badCondition, "status.conditions", "its status says %s=%s (%s): %s", c.Type, c.Status, c.Reason, c.Message))
			}
		}
	}
}
