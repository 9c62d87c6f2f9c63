package kube_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// parted is a control plane with all parts that take istiod's place in a cluster, each a process of
// its own.
type parted struct {
	*machines
	server *secured
	client kubernetes.Interface
	made   int // what is made to see that a part works has a number in its name
}

func newParted(t *testing.T) *parted {
	t.Helper()
	m := newMachines(t)
	c := m.cluster
	c.Apply(t, kube.GatewayAPI(t))
	define(t, c)
	for _, rights := range []string{"webhooks.yaml", "untaint.yaml", "exports.yaml", "gateways.yaml", "analysis.yaml"} {
		c.Kubectl(t, "apply", "-f", filepath.Join(deployed, rights))
	}
	c.Kubectl(t, "label", "namespace", "shop", "istio-injection=enabled")
	c.Apply(t, documents(node, service, edgeService, edgeOfShop, groupOf("web", "machine"), bySelector))
	file := filepath.Join(m.dir, "plugins.yaml")
	set, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(set), ", limits: {group: 3}", "", 1)
	for _, builtin := range []string{"status", "untaint", "gateway", "addresses", "analysis"} { // who leads after one that is killed does soon
		line := "builtin: controller/" + builtin + "\n"
		if !strings.Contains(text, line) {
			t.Fatalf("there is no %s", line)
		}
		text = strings.Replace(text, line, line+fmt.Sprintf("    config: {lease: %v}\n", leaseTime), 1)
	}
	m.authority.IssueLocal(t, m.dir) // for its root
	for _, hook := range []string{"injector", "validator"} {
		line := "builtin: controller/" + hook + "\n    disabled: true\n"
		if !strings.Contains(text, line) {
			t.Fatalf("there is no %s", line)
		}
		text = strings.Replace(text, line, fmt.Sprintf("builtin: controller/%[1]s\n    config: {webhooks: [coxswain-%[1]s], caBundleFile: %[2]q}\n",
			hook, filepath.Join(m.dir, "root-cert.pem")), 1)
	}
	put(t, file, text+fmt.Sprintf("\n  - {name: exports, kind: controller, builtin: controller/exports, config: {lease: %v}}\n", leaseTime))
	at := wait.Address(t)
	_, port, _ := strings.Cut(at, ":")
	c.Apply(t, printed(t, "https://127.0.0.1:"+port))
	server := m.plane("--httpsAddr", at, "--autoRegistration", "--untaintNodes", "--manageGateways", "--enableAnalysis")
	return &parted{machines: m, server: server, client: c.Client(t)}
}

// next is a number that nothing has yet.
func (w *parted) next() int {
	w.made++
	return w.made
}

// works are what each part does, and how to see that it does it.
func (w *parted) works() map[string]func(t *testing.T) {
	c := w.cluster
	return map[string]func(t *testing.T){
		"injector": func(t *testing.T) {
			t.Helper()
			wait.For(t, "a pod gets a proxy", func() error {
				by, err := created(t, w.client, "shop", nil)
				if err == nil && by == "" {
					err = errors.New("it has none")
				}
				return err
			})
		},
		"validator": func(t *testing.T) {
			t.Helper()
			judged(t, c, "", "validator.coxswain.io")
		},
		"registration": func(t *testing.T) {
			t.Helper()
			address := fmt.Sprintf("127.0.1.%d", w.next())
			w.connect(w.server, who{from: address, claims: address, account: "machine", group: "web"})
			w.entry("a machine has an entry", "web-"+address, connected)
		},
		"untaint": func(t *testing.T) {
			t.Helper()
			name := fmt.Sprintf("node-%d", w.next())
			c.Apply(t, fmt.Sprintf("apiVersion: v1\nkind: Node\nmetadata: {name: %[1]s}\nspec: {taints: [{key: %[2]s, effect: NoSchedule}]}\n"+
				"---\napiVersion: v1\nkind: Pod\nmetadata: {name: cni-%[1]s, namespace: istio-system, labels: {k8s-app: istio-cni-node}}\n"+
				"spec: {nodeName: %[1]s, tolerations: [{operator: Exists}], containers: [{name: cni, image: cni}]}\n", name, notReady))
			c.Kubectl(t, "patch", "pod", "cni-"+name, "-n", "istio-system", "--subresource", "status", "--type", "merge", "-p",
				`{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}`)
			wait.For(t, name+" loses its taint", func() error {
				if now := c.Kubectl(t, "get", "node", name, "-o", "jsonpath={.spec.taints[*].key}"); strings.Contains(now, notReady) {
					return errors.New(now)
				}
				return nil
			})
		},
		"exports": func(t *testing.T) {
			t.Helper()
			name := fmt.Sprintf("web-%d", w.next())
			c.Apply(t, strings.ReplaceAll(service, "name: web,", "name: "+name+","))
			wait.For(t, name+" is exported", func() error {
				if now := c.Kubectl(t, "get", "serviceexports", "-n", "shop", "-o", "name"); !strings.Contains(now, "/"+name+"\n") {
					return fmt.Errorf("there is %q", now)
				}
				return nil
			})
		},
		"deployments": func(t *testing.T) {
			t.Helper()
			name := fmt.Sprintf("gateway-%d", w.next())
			c.Apply(t, edgeOf(name, ""))
			wait.For(t, name+" is deployed", func() error {
				if c.Kubectl(t, "get", "service", name+"-istio", "-n", "shop", "--ignore-not-found", "-o", "name") == "" {
					return errors.New("it has no Service")
				}
				return nil
			})
		},
		"addresses": func(t *testing.T) {
			t.Helper()
			name := fmt.Sprintf("host-%d", w.next())
			c.Apply(t, entry(name, "{hosts: ["+name+".example], resolution: DNS, ports: [{number: 80, name: http, protocol: HTTP}]}"))
			wait.For(t, name+" has an address", func() error {
				if len(statuses(t, c)[name]) == 0 {
					return errors.New("it has none")
				}
				return nil
			})
		},
		"analysis": func(t *testing.T) {
			t.Helper()
			name := fmt.Sprintf("lost-%d", w.next())
			c.Apply(t, routeToHost(name, name+".example"))
			wait.For(t, "what is wrong with "+name+" is said", func() error {
				if len(routesOf(t, c)[name].Status.ValidationMessages) == 0 {
					return errors.New("its status says nothing")
				}
				return nil
			})
		},
		"status": func(t *testing.T) {
			t.Helper()
			name := fmt.Sprintf("route-%d", w.next())
			c.Apply(t, webRoute(name, "edge", "web"))
			parent(t, c, name, "Accepted", "True")
		},
	}
}

// owners create pods of the namespace shop all the time, each until it is there, as a ReplicaSet
// does.
type owners struct {
	client kubernetes.Interface
	stop   context.CancelFunc
	ended  sync.WaitGroup

	mu      sync.Mutex
	names   []string
	refused int
	wrong   []string
}

func (w *parted) creates(t *testing.T) *owners {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	o := &owners{client: w.client, stop: stop}
	for n := range 3 {
		o.ended.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				o.create(t.Context(), fmt.Sprintf("pod-%d-%d", n, i))
			}
		})
	}
	return o
}

// create creates one pod, which may be refused by the webhook's failure policy, in its time, and is
// asked for again then.
func (o *owners) create(ctx context.Context, name string) {
	pods := o.client.CoreV1().Pods("shop")
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{ServiceAccountName: "default", Containers: []corev1.Container{{Name: "app", Image: "app"}}},
	}
	for ctx.Err() == nil {
		asked, cancel := context.WithTimeout(ctx, inTime)
		_, err := pods.Create(asked, p, metav1.CreateOptions{})
		cancel()
		o.mu.Lock()
		switch {
		case err == nil || apierrors.IsAlreadyExists(err):
			o.names = append(o.names, name)
		case ctx.Err() != nil:
		case hung(err):
			o.wrong = append(o.wrong, name+": no answer: "+err.Error())
		case !strings.Contains(err.Error(), "failed calling webhook"):
			o.wrong = append(o.wrong, name+": "+err.Error())
		default:
			o.refused++
		}
		o.mu.Unlock()
		if err == nil || apierrors.IsAlreadyExists(err) {
			return
		}
	}
}

// ends stops, and sees that each pod is there with its proxy, and that no other is.
func (o *owners) ends(t *testing.T) (refused int) {
	t.Helper()
	o.stop()
	o.ended.Wait()
	all, err := o.client.CoreV1().Pods("shop").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, p := range all.Items {
		there[p.Name] = true
		if !slices.ContainsFunc(slices.Concat(p.Spec.InitContainers, p.Spec.Containers), func(c corev1.Container) bool { return c.Name == "istio-proxy" }) {
			t.Errorf("pod %s has no proxy", p.Name)
		}
	}
	for _, name := range o.names {
		if !there[name] {
			t.Errorf("pod %s is lost", name)
		}
	}
	if len(all.Items) != len(o.names) || len(o.names) == 0 {
		t.Errorf("%d pods were created, and %d are there", len(o.names), len(all.Items))
	}
	if len(o.wrong) > 0 {
		t.Errorf("%d were not answered as the failure policy says: %.5q", len(o.wrong), o.wrong)
	}
	t.Logf("%d pods were created, after %d refusals", len(o.names), o.refused)
	return o.refused
}

// TestPartsDie: while pods are created through an API server, each part that takes istiod's place
// is killed, hangs, and is swapped, one after the other. Each pod is created with its proxy; an API
// server that asks a webhook hears an answer, or a failure, within the webhook's own timeout; and
// each part does its work again by another process, for what came while it was away, too.
func TestPartsDie(t *testing.T) {
	need.All(t)
	t.Parallel()
	w := newParted(t)
	works := w.works()
	names := slices.Sorted(maps.Keys(works))
	timeouts := w.cluster.Kubectl(t, "get", "mutatingwebhookconfiguration", "coxswain-injector", "-o", "jsonpath={.webhooks[*].timeoutSeconds}")
	for seconds := range strings.FieldsSeq(timeouts) {
		if seconds != fmt.Sprint(int(hookTime/time.Second)) {
			t.Fatalf("the webhooks' timeouts are %s s, not %v", timeouts, hookTime)
		}
	}
	for _, name := range names {
		works[name](t)
	}
	pods := w.creates(t)
	defer pods.stop()
	for _, name := range names {
		for what, do := range troubles(t, w.server.plane, name) {
			what = strings.Replace(what, "the plugin", name, 1)
			began, before := time.Now(), w.server.plane.Plugins(t)[name].PID
			do()
			replaced(t, w.server.plane, name, before, what)
			works[name](t)
			t.Logf("%s: it works again after %v", what, time.Since(began).Round(time.Millisecond))
		}
	}
	for _, name := range names { // and nothing that became of one has harmed another
		works[name](t)
	}
	refused := pods.ends(t)
	if refused == 0 {
		t.Error("no pod was refused, though the injector hung")
	}
	if err := syscall.Kill(w.server.plane.PID(), 0); err != nil {
		t.Errorf("the control plane has ended: %v", err)
	}
}
