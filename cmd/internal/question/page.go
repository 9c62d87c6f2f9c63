package question

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"

	"github.com/coxswain-mesh/coxswain/cmd/internal/rules"
	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/sdk/redact"
	"github.com/coxswain-mesh/coxswain/sdk/simulator"
)

// Answer is what the page says.
type Answer struct {
	Node string `json:"node"`
	URL  string `json:"url"`
	// Outcome is where the request goes, and each decision on its way.
	Outcome *simulator.Outcome `json:"outcome"`
	// Rules are those of people's objects that the request came to, in order, with their places.
	Rules []rules.Rule `json:"rules"`
}

// Path and About are those of the page.
const (
	Path  = "/debug/route"
	About = "?proxyID=NODE&url=URL[&inbound=true&outbound=true&to=IP:PORT&from=IP&method=GET&header=NAME: VALUE&sni=NAME&alpn=NAME&peer=URI]: " +
		"where a request through a proxy would go, and why, as `coxswain route` says it"
)

// What is read of a question: so many bytes of it, and so many headers.
const (
	mostBytes   = 16 << 10
	mostHeaders = 100
)

// Pages are those of this package.
func Pages(of admin.Source) []admin.Page {
	return []admin.Page{Page(of), ReachPage(of), TopologyPage(of), ChangesPage(of)}
}

// Page answers questions about connected proxies, whose configurations are walked through as they
// are on other pages: without what is secret.
func Page(of admin.Source) admin.Page {
	return admin.Page{Path: Path, About: About, Own: true, Serve: func(w http.ResponseWriter, r *http.Request) {
		a, code, err := answer(of, r.URL.RawQuery)
		if err != nil {
			http.Error(w, err.Error(), code)
			return
		}
		write(w, a)
	}}
}

// write answers with JSON; what looks like a secret is not in it.
func write(w http.ResponseWriter, v any) {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(redact.Strings(text), '\n'))
}

func answer(of admin.Source, raw string) (a *Answer, code int, err error) {
	if len(raw) > mostBytes {
		return nil, http.StatusRequestURITooLong, fmt.Errorf("the question has more than %d bytes", mostBytes)
	}
	args, err := url.ParseQuery(raw)
	if err != nil {
		return nil, http.StatusBadRequest, err
	}
	node, address := args.Get("proxyID"), args.Get("url")
	if node == "" || address == "" {
		return nil, http.StatusBadRequest,
			fmt.Errorf("say which proxy, and where the request goes to: %s?proxyID=NODE&url=http://HOST/PATH (/debug/streams lists proxies)", Path)
	}
	q, err := read(args)
	if err != nil {
		return nil, http.StatusBadRequest, err
	}
	types, ok := of.Dump(node)
	if !ok {
		return nil, http.StatusNotFound, fmt.Errorf("proxy %q is not connected (/debug/streams lists those that are)", node)
	}
	config, err := configOf(types)
	if err != nil {
		return nil, http.StatusInternalServerError, err
	}
	conn, request, err := q.Ask(config, node, address)
	if err != nil {
		return nil, http.StatusBadRequest, err
	}
	a = &Answer{Node: node, URL: address, Outcome: config.Walk(conn, request), Rules: []rules.Rule{}}
	places := placesOf(of)
	for _, rule := range rules.Touched(config, a.Outcome) {
		rule.Touched = true
		places.Own(&rule)
		a.Rules = append(a.Rules, rule)
	}
	places.Say(a.Outcome)
	return a, 0, nil
}

func read(args url.Values) (*Question, error) {
	q := &Question{
		Inbound: args.Get("inbound") == "true", Outbound: args.Get("outbound") == "true", To: args.Get("to"), From: args.Get("from"),
		SNI: args.Get("sni"), Peer: args.Get("peer"), ALPN: args["alpn"], Method: args.Get("method"), Header: args["header"],
	}
	if q.Method == "" {
		q.Method = http.MethodGet
	}
	if len(q.Header) > mostHeaders {
		return nil, fmt.Errorf("the question has %d headers; there may be %d", len(q.Header), mostHeaders)
	}
	return q, nil
}

// configOf is what a proxy has, without what is secret.
func configOf(types []admin.TypeDump) (*simulator.Config, error) {
	c := &simulator.Config{}
	for _, t := range types {
		if t.Sensitive {
			continue
		}
		for _, b := range t.Bodies {
			value := redact.Message(t.Type, b.Value())
			var err error
			switch t.Type {
			case admin.TypeURL("lds"):
				c.Listeners, err = with(c.Listeners, &listenerv3.Listener{}, value)
			case admin.TypeURL("rds"):
				c.Routes, err = with(c.Routes, &routev3.RouteConfiguration{}, value)
			case admin.TypeURL("cds"):
				c.Clusters, err = with(c.Clusters, &clusterv3.Cluster{}, value)
			case admin.TypeURL("eds"):
				c.Endpoints, err = with(c.Endpoints, &endpointv3.ClusterLoadAssignment{}, value)
			case admin.TypeURL("ecds"):
				c.Filters, err = with(c.Filters, &corev3.TypedExtensionConfig{}, value)
			}
			if err != nil {
				return nil, fmt.Errorf("%s %s: %w", t.Type, b.Name(), err)
			}
		}
	}
	return c, nil
}

func with[M proto.Message](all []M, one M, value []byte) ([]M, error) {
	err := proto.Unmarshal(value, one)
	return append(all, one), err
}

// placesOf are the places of the objects that rules are of, and of those that these were derived
// from.
func placesOf(of admin.Source) rules.Places {
	out, written := rules.Places{}, of.Derivations()
	from := map[string]bool{}
	for _, n := range written {
		from[n.Table] = true
	}
	for _, t := range of.Tables() {
		_, kind, config := strings.Cut(t.Name, "/")
		if !config || !from[t.Name] && !slices.Contains(rules.Kinds, kind) {
			continue
		}
		for _, row := range of.Rows(t.Name) {
			var from *admin.RowName
			if n, derived := written[admin.RowName{Table: t.Name, Key: row.Key}]; derived {
				from = &n
			}
			out.Add(kind, row.Key, row.Source, from)
		}
	}
	return out
}
