package gateway

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
	"github.com/coxswain-mesh/coxswain/sdk/envoyrules"
)

// Match says which connections a chain is for, by names in TLS hellos, of which a `*` means any,
// and protocols that are offered there; nil: all.
func Match(names, protocols []string) *listenerv3.FilterChainMatch {
	m := &listenerv3.FilterChainMatch{ApplicationProtocols: protocols}
	if !slices.Contains(names, "*") {
		seen := envoyrules.Domains{}
		m.ServerNames = slices.DeleteFunc(slices.Sorted(slices.Values(names)), func(n string) bool { return !seen.Take(n) })
	}
	if len(m.ServerNames) == 0 && len(m.ApplicationProtocols) == 0 {
		return nil
	}
	return m
}

// Claims are the names of a listener, with the filter chain that has each: Envoy refuses a listener
// of which two chains ask for the same. Who asks first has a name.
type Claims struct {
	taken   envoyrules.Connections
	holders map[string]holder
	// chains is how many asked.
	chains int
}

// holder is a chain by its number and its owner.
type holder struct {
	chain int
	Owner
}

// NewClaims returns those of a listener without chains.
func NewClaims() *Claims {
	return &Claims{taken: envoyrules.Connections{}, holders: map[string]holder{}}
}

// Loss is what a filter chain asks for and has not.
type Loss struct {
	// Names in TLS hellos; none: all connections.
	Names []string
	// To is who has them; Err, if Envoy would refuse them whoever had them, is why.
	To  Owner
	Err error
}

// Take takes for a chain what it asks for (nil: all), as far as nobody has it: the names that are
// left, and what is lost, in one Loss for each that it is lost to. kept is false where nothing is
// left. A route's own order decides between the names of its rules: a later one loses nothing by
// it that is worth telling.
func (c *Claims) Take(m *listenerv3.FilterChainMatch, of Owner) (left []string, lost []Loss, kept bool) {
	c.chains++
	for _, name := range orAll(m.GetServerNames()) {
		one := &listenerv3.FilterChainMatch{ApplicationProtocols: m.GetApplicationProtocols()}
		if name != "" {
			one.ServerNames = []string{name}
		}
		key := strings.TrimPrefix(strings.ToLower(name), "*") + "|" + strings.Join(m.GetApplicationProtocols(), ",")
		has := c.holders[key]
		switch err := c.taken.Claim(one); {
		case err == nil:
			c.holders[key] = holder{c.chains, of}
			kept = true
			if name != "" {
				left = append(left, name)
			}
		case !errors.Is(err, envoyrules.ErrSameConnections):
			lost = append(lost, Loss{one.ServerNames, Owner{}, err})
		case has.chain == c.chains || of.Service != "" && of.Service == has.Service:
		default:
			lost = addLoss(lost, has.Owner, one.ServerNames)
		}
	}
	return left, lost, kept
}

func addLoss(lost []Loss, to Owner, names []string) []Loss {
	i := slices.IndexFunc(lost, func(l Loss) bool { return l.Err == nil && l.To == to })
	if i < 0 {
		return append(lost, Loss{names, to, nil})
	}
	lost[i].Names = append(lost[i].Names, names...)
	return lost
}

func orAll(names []string) []string {
	if len(names) == 0 {
		return []string{""}
	}
	return names
}

// maxNames bounds the names that a text has.
const maxNames = 5

// What returns in words what is lost.
func (l *Loss) What() string {
	if len(l.Names) == 0 {
		return "all other connections"
	}
	text := strings.Join(l.Names[:min(len(l.Names), maxNames)], ", ")
	if more := len(l.Names) - maxNames; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Why returns in words what an owner lost, to whom, and what to do.
func (l *Loss) Why(of Owner) string {
	if l.Err != nil {
		return fmt.Sprintf("%s asks for %s, which is left out, as Envoy would refuse it: %v", of, l.What(), l.Err)
	}
	return fmt.Sprintf("%s doesn't get %s: %s asks for the same, and comes first; let one of them ask for other names, or listen elsewhere",
		of, l.What(), l.To)
}

// Concerns reports whether hosts of routes are among what is lost.
func (l *Loss) Concerns(hosts []string) bool {
	return len(l.Names) == 0 || slices.ContainsFunc(l.Names, func(name string) bool {
		return slices.ContainsFunc(hosts, func(h string) bool { return istio.OverlapsFold(name, h) })
	})
}
