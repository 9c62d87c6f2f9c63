package reliability

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const tenantPromise = "it costs that namespace; edits of others arrive"

// tenant is the namespace whose objects are too many.
const tenant = "evil"

// bounded lets a namespace cost 128 MiB, so that all processes together have less than others may.
var bounded = []string{"--memoryLimit", fmt.Sprint(512 << 20)}

// tenantSet declares the folder of the tenant, who writes nowhere else.
func tenantSet(w *world) string {
	if err := os.MkdirAll(w.tenantDir(), 0o700); err != nil {
		w.t.Fatal(err)
	}
	return fmt.Sprintf("- name: tenant\n  kind: config\n  builtin: config/file\n  config: {dir: %s}\n", w.tenantDir())
}

func (w *world) tenantDir() string { return filepath.Join(w.root, "tenant") }

// tenantTrials are floods of objects by one namespace.
func tenantTrials() []trial {
	return []trial{
		{name: "10,000 VirtualServices", promise: tenantPromise, flags: bounded, set: tenantSet, do: func(w *world) {
			w.crowd(10_000, func(i int) string {
				return object("networking.istio.io/v1", "VirtualService", i, fmt.Sprintf(
					"{hosts: [evil-%[1]d.example], http: [{match: [{uri: {prefix: /a}}], route: [{destination: {host: "+
						"crowd-%[2]d.example}}]}, {route: [{destination: {host: crowd-%[2]d.example}}]}]}", i, i%crowd))
			})
		}},
		{name: "25,600 hosts of ServiceEntries", promise: tenantPromise, flags: bounded, set: tenantSet, do: func(w *world) {
			w.crowd(100, func(i int) string {
				hosts := make([]string, 256)
				for j := range hosts {
					hosts[j] = fmt.Sprintf("h%d-%d.evil.example", i, j)
				}
				return object("networking.istio.io/v1", "ServiceEntry", i, "{hosts: ["+strings.Join(hosts, ", ")+
					"], location: MESH_EXTERNAL, resolution: DNS, ports: [{number: 443, name: tls, protocol: TLS}, {number: 80, name: http, protocol: HTTP}]}")
			})
		}},
		{name: "100,000 endpoints of one namespace", promise: tenantPromise, flags: bounded, set: tenantSet, do: func(w *world) {
			w.crowd(100, func(i int) string {
				endpoints := make([]string, 1000)
				for j := range endpoints {
					endpoints[j] = fmt.Sprintf("{address: 10.%d.%d.%d}", i, j>>8, j&255)
				}
				return object("networking.istio.io/v1", "ServiceEntry", i, fmt.Sprintf(
					"{hosts: [e%d.evil.example], location: MESH_INTERNAL, resolution: STATIC, ports: [{number: 80, "+
						"name: http, protocol: HTTP}], endpoints: [%s]}", i, strings.Join(endpoints, ", ")))
			})
		}},
		{name: "5,000 Sidecars", promise: tenantPromise, flags: bounded, set: tenantSet, do: func(w *world) {
			w.crowd(5000, func(i int) string {
				return object("networking.istio.io/v1", "Sidecar", i, fmt.Sprintf(
					"{workloadSelector: {labels: {app: a%d}}, egress: [{hosts: ['./*', 'test/crowd-%d.example', '*/*']}]}", i, i%crowd))
			})
		}},
		{name: "2,000 Gateways", promise: tenantPromise, flags: bounded, set: tenantSet, do: func(w *world) {
			w.crowd(2000, func(i int) string {
				return object("networking.istio.io/v1", "Gateway", i, fmt.Sprintf(
					"{selector: {istio: ingressgateway}, servers: [{port: {number: %d, name: http, protocol: HTTP}, "+
						"bind: 127.0.0.1, hosts: ['evil/evil-%d.example']}]}", w.port, i))
			})
		}},
		{name: "chains and loops of delegates", promise: tenantPromise, flags: bounded, set: tenantSet, do: func(w *world) {
			w.crowd(3000, delegates)
		}},
		{name: "2,000 large regular expressions", promise: tenantPromise, flags: bounded, set: tenantSet, do: func(w *world) {
			w.crowd(2000, func(i int) string {
				return object("networking.istio.io/v1", "VirtualService", i, fmt.Sprintf(
					"{hosts: [evil-%d.example], http: [{match: [{uri: {regex: '%s'}}], route: [{destination: {host: crowd-%d.example}}]}]}",
					i, regex(i), i%crowd))
			})
		}},
		{
			name:    "20,000 AuthorizationPolicies",
			promise: "all that a namespace can't keep is forbidden there, nothing is allowed", flags: bounded,
			set: tenantSet, do: func(w *world) {
				w.crowd(20_000, func(i int) string {
					return object("security.istio.io/v1", "AuthorizationPolicy", i, fmt.Sprintf(
						"{action: DENY, rules: [{from: [{source: {namespaces: [n%d]}}], to: [{operation: {paths: [/a%d, /b%d]}}]}]}", i, i, i))
				})
			},
		},
	}
}

// delegates is one of many VirtualServices: a third have routes that others continue, a third pass
// them on, of which some to themselves or in a circle, and all pass them on to the same.
func delegates(i int) string {
	var text strings.Builder
	if i%3 == 0 {
		text.WriteString(fmt.Sprintf("hosts: [evil-%d.example], ", i))
	}
	text.WriteString("http: [")
	for j := range 10 {
		to := (i + 1 + j*7) % 3000
		if i%3 == 1 && j == 0 {
			to = i // itself
		}
		text.WriteString(fmt.Sprintf("{match: [{uri: {prefix: /p%d}}], delegate: {name: o-%d, namespace: %s}}, ", j, to, tenant))
	}
	if i%3 != 0 {
		text.WriteString(fmt.Sprintf("{route: [{destination: {host: crowd-%d.example}}]}", i%crowd))
	}
	return object("networking.istio.io/v1", "VirtualService", i, "{"+text.String()+"]}")
}

// regex is one that takes thousands of instructions.
func regex(i int) string {
	var text strings.Builder
	for j := range 60 {
		fmt.Fprintf(&text, "/(a%d|b[0-9]{1,20}|[a-z]{2,30}x%d)?", j, i)
	}
	return text.String()
}

func object(version, kind string, i int, spec string) string {
	return fmt.Sprintf("---\napiVersion: %s\nkind: %s\nmetadata: {name: o-%d, namespace: %s}\nspec: %s\n", version, kind, i, tenant, spec)
}

// crowd has the tenant write so many objects, some hundred in a file, and measures edits of others
// meanwhile, and afterwards.
func (w *world) crowd(n int, object func(i int) string) {
	const inFile = 500
	w.under(func(ctx context.Context, ready func()) {
		for from := 0; from < n && ctx.Err() == nil; from += inFile {
			var text strings.Builder
			for i := from; i < min(n, from+inFile); i++ {
				text.WriteString(object(i))
			}
			if err := os.WriteFile(filepath.Join(w.tenantDir(), fmt.Sprintf("evil-%d.yaml", from)), []byte(text.String()), 0o600); err != nil {
				w.t.Error(err)
			}
		}
		for !w.arrived(n) && ctx.Err() == nil {
			pause(ctx, between)
		}
		ready()
		<-ctx.Done()
	})
	for _, line := range w.full() {
		w.note("%s", line)
	}
}

// arrived reports whether the tenant's objects are in the core, or as many as there is room for.
func (w *world) arrived(n int) bool { return w.shown()["tenant"].Rows >= n || len(w.full()) > 0 }

// full is what the control plane says of namespaces that are full.
func (w *world) full() (lines []string) {
	for _, p := range w.shown() {
		for _, f := range p.Faults {
			if strings.HasPrefix(f.What, "namespace ") {
				lines = append(lines, p.Name+": "+f.Reason)
			}
		}
	}
	slices.Sort(lines)
	return lines
}
