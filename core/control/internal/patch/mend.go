package patch

import (
	"fmt"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/control/internal/pieces"
	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/sdk/envoyrules"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
)

// mend makes one that Envoy takes of a resource that it would refuse: virtual hosts, filter chains
// and filters that are at fault are as before (nil: closed). said names them; nil: it can't be.
func mend(typeURL string, now, before *view.Body, why error) (mended *view.Body, said string) {
	m, err := newMessage(typeURL)
	if err != nil || proto.Unmarshal(now.Value(), m) != nil {
		return nil, ""
	}
	book, before := pieces.NewStore().Of(typeURL), closed(m, now, before)
	var s *pieces.Search
	if bad := alone(m); len(bad) > 0 {
		s = book.Known(now, before, bad)
	}
	if s == nil || s.Body() == nil || !taken(typeURL, s.Body()) {
		s = book.Search(now, before, nil)
	}
	for s != nil && !s.Ended() {
		if taken(typeURL, s.Body()) {
			s.Accepted()
		} else {
			s.Refused()
		}
	}
	if s == nil || !taken(typeURL, s.Body()) {
		return nil, ""
	}
	var bad []string
	for _, p := range s.Bad() {
		bad = append(bad, p.String())
	}
	return s.Body(), fmt.Sprintf("%s of its answer about %s, which Envoy would refuse: %v", strings.Join(bad, ", "), now.Name(), why)
}

// alone are the pieces that Envoy would refuse by themselves, as far as they have names: with them
// there is nothing to search for.
func alone(m proto.Message) (bad []pieces.Piece) {
	switch m := m.(type) {
	case *routev3.RouteConfiguration:
		for _, h := range m.VirtualHosts {
			if envoyrules.CheckAll(h) != nil {
				bad = append(bad, pieces.Piece{Host: h.Name})
			}
		}
	case *listenerv3.Listener:
		for _, c := range m.FilterChains {
			if c.Name != "" && envoyrules.CheckAll(c) != nil {
				bad = append(bad, pieces.Piece{Chain: c.Name})
			}
		}
	}
	return bad
}

func taken(typeURL string, b *view.Body) bool {
	m, err := newMessage(typeURL)
	return err == nil && proto.Unmarshal(b.Value(), m) == nil && envoyrules.CheckAll(m) == nil
}

// closed is the resource as it was before, with closed virtual hosts in the place of those that it
// lacks: without them their requests would go to another one. Filter chains are closed by the
// search.
func closed(m proto.Message, now, before *view.Body) *view.Body {
	is, ok := m.(*routev3.RouteConfiguration)
	was := &routev3.RouteConfiguration{}
	if !ok || before != nil && proto.Unmarshal(before.Value(), was) != nil {
		return before
	}
	had := map[string]bool{}
	for _, h := range was.VirtualHosts {
		had[h.Name] = true
	}
	for _, h := range is.VirtualHosts {
		if !had[h.Name] {
			was.VirtualHosts = append(was.VirtualHosts, &routev3.VirtualHost{Name: h.Name, Domains: h.Domains})
		}
	}
	bytes, err := proto.MarshalOptions{Deterministic: true}.Marshal(was)
	if err != nil {
		return before
	}
	return view.NewBody(pieces.RouteConfiguration, now.Name(), bytes, 0)
}
