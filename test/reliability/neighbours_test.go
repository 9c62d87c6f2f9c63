package reliability

import (
	"archive/zip"
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpc "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// neighbourTrials are what one namespace's objects, or one stranger, did to all others in the
// hostile trial of the whole, each with the row of that trial.
func neighbourTrials() []trial {
	return []trial{
		{name: "two that refuse the gateway's routes", promise: votePromise, do: func(w *world) { w.refuseRoutes(2) }},
		{
			name: "stranger among the first proxies", promise: votePromise,
			flags: []string{"--rolloutFirst", "namespace=canary", "--rolloutHold", "1s"}, secure: true, begun: firstProxy, do: firstOfAll,
		},
		{name: "header that Envoy refuses", promise: neighbourPromise, do: func(w *world) {
			w.neighbour(`headers: {request: {set: {x: "%NOPE%"}}}, directResponse: {status: 200}`)
		}},
		{name: "weights that Envoy refuses", promise: neighbourPromise, do: func(w *world) {
			const to = "{weight: 2147483647, destination: {host: crowd-%d.example}}"
			w.neighbour("route: [" + fmt.Sprintf(to, 1) + ", " + fmt.Sprintf(to, 2) + ", " + fmt.Sprintf(to, 3) + "]")
		}},
		{name: "patch that Envoy refuses", promise: neighbourPromise, do: func(w *world) {
			w.place("spoils.yaml", fmt.Sprintf(spoils, w.port))
			w.neighbour("directResponse: {status: 200}")
		}},
		{name: "gateway's port by its name", promise: "who is served stays", do: func(w *world) {
			w.routeEdits(func() { w.place("thief.yaml", fmt.Sprintf(thief, w.port)) })
		}},
		{name: "secrets in configuration", promise: "no archive has them", do: inlineSecrets},
	}
}

const neighbourPromise = "its own piece is left out; edits of others arrive"

// host is another host of the gateway, with a route of the tenant's.
const host = `apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: shared, namespace: test}
spec:
  selector: {istio: ingressgateway}
  servers: [{port: {number: %[1]d, name: http, protocol: HTTP}, bind: 127.0.0.1, hosts: [evil.example]}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: v, namespace: evil}
spec:
  hosts: [evil.example]
  gateways: [test/shared]
  http: [{%[2]s}]
`

// spoils is a patch of the tenant's host that says who gets in, and that no Envoy takes.
const spoils = `apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: spoils, namespace: test}
spec:
  configPatches:
  - applyTo: VIRTUAL_HOST
    match: {context: GATEWAY, routeConfiguration: {vhost: {name: "evil.example:%d"}}}
    patch: {operation: MERGE, value: {require_tls: ALL, request_headers_to_add: [{header: {key: x, value: "%%NOPE%%"}}]}}
`

// thief asks for the gateway's port, and comes first by its name.
const thief = `apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: a, namespace: evil}
spec:
  selector: {istio: ingressgateway}
  servers: [{port: {number: %[1]d, name: tcp, protocol: TCP}, bind: 127.0.0.1, hosts: ["*"]}]
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: a, namespace: evil}
spec:
  hosts: ["*"]
  gateways: [a]
  tcp: [{route: [{destination: {host: crowd-1.example, port: {number: 80}}}]}]
`

// neighbour has the tenant say what its host's route is, and measures edits of others' routes at
// the gateway meanwhile.
func (w *world) neighbour(route string) {
	w.routeEdits(func() { w.place("evil.yaml", fmt.Sprintf(host, w.port, route)) })
}

// routeEdits measures edits of a route at the gateway after something was done: ten, and as long as
// 600 requests take.
func (w *world) routeEdits(after func()) {
	w.routed()
	w.figures.calm = 0
	for range 3 {
		d, _ := w.routed()
		w.figures.calm = max(w.figures.calm, d)
	}
	after()
	until := w.asked() + 600
	for n := 0; (n < 10 || w.asked() < until) && w.figures.lost < 3; n++ {
		d, ok := w.routed()
		w.figures.edits++
		w.figures.worst = max(w.figures.worst, d)
		if !ok {
			w.figures.lost++
		}
	}
}

// routed edits a header that the gateway's routes add, and returns after how long it has it.
func (w *world) routed() (time.Duration, bool) {
	w.t.Helper()
	w.edited++
	began := time.Now()
	want := fmt.Sprint(w.edited)
	w.place("routes.yaml", strings.Replace(routesConfig, "http: [{route", `http: [{headers: {response: {set: {x-edit: "`+want+`"}}}, route`, 1))
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for time.Since(began) < w.patience() {
		r, err := http.NewRequest(http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/", w.port), nil)
		if err != nil {
			w.t.Fatal(err)
		}
		r.Host = "web.example"
		if answer, err := client.Do(r); err == nil {
			_ = answer.Body.Close()
			if answer.Header.Get("x-edit") == want {
				return time.Since(began), true
			}
		}
		pause(w.t.Context(), between)
	}
	return time.Since(began), false
}

// refuseRoutes has strangers that say they are the gateway accept its routes once, and refuse all
// others.
func (w *world) refuseRoutes(clients int) {
	ads := w.ads()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	ready := make(chan struct{}, clients)
	defer func() { cancel(); all.Wait() }()
	node := &corev3.Node{Id: "router~127.0.0.21~gateway.test~test.svc.cluster.local", Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{
		"NAMESPACE": structpb.NewStringValue("test"),
		"LABELS":    structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{"istio": structpb.NewStringValue("ingressgateway")}}),
	}}}
	names := []string{fmt.Sprintf("http.%d.127.0.0.1", w.port), fmt.Sprintf("http.%d", w.port)}
	w.routeEdits(func() {
		for range clients {
			all.Go(func() {
				insist(ctx, func(ctx context.Context) {
					s, err := ads.StreamAggregatedResources(ctx)
					if err == nil {
						err = s.Send(&discoveryv3.DiscoveryRequest{Node: node, TypeUrl: rds, ResourceNames: names})
					}
					for accepted := false; err == nil; accepted = true {
						var answer *discoveryv3.DiscoveryResponse
						if answer, err = s.Recv(); err != nil {
							break
						}
						reply := &discoveryv3.DiscoveryRequest{TypeUrl: rds, ResourceNames: names, ResponseNonce: answer.Nonce}
						if accepted {
							reply.ErrorDetail = &rpc.Status{Code: 13, Message: "no"}
						}
						err = s.Send(reply)
						select {
						case ready <- struct{}{}:
						default:
						}
					}
				})
			})
		}
		for range clients {
			<-ready
		}
	})
}

// firstProxy connects one of the first proxies, which has an identity and accepts all.
func firstProxy(w *world) {
	ads := discoveryv3.NewAggregatedDiscoveryServiceClient(w.as("canary", "good"))
	first := &probe{name: "first", news: make(chan struct{}, 1)}
	ctx, leave := context.WithCancel(context.Background())
	var left sync.WaitGroup
	left.Go(func() {
		insist(ctx, func(ctx context.Context) { _ = first.sotw(ctx, ads, newNode(stranger, "good", "canary")) })
	})
	w.t.Cleanup(func() { leave(); left.Wait() })
	if !first.has(w.edited, time.After(wait.Deadline)) {
		w.t.Fatal("the first proxy is served nothing")
	}
}

// firstOfAll has a stranger say again and again that it is one of the first proxies, and refuse
// what it gets.
func firstOfAll(w *world) {
	ads := w.ads()
	w.under(func(ctx context.Context, ready func()) {
		insist(ctx, func(ctx context.Context) {
			s, err := ads.StreamAggregatedResources(ctx)
			if err == nil {
				err = s.Send(&discoveryv3.DiscoveryRequest{Node: newNode("127.0.0.66", "x", "canary"), TypeUrl: cds})
			}
			for err == nil {
				var answer *discoveryv3.DiscoveryResponse
				if answer, err = s.Recv(); err == nil {
					_ = s.Send(&discoveryv3.DiscoveryRequest{TypeUrl: cds, ResponseNonce: answer.Nonce, ErrorDetail: &rpc.Status{Code: 13, Message: "no"}})
					ready()
					pause(ctx, 500*time.Millisecond)
					return
				}
			}
		})
	})
}

// inlineSecrets has keys and passwords in configuration, and looks for them in the archive for a
// bug report.
func inlineSecrets(w *world) {
	w.place("secrets.yaml", `apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: secrets, namespace: test}
spec:
  configPatches:
  - applyTo: CLUSTER
    match: {context: SIDECAR_OUTBOUND}
    patch:
      operation: ADD
      value:
        name: with-inline-key
        connect_timeout: 1s
        metadata: {filter_metadata: {x: {password: `+secret+`}}}
        transport_socket:
          name: envoy.transport_sockets.tls
          typed_config:
            "@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext
            common_tls_context: {validation_context: {trusted_ca: {inline_string: ""}}, tls_certificates: [{private_key: {inline_string: `+secret+`}}]}
`)
	w.pass(200)
	archive := filepath.Join(w.root, "report.zip")
	if said, code := w.command("bug-report", "--addr", w.plane.HTTP, "-o", archive); code != 0 {
		w.t.Fatalf("bug-report: %s", said)
	}
	r, err := zip.OpenReader(archive)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	var shown []string
	found := false
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			w.t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		_ = in.Close()
		if err != nil {
			w.t.Fatal(err)
		}
		found = found || strings.Contains(string(text), "with-inline-key")
		if strings.Contains(string(text), secret) {
			shown = append(shown, f.Name)
		}
	}
	if !found {
		w.t.Error("the archive doesn't even have the cluster")
	}
	if len(shown) > 0 {
		w.t.Errorf("they are shown by %v", shown)
	}
	w.note("shown by %d files of the archive", len(shown))
}
