package injector

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	mesh "istio.io/api/mesh/v1alpha1"
	networking "istio.io/api/networking/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/tools/cache"

	"github.com/coxswain-mesh/coxswain/plugins/internal/admission"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	settings "github.com/coxswain-mesh/coxswain/plugins/internal/meshdefaults"
	"github.com/coxswain-mesh/coxswain/plugins/shared/render"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Controller answers reviews of pods.
type Controller struct {
	config Config
	client *kube.Client
	counts sdk.Counts

	// settings are the last good ones, mesh and proxies what counts of the state; namespaces have
	// the annotations of those that have users (OpenShift).
	settings   atomic.Pointer[render.Settings]
	mesh       atomic.Pointer[mesh.MeshConfig]
	proxies    atomic.Pointer[render.ProxyObjects]
	namespaces atomic.Pointer[map[string]map[string]string]
	// out has the newest state, and taken is the one that they are of.
	out     sdk.Publisher
	reading sync.Mutex
	taken   *state.State
	// nodes are those of the cluster, for `nativeSidecars: auto`.
	nodes atomic.Pointer[nodes]
	// ready is closed when all of it was read once.
	ready chan struct{}
	// last is what settings were made of, for who follows them.
	last texts
}

// texts are what settings are made of, and the settings.
type texts struct {
	config, values string
	settings       *render.Settings
}

// mostFile is how large a file may be.
const mostFile = 2 << 20

// File returns what a file of templates or values holds.
func File(name string) (string, error) {
	if info, err := os.Stat(name); err == nil && info.Size() > mostFile {
		return "", fmt.Errorf("%s has %d bytes; %d are the most", name, info.Size(), mostFile)
	}
	text, err := os.ReadFile(name)
	return string(text), err
}

// files reads the settings from files.
func (c *Controller) files() (*render.Settings, error) {
	read := func(name string) (string, error) {
		if name == "" {
			return "", nil
		}
		return File(name)
	}
	config, err := read(c.config.ConfigFile)
	if err != nil {
		return nil, err
	}
	values, err := read(c.config.ValuesFile)
	if err != nil {
		return nil, err
	}
	return c.made(config, values)
}

// made makes settings of texts, unless they are those of before: what templates wrote of pods that
// are alike is kept with them.
func (c *Controller) made(config, values string) (*render.Settings, error) {
	if l := &c.last; l.settings == nil || l.config != config || l.values != values {
		s, err := render.Read(config, values, c.config.allowed())
		if err != nil {
			return nil, err
		}
		*l = texts{config, values, s}
	}
	return c.last.settings, nil
}

// Run follows settings until ctx ends.
func (c *Controller) Run(ctx context.Context, out sdk.Publisher) error {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { c.counts.Report(ctx, out) })
	if _, _, err := kube.FirstState(ctx, out); err != nil {
		return nil
	}
	c.out = out
	newer := c.catchUp()
	if c.config.NativeSidecars == "auto" {
		if err := c.followNodes(ctx, out, &running); err != nil {
			return err
		}
	}
	t := &teller{out: out, of: c, faults: kinds.NewFaultSet(time.Now)}
	changed, err := c.follow(ctx, t, &running)
	if err != nil {
		return err
	}
	close(c.ready)
	if err := out.Synced(); err != nil {
		return err
	}
	if len(c.config.Webhooks) > 0 {
		b := &admission.Bundles{
			Resource: admission.Mutating, Names: c.config.Webhooks, File: c.config.CABundle, Objects: c.client.Objects,
			Namespace: c.config.Namespace, Revision: c.config.Revision, Lease: "coxswain-injector",
		}
		running.Go(func() { b.Run(ctx, out) })
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-newer:
			newer = c.catchUp()
		case <-changed:
			t.look()
		}
	}
}

// catchUp takes what counts of the newest state, and returns what is closed when there is a newer
// one. Calls do so, too: a pod is told what the core had told before it asked.
func (c *Controller) catchUp() <-chan struct{} {
	c.reading.Lock()
	defer c.reading.Unlock()
	s, newer := c.out.State()
	if s != c.taken {
		c.read(s)
		c.taken = s
	}
	return newer
}

// read takes what counts of the state.
func (c *Controller) read(s *state.State) {
	m, err := kinds.Mesh(s)
	if err != nil || m.DefaultConfig == nil {
		m = settings.Defaults()
	}
	c.mesh.Store(m)
	all := render.ProxyObjects{}
	for _, row := range s.Table(kinds.ProxyConfig).All() {
		if spec, err := kinds.Decode[*networking.ProxyConfig](row); err == nil {
			all.Add(row.Key, spec)
		}
	}
	c.proxies.Store(&all)
	users := map[string]map[string]string{}
	for _, row := range s.Table(state.Namespaces).All() {
		n := &pb.Namespace{}
		if n.Unmarshal(row.Payload) == nil && render.HasUsers(n.Annotations) {
			users[n.Name] = n.Annotations
		}
	}
	c.namespaces.Store(&users)
}

// teller takes settings, and says what is wrong with them: the last good ones count.
type teller struct {
	out    sdk.Publisher
	of     *Controller
	read   func() (*render.Settings, error)
	said   string
	faults kinds.FaultSet
}

// show publishes what is wrong; nothing where the text is empty.
func (t *teller) show(text string) {
	var all []kinds.Fault
	if text != "" {
		c := &t.of.config
		place := "ConfigMap " + c.Namespace + "/" + c.name()
		if c.From == fromFiles {
			place = cmp.Or(c.ConfigFile, c.ValuesFile, "values")
		}
		all = append(all, kinds.Fault{File: place, Line: 1, Column: 1, Kind: "ConfigMap", Severity: finding.Error, Message: text, Reason: "injection"})
	}
	if c := t.faults.Show(all); len(c.Upserts)+len(c.Deletes) > 0 {
		_ = t.out.Update(kinds.FaultTable, c.Upserts, c.Deletes)
	}
}

// look reads the settings anew.
func (t *teller) look() {
	s, err := t.read()
	if err == nil {
		t.of.settings.Store(s)
		if t.said != "" {
			t.out.Log(sdk.Info, "what is to be injected can be used again")
		}
		t.said = ""
		t.show("")
		return
	}
	if text := err.Error(); text != t.said {
		t.said = text
		counts := "the last good one counts"
		if t.of.settings.Load() == nil {
			counts = "nothing is injected, and reviews fail"
		}
		t.out.Log(sdk.Error, "what is to be injected can't be used; "+counts, "error", text)
		t.show(text)
	}
}

// follow reads settings, and returns what has something when they may have changed.
func (c *Controller) follow(ctx context.Context, t *teller, running *sync.WaitGroup) (<-chan time.Time, error) {
	if c.config.From == fromFiles {
		t.read = c.files
		t.look()
		return time.NewTicker(c.config.Look).C, nil
	}
	changed := make(chan time.Time, 1)
	note := func(any) {
		select {
		case changed <- time.Now():
		default:
		}
	}
	of := c.client.Objects.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(c.config.Namespace)
	whole := func(o any) (any, error) { return o, nil }
	i, err := kube.Follow(of, "metadata.name="+c.config.name(), whole,
		cache.ResourceEventHandlerFuncs{AddFunc: note, UpdateFunc: func(_, now any) { note(now) }, DeleteFunc: note}, c.failed(t.out, "configmaps"))
	if err != nil {
		return nil, err
	}
	running.Go(func() { i.RunWithContext(ctx) })
	t.read = func() (*render.Settings, error) {
		o, there, _ := i.GetStore().GetByKey(c.config.Namespace + "/" + c.config.name())
		m, ok := o.(*unstructured.Unstructured)
		if !there || !ok { // Who has none gets the built-in templates; who had one keeps it.
			if s := c.settings.Load(); s != nil {
				return s, nil
			}
			return c.made("", "")
		}
		data, _, _ := unstructured.NestedStringMap(m.Object, "data")
		return c.made(data["config"], data["values"])
	}
	if cache.WaitForCacheSync(ctx.Done(), i.HasSynced) {
		t.look()
	}
	return changed, nil
}

// failed logs what is in the way of following something, once in a while.
func (c *Controller) failed(out sdk.Publisher, what string) func(error) {
	said := &kube.LogLimiter{}
	return func(err error) {
		if said.Allow(what, err, time.Now()) {
			out.Log(sdk.Warn, "the cluster can't be asked; it is tried again", "of", what, "error", err.Error())
		}
	}
}

// nativeSince is the version of nodes from which on native sidecars are used.
var nativeSince = version.MustParseGeneric("1.33")

// nodes is which nodes of a cluster know native sidecars.
type nodes struct {
	know map[string]bool
	// all of them do.
	all bool
}

// native reports whether a pod's proxy may be a native sidecar: its own node counts where it names
// one that is known, all nodes otherwise.
func (n *nodes) native(name string) bool {
	if n == nil {
		return false
	}
	if knows, ok := n.know[name]; ok {
		return knows
	}
	return n.all
}

// kubeletVersion is where a node says which kubelet it has.
var kubeletVersion = []string{"status", "nodeInfo", "kubeletVersion"}

// leanNode keeps of a node its kubelet's version, where it was: an informer leans objects of a list
// that its API server streams twice.
func leanNode(sent any) (any, error) {
	n, ok := sent.(*unstructured.Unstructured)
	if !ok {
		return sent, nil
	}
	kubelet, _, _ := unstructured.NestedString(n.Object, kubeletVersion...)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{"name": n.GetName(), "resourceVersion": n.GetResourceVersion()},
		"status":   map[string]any{"nodeInfo": map[string]any{"kubeletVersion": kubelet}},
	}}, nil
}

// newNodes says of nodes which know native sidecars.
func newNodes(list []any) *nodes {
	out := &nodes{know: map[string]bool{}, all: true}
	for _, o := range list {
		n, ok := o.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		kubelet, _, _ := unstructured.NestedString(n.Object, kubeletVersion...)
		v, err := version.ParseGeneric(kubelet)
		out.know[n.GetName()] = err == nil && v.AtLeast(nativeSince)
		out.all = out.all && out.know[n.GetName()]
	}
	return out
}

// followNodes finds out which nodes know native sidecars.
func (c *Controller) followNodes(ctx context.Context, out sdk.Publisher, running *sync.WaitGroup) error {
	of := c.client.Objects.Resource(corev1.SchemeGroupVersion.WithResource("nodes"))
	var i *kube.Informer
	count := func(any) { c.nodes.Store(newNodes(i.GetStore().List())) }
	started := make(chan struct{})
	later := func(o any) { <-started; count(o) }
	i, err := kube.Follow(of, "", leanNode,
		cache.ResourceEventHandlerFuncs{AddFunc: later, UpdateFunc: func(_, now any) { later(now) }, DeleteFunc: later}, c.failed(out, "nodes"))
	if err != nil {
		return err
	}
	close(started)
	running.Go(func() { i.RunWithContext(ctx) })
	if cache.WaitForCacheSync(ctx.Done(), i.HasSynced) {
		count(nil)
	}
	return nil
}
