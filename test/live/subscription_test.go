package live

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/types/known/anypb"

	// Types whose resources are known by name.
	_ "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
)

// conversation is what an Envoy and the control plane have said to each other.
type conversation struct {
	mu      sync.Mutex
	types   map[string]*subscription
	refused []string
}

// subscription is what an Envoy wants of a type and what it has got.
type subscription struct {
	wanted, got map[string]bool
	// all: everything is wanted.
	all bool
	// nonce of the last response, and the last that the Envoy accepted or refused.
	nonce, taken string
}

func newConversation() *conversation { return &conversation{types: map[string]*subscription{}} }

func (c *conversation) subscription(typeURL string) *subscription {
	s := c.types[typeURL]
	if s == nil {
		s = &subscription{wanted: map[string]bool{}, got: map[string]bool{}}
		c.types[typeURL] = s
	}
	return s
}

func (c *conversation) asked(r *discoveryv3.DiscoveryRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.subscription(r.TypeUrl)
	s.wanted = map[string]bool{}
	for _, name := range r.ResourceNames {
		s.wanted[name] = true
	}
	s.all = len(s.wanted) == 0
	c.took(s, r.TypeUrl, r.ResponseNonce, r.GetErrorDetail().GetMessage())
}

func (c *conversation) askedDelta(r *discoveryv3.DeltaDiscoveryRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := c.types[r.TypeUrl] == nil
	s := c.subscription(r.TypeUrl)
	for _, name := range r.ResourceNamesSubscribe {
		s.wanted[name] = true
	}
	for _, name := range r.ResourceNamesUnsubscribe {
		delete(s.wanted, name)
	}
	if s.wanted["*"] || first && len(s.wanted) == 0 {
		s.all = true
	}
	delete(s.wanted, "*")
	c.took(s, r.TypeUrl, r.ResponseNonce, r.GetErrorDetail().GetMessage())
}

func (c *conversation) took(s *subscription, typeURL, nonce, complaint string) {
	if nonce != "" {
		s.taken = nonce
	}
	if complaint != "" {
		c.refused = append(c.refused, typeURL+": "+complaint)
	}
}

func (c *conversation) answered(r *discoveryv3.DiscoveryResponse) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.subscription(r.TypeUrl)
	for _, resource := range r.Resources {
		s.got[nameOf(resource)] = true
	}
	s.nonce = r.Nonce
}

func (c *conversation) answeredDelta(r *discoveryv3.DeltaDiscoveryResponse) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.subscription(r.TypeUrl)
	for _, resource := range r.Resources {
		s.got[resource.Name] = true
	}
	for _, name := range r.RemovedResources {
		s.got[name] = true
	}
	s.nonce = r.Nonce
}

func nameOf(resource *anypb.Any) string {
	m, err := resource.UnmarshalNew()
	if err != nil {
		return err.Error()
	}
	switch x := m.(type) {
	case interface{ GetClusterName() string }:
		return x.GetClusterName()
	case interface{ GetName() string }:
		return x.GetName()
	}
	return ""
}

// settled returns nil once all that was asked for is answered and all answers are taken.
func (c *conversation) settled() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, typeURL := range slices.Sorted(maps.Keys(c.types)) {
		s := c.types[typeURL]
		missing := slices.DeleteFunc(slices.Sorted(maps.Keys(s.wanted)), func(name string) bool { return s.got[name] })
		switch {
		case len(missing) > 0:
			return fmt.Errorf("%s: no answer for %s", typeURL, strings.Join(missing, ", "))
		case s.all && s.nonce == "":
			return fmt.Errorf("%s: no answer", typeURL)
		case s.taken != s.nonce:
			return fmt.Errorf("%s: the last answer is neither accepted nor refused", typeURL)
		}
	}
	return nil
}

// refusals are the answers that the Envoy refused, with its reasons.
func (c *conversation) refusals() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.refused)
}
