package parity

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

var (
	histories = flag.Int("histories", 0, "compare after each step of so many random histories of Kubernetes' objects")
	steps     = flag.Int("steps", 12, "steps of a history, each of one to six edits at once")
)

// history is what becomes of objects in a cluster, by a seed.
type history struct {
	dice
	// makes are the kinds of objects that it makes.
	makes kindsOfMesh
	// objects are those that are there, by what names them.
	objects map[string]map[string]any
	// edits says what each step did.
	edits []string
}

// Objects have few names, so that they come again, and pods few addresses, so that one has that of
// another that has gone. What is changed in place of a pod, of a node, or of a pod's slice before
// it, is left to states.
const (
	historyNamespace = "gamma"
	historyPods      = 6
	historyAddresses = 4
	historyServices  = 6
)

// parsed is an object of a line of YAML.
func parsed(format string, args ...any) map[string]any {
	var o map[string]any
	if err := yaml.Unmarshal(fmt.Appendf(nil, format, args...), &o); err != nil {
		panic(fmt.Sprintf("%v: %s", err, fmt.Sprintf(format, args...)))
	}
	return o
}

func (h *history) put(format string, args ...any) { h.add(parsed(format, args...)) }

// add makes an object, or changes it.
func (h *history) add(o map[string]any) {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	meta := o["metadata"].(map[string]any)
	if _, ok := meta["namespace"]; !ok {
		meta["namespace"] = ""
	}
	verb := "make"
	if h.objects[name(o)] != nil {
		verb = "change"
	}
	h.objects[name(o)] = o
	h.edits = append(h.edits, fmt.Sprintf("%s %s", verb, text))
}

// step makes an edit, or several.
func (h *history) step() {
	for range 1 + h.r.IntN(6) {
		if keys := slices.Sorted(maps.Keys(h.objects)); len(keys) > 4 && h.chance(0.25) {
			key := pick(h.r, keys)
			if strings.Contains(key, " Namespace ") {
				continue
			}
			h.drop(key)
			continue
		}
		h.edit()
	}
}

// drop deletes an object. A pod's endpoints go with it, as those of a cluster with its controllers
// do: what istiod makes of others depends on what it saw before (docs/differences.md).
func (h *history) drop(key string) {
	delete(h.objects, key)
	h.edits = append(h.edits, "delete "+key)
	pod, is := strings.CutPrefix(key, "v1 Pod gamma ")
	if !is {
		return
	}
	for key, o := range h.objects {
		endpoints, slice := o["endpoints"].([]any)
		if !slice {
			continue
		}
		changed := maps.Clone(o)
		changed["endpoints"] = slices.DeleteFunc(slices.Clone(endpoints), func(e any) bool {
			ref, _ := e.(map[string]any)["targetRef"].(map[string]any)
			return ref["name"] == pod
		})
		h.objects[key] = changed
	}
}

// edit makes or changes an object.
func (h *history) edit() {
	if h.makes.gateway && (!h.makes.istio || h.chance(0.5)) {
		h.add(gatewayObjects{h.dice}.object())
		return
	}
	switch n := h.r.IntN(100); {
	case n < 22:
		h.service(h.r.IntN(historyServices))
	case n < 50:
		h.slice(h.r.IntN(historyServices))
	case n < 72:
		h.pod(h.r.IntN(historyPods))
	case n < 75:
		h.put("{apiVersion: v1, kind: Namespace, metadata: {name: gamma, labels: {team: %s%s}}}", h.one("a b"),
			h.some(0.3, ", topology.istio.io/network: net1"))
	default:
		h.istio()
	}
}

func (h *history) service(n int) {
	kind := []string{
		"clusterIP: 10.96.5.1, selector: {app: a}", "clusterIP: 10.96.5.2, selector: {app: b}",
		"clusterIP: None, selector: {app: a}", "clusterIP: 10.96.5.4",
		"type: ExternalName, externalName: out.example.com", "clusterIP: 10.96.5.6, type: LoadBalancer, selector: {tier: web}",
	}[n]
	if n != 4 {
		kind += h.some(0.15, ", publishNotReadyAddresses: true") + h.some(0.15, ", trafficDistribution: PreferClose")
	}
	if n != 2 && n != 4 {
		kind += h.some(0.1, ", internalTrafficPolicy: Local")
	}
	var ports []string
	for i, p := range []string{
		"{name: http, port: 80, targetPort: %s}", "{name: tcp, port: 90, targetPort: %s}",
		"{name: any, port: 91, targetPort: %s%s}", "{name: udp, port: 53, protocol: UDP}",
	} {
		switch {
		case i == 0 || h.chance(0.4):
		default:
			continue
		}
		switch i {
		case 2:
			p = fmt.Sprintf(p, h.one("8080 9090"), h.some(0.5, ", appProtocol: "+h.one("http2 tcp https kubernetes.io/h2c")))
		case 0, 1:
			p = fmt.Sprintf(p, h.one("8080 8080 9090 main"))
		}
		ports = append(ports, p)
	}
	h.put("{apiVersion: v1, kind: Service, metadata: {name: s%d, namespace: gamma%s}, spec: {%s, ports: [%s]}}", n,
		h.some(0.2, ", annotations: {networking.istio.io/exportTo: '"+h.one(". * ~ alpha")+"'}"), kind, strings.Join(ports, ", "))
}

func address(pod int) string { return fmt.Sprintf("10.50.0.%d", pod%historyAddresses+1) }

func (h *history) slice(service int) {
	var endpoints []string
	for n := range historyAddresses {
		if h.chance(0.4) {
			continue
		}
		ready := h.chance(0.8)
		reference := ""
		for _, pod := range []int{n, n + historyAddresses} {
			if h.objects[fmt.Sprintf("v1 Pod gamma p%d", pod)] != nil || pod == n && h.chance(0.3) { // also one that comes later
				reference = fmt.Sprintf(", targetRef: {kind: Pod, name: p%d, namespace: gamma}, nodeName: node-%d", pod, pod%3)
			}
		}
		endpoints = append(endpoints, fmt.Sprintf("{addresses: [%s], conditions: {ready: %v, serving: %v, terminating: %v}%s}",
			address(n), ready, ready || h.chance(0.5), !ready && h.chance(0.5), reference))
	}
	h.put("{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: s%d-%s, namespace: gamma, labels: "+
		"{kubernetes.io/service-name: s%[1]d}}, addressType: IPv4, endpoints: [%[3]s], "+
		"ports: [{name: http, port: 8080}%[4]s]}", service, h.one("x y"), strings.Join(endpoints, ", "), h.some(0.6,
		", {name: tcp, port: 8080}, {name: any, port: 9090}"))
}

func (h *history) pod(n int) {
	if key := fmt.Sprintf("v1 Pod gamma p%d", n); h.objects[key] != nil {
		h.drop(key)
		return
	}
	for other := range historyPods { // an address is one pod's
		if key := fmt.Sprintf("v1 Pod gamma p%d", other); address(other) == address(n) && h.objects[key] != nil {
			h.drop(key)
		}
	}
	h.put("{apiVersion: v1, kind: Pod, metadata: {name: p%d, namespace: gamma, labels: {app: %s, version: %s%s%s%s}}, "+
		"spec: {nodeName: node-%d, serviceAccountName: a%[7]d, containers: [{name: app, image: app, ports: [{name: main, containerPort: 8080}]}]}, "+
		"status: {phase: %s, podIP: %s, podIPs: [{ip: %[9]s}], conditions: [{type: Ready, status: '%[10]s'}]}}",
		n, h.one("a a b"), h.one("v1 v2"), h.some(0.5, ", tier: web"),
		h.some(0.7, ", security.istio.io/tlsMode: istio"), h.some(0.15, ", topology.istio.io/network: net2"),
		n%3, h.one("Running Running Running Running Succeeded Pending"), address(n), h.one("True True False"))
}

func (h *history) istio() {
	const api = "{apiVersion: networking.istio.io/v1, kind: "
	switch h.r.IntN(8) {
	case 0:
		h.put(api+"ServiceEntry, metadata: {name: e%d, namespace: gamma}, spec: {hosts: [e%[1]d.example], location: %s, resolution: STATIC, "+
			"ports: [{number: 80, name: http, protocol: HTTP, targetPort: 8080}], workloadSelector: {labels: {app: %s}}}}", h.r.IntN(
			2,
		), h.one("MESH_INTERNAL MESH_EXTERNAL"), h.one("a b"))
	case 1:
		h.put(api+"ServiceEntry, metadata: {name: d%d, namespace: gamma}, spec: {hosts: [d%[1]d.example], resolution: "+
			"%s, ports: [{number: 443, name: tls, protocol: %s}], "+
			"endpoints: [{address: 192.0.2.%d%s}]}}", h.r.IntN(2), h.one("STATIC DNS"), h.one("TLS HTTPS TCP"), 1+h.r.IntN(3), h.some(0.4, ", locality: r1/z1"))
	case 2, 3:
		h.put(api+"WorkloadEntry, metadata: {name: w%d, namespace: gamma}, spec: {address: 10.51.0.%d, serviceAccount: vm, labels: {app: %s, version: %s}%s}}",
			h.r.IntN(3), 1+h.r.IntN(3),
			h.one("a b"), h.one("v1 v2"), h.some(0.3, ", weight: 3"))
	case 4:
		h.put(api+"DestinationRule, metadata: {name: r%d, namespace: gamma}, spec: {host: "+
			"s%[1]d.gamma.svc.cluster.local, subsets: [{name: v1, labels: {version: v1}}]%s}}", h.r.IntN(2),
			h.some(0.5, ", trafficPolicy: {tls: {mode: "+h.one("DISABLE ISTIO_MUTUAL SIMPLE")+"}, outlierDetection: {consecutive5xxErrors: 3}}"))
	case 5:
		h.put("{apiVersion: security.istio.io/v1, kind: PeerAuthentication, metadata: {name: %s, namespace: gamma}, spec: {mtls: {mode: %s}}}",
			h.one("default other"), h.one("STRICT PERMISSIVE DISABLE"))
	case 6:
		h.put(api+"Sidecar, metadata: {name: default, namespace: %s}, spec: {egress: [{hosts: [%s]}]}}",
			h.one("gamma alpha"), h.one("'*/*' ./* 'gamma/*' 'gamma/s0.gamma.svc.cluster.local'"))
	case 7:
		h.put(api+"VirtualService, metadata: {name: v%d, namespace: gamma}, spec: {hosts: [s%[1]d], http: [{route: "+
			"[{destination: {host: s%[2]d, subset: %s}}]}]}}", h.r.IntN(2), h.r.IntN(2), h.one("v1 v2"))
	}
}

// askers are proxies that see what the history changes: two of the world, and those of its own pods
// that run.
func (h *history) askers() []proxy {
	on := func(node int, p proxy) proxy {
		p.Node["metadata"].(map[string]any)["NODE_NAME"] = fmt.Sprintf("node-%d", node)
		return p
	}
	all := []proxy{
		on(0, newProxy("sidecar", "client", "client", "alpha", "10.40.0.9", map[string]any{"version": "v1"})),
		on(0, newProxy("router", "gateway-1", "gateway", rootNamespace, "10.49.1.1", map[string]any{"istio": "ingressgateway"})),
	}
	if h.makes.gateway {
		for _, p := range proxiesOfGateways() {
			all = append(all, on(0, p))
		}
	}
	for n := range historyPods {
		pod := h.objects[fmt.Sprintf("v1 Pod gamma p%d", n)]
		if pod == nil || pod["status"].(map[string]any)["phase"] != "Running" {
			continue
		}
		labels := maps.Clone(pod["metadata"].(map[string]any)["labels"].(map[string]any))
		all = append(all, on(n%3, newProxy("sidecar", fmt.Sprintf("p%d", n), labels["app"].(string), historyNamespace, address(n), labels)))
	}
	return all
}

// TestHistories compares after each step of random histories. Where both differ, both are asked
// again as they are when they start anew: a difference counts as istiod's memory where it says
// something else then. After each history ours must say what it says when it starts anew.
func TestHistories(t *testing.T) {
	if *histories == 0 {
		need.Left(t, "`make parity-live HISTORIES=10` makes some")
	}
	j := newJudge(t, *kindsMade != "istio")
	gamma := parsed("{apiVersion: v1, kind: Namespace, metadata: {name: gamma, namespace: ''}}")
	there := j.there
	j.move(nil, []map[string]any{gamma})
	maps.Copy(j.there, there)
	var total, remembered, lasting tally
	var said report
	sorts := map[string]int{}
	for n := range uint64(*histories) {
		h := &history{dice: dice{rand.New(rand.NewPCG(*seed, n))}, makes: kindsOf(n), objects: map[string]map[string]any{}}
		base := maps.Clone(j.there)
		for range *steps {
			from := len(h.edits)
			h.step()
			j.take(base, h)
			r := j.ask(h.askers(), still)
			if r.Error != "" {
				t.Fatalf("history %d of seed %d: %s", n, *seed, r.Error)
			}
			now, report := sum(r)
			total.add(now)
			for _, s := range sortsOf(report) {
				sorts[s]++
			}
			written := j.written(h.makes)
			said.add(written)
			for _, s := range written.sorts() {
				sorts[s]++
			}
			if report += written.text(); report != "" && *verbose {
				fmt.Printf("history %d of seed %d, after\n  %s\n%s", n, *seed, strings.Join(h.edits[from:], "\n  "), report)
			}
		}
		again, anew := j.afresh(t, h)
		remembered.add(again)
		lasting.add(anew.tally)
		if again.Equal != again.Expected || again.Extra > 0 {
			t.Errorf("history %d of seed %d: ours says something else when it starts anew", n, *seed)
		}
		if anew.report != "" {
			h.write(t, filepath.Join(*found, fmt.Sprintf("history-%d-%d", *seed, n)), anew.report)
		}
		j.take(base, &history{})
	}
	printSorts(sorts)
	fmt.Printf("%d histories of seed %d, %d steps each: %v\nours when it starts anew: %v\nboth when they start anew: %v\n",
		*histories, *seed, *steps, total, remembered, lasting)
	if exact, _ := total.shares(); exact < *least {
		t.Errorf("%.2f %% of resources are equal, %v are wanted", exact, *least)
	}
	said.judge(t)
}

// take makes the cluster hold what a history has.
func (j *judge) take(base map[string]map[string]any, h *history) {
	wanted := maps.Clone(base)
	maps.Copy(wanted, h.objects)
	var all []map[string]any
	for _, key := range slices.Sorted(maps.Keys(wanted)) {
		all = append(all, wanted[key])
	}
	old := j.there
	taken := j.move(old, all)
	if h.makes.gateway { // what the API server refuses stays as it was
		for key := range h.objects {
			if is := j.there[key]; is != nil {
				h.objects[key] = is
			} else {
				delete(h.objects, key)
			}
		}
	} else if len(taken) != len(all) {
		j.t.Fatalf("the API server refuses some of\n  %s", strings.Join(h.edits, "\n  "))
	}
}

func sum(r reply) (all tally, report string) {
	for _, name := range slices.Sorted(maps.Keys(r.Proxies)) {
		all.add(r.Proxies[name].Tally)
		report += r.Proxies[name].Report
	}
	return all, report
}

type compared struct {
	tally
	report string
}

// afresh compares ours with itself started anew, and both started anew with each other.
func (j *judge) afresh(t *testing.T, h *history) (again tally, anew compared) {
	t.Run("anew", func(t *testing.T) {
		peer := kube.StartIstiod(t, j.cluster.Cluster)
		plane := mesh.Start(t, program, "", "--plugins", start{Statuses: j.mirror != nil}.set(t, false),
			"--kubeconfig", j.cluster.Kubeconfig)
		plane.Ready(t)
		ask := func(a, b string) compared {
			other := *j
			other.in, other.out = startTool(t, a, b)
			r := other.ask(h.askers(), still)
			j.marked = other.marked
			if r.Error != "" {
				t.Fatal(r.Error)
			}
			all, report := sum(r)
			return compared{all, report}
		}
		living := ask(j.ours, plane.XDS)
		if again = living.tally; living.report != "" {
			fmt.Printf("ours, and ours started anew:\n%s", living.report)
		}
		if anew = ask(plane.XDS, peer.XDS); anew.report != "" {
			fmt.Printf("ours and istiod, both started anew:\n%s", anew.report)
		}
	})
	return again, anew
}

// write makes a state folder of what a history left.
func (h *history) write(t *testing.T, dir, report string) {
	m := randomMesh{proxies: h.askers(), makes: h.makes,
		objects: []map[string]any{parsed("{apiVersion: v1, kind: Namespace, metadata: {name: gamma}}")}}
	for _, key := range slices.Sorted(maps.Keys(h.objects)) {
		m.objects = append(m.objects, h.objects[key])
	}
	if err := m.write(dir, strings.SplitN(report, "\n", 2)[0]); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "edits.txt"), []byte(strings.Join(h.edits, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}
