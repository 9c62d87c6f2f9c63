package status

import (
	"fmt"

	gateway "sigs.k8s.io/gateway-api/apis/v1"
)

// ListenerSet is what is known of a ListenerSet.
type ListenerSet struct {
	// Refused is why it may not belong to its Gateway, Parent what is wrong with that.
	Refused, Parent *Problem
	// NoService: the Gateway has no address.
	NoService bool
	Services  []string
	Listeners []Listener
	// Ports are those of its servers, Datagrams those of servers for datagrams.
	Ports, Datagrams []uint32
}

// NoListenerSets says that a class has none.
func NoListenerSets(class string) *Problem {
	return &Problem{string(gateway.ListenerSetReasonNotAllowed), fmt.Sprintf("The %q GatewayClass does not support ListenerSet", class)}
}

// ListenerSetNotAllowed says that the Gateway wants none of this namespace.
func ListenerSetNotAllowed() *Problem {
	return &Problem{
		string(gateway.ListenerSetReasonNotAllowed),
		"The parent Gateway does not allow this reference; check the 'spec.allowedRoutes'",
	}
}

// Valid reports whether some listener is served.
func (s ListenerSet) Valid() bool {
	for _, l := range s.Listeners {
		if l.Valid() {
			return true
		}
	}
	return false
}

// Status is what is to be said of the ListenerSet: at is where its Gateway can be reached.
func (s ListenerSet) Status(at Reach) gateway.ListenerSetStatus {
	c := conditions{}
	if s.Refused != nil {
		c.set(string(gateway.GatewayConditionAccepted), "", "", s.Refused)
		c.set(string(gateway.GatewayConditionProgrammed), "", "", s.Refused)
		return gateway.ListenerSetStatus{Conditions: c.list()}
	}
	var none, accepted *Problem
	if !s.Valid() && !s.NoService {
		none = &Problem{string(gateway.ListenerSetReasonListenersNotValid), "None of the ListenerSet's listeners are valid"}
		accepted = none
	}
	if s.Parent != nil {
		accepted = &Problem{s.Parent.Reason, "Parent not accepted: " + s.Parent.Message}
	}
	c.set(string(gateway.GatewayConditionAccepted), string(gateway.GatewayReasonAccepted), "Resource accepted", accepted)
	at.programmed(c, s.Services)
	if none != nil {
		c.set(string(gateway.GatewayConditionProgrammed), "", "", none)
	}
	out := gateway.ListenerSetStatus{Conditions: c.list()}
	for _, l := range s.Listeners {
		out.Listeners = append(out.Listeners, gateway.ListenerEntryStatus(l.Status()))
	}
	return out
}
