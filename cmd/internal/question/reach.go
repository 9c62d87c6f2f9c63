package question

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/coxswain-mesh/coxswain/cmd/internal/rules"
	"github.com/coxswain-mesh/coxswain/core/admin"
)

// Reach is where a proxy's routes lead.
type Reach struct {
	Node  string `json:"node"`
	Hosts []Host `json:"hosts"`
	// More is how many hosts are left out.
	More int `json:"more,omitempty"`
}

// Host is a virtual host: what requests to it come to.
type Host struct {
	// Routes is the route configuration that has it.
	Routes string `json:"routes"`
	Host   string `json:"host"`
	Ways   []Way  `json:"ways"`
}

// Way is a route of a virtual host.
type Way struct {
	// Rule says which requests take it and, where somebody wrote it, the object and its place.
	Rule rules.Rule `json:"rule"`
	// To are the clusters that get a share; none: the proxy answers itself, with Answer.
	To     []Target `json:"to,omitempty"`
	Answer string   `json:"answer,omitempty"`
}

// Target is a cluster and its share of requests, in percent.
type Target struct {
	Cluster string  `json:"cluster"`
	Percent float64 `json:"percent"`
}

// ReachPath and ReachAbout are those of the page.
const (
	ReachPath  = "/debug/reach"
	ReachAbout = "?proxyID=NODE: where a proxy's routes lead: hosts, and the clusters that get their requests"
)

// mostHosts is how many hosts are shown.
const mostHosts = 500

// ReachPage answers where the routes of connected proxies lead.
func ReachPage(of admin.Source) admin.Page {
	return admin.Page{Path: ReachPath, About: ReachAbout, Own: true, Serve: func(w http.ResponseWriter, r *http.Request) {
		node := r.URL.Query().Get("proxyID")
		if node == "" {
			http.Error(w, "say which proxy: ?proxyID=NODE (/debug/streams lists those that are connected)", http.StatusBadRequest)
			return
		}
		types, ok := of.Dump(node)
		if !ok {
			http.Error(w, fmt.Sprintf("proxy %q is not connected (/debug/streams lists those that are)", node), http.StatusNotFound)
			return
		}
		config, err := configOf(types)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		write(w, reach(of, node, config.Routes))
	}}
}

func reach(of admin.Source, node string, all []*routev3.RouteConfiguration) *Reach {
	out, places := &Reach{Node: node, Hosts: []Host{}}, placesOf(of)
	for _, c := range all {
		for _, v := range c.VirtualHosts {
			h := Host{Routes: c.Name, Host: v.Name, Ways: []Way{}}
			for _, r := range v.Routes {
				way := wayOf(r)
				if way.Rule.Object == "" {
					way.Rule.Kind = ""
				}
				places.Own(&way.Rule)
				h.Ways = append(h.Ways, way)
			}
			out.Hosts = append(out.Hosts, h)
		}
	}
	slices.SortFunc(out.Hosts, func(a, b Host) int { return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Routes, b.Routes)) })
	if n := len(out.Hosts); n > mostHosts {
		out.Hosts, out.More = out.Hosts[:mostHosts], n-mostHosts
	}
	return out
}

func wayOf(r *routev3.Route) Way {
	w := Way{Rule: rules.OfRoute(r)}
	switch a := r.GetAction().(type) {
	case *routev3.Route_DirectResponse:
		w.Answer = fmt.Sprintf("status %d", a.DirectResponse.GetStatus())
	case *routev3.Route_Redirect:
		w.Answer = "a redirect"
	case *routev3.Route_Route:
		switch to := a.Route.GetClusterSpecifier().(type) {
		case *routev3.RouteAction_Cluster:
			w.To = []Target{{to.Cluster, 100}}
		case *routev3.RouteAction_WeightedClusters:
			total := 0.0
			for _, c := range to.WeightedClusters.GetClusters() {
				total += float64(c.GetWeight().GetValue())
			}
			for _, c := range to.WeightedClusters.GetClusters() {
				w.To = append(w.To, Target{c.GetName(), 100 * float64(c.GetWeight().GetValue()) / max(total, 1)})
			}
		default:
			w.Answer = "a cluster that the request names"
		}
	default:
		w.Answer = "something that is not known here"
	}
	return w
}
