package mesh

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Keys of a ConfigMap under which settings stand.
// Source: Istio, "istioctl install", the ConfigMap istio.
const (
	meshKey     = "mesh"
	networksKey = "meshNetworks"
)

// patience is how long first answers may take until it is said which are missing.
const patience = 10 * time.Second

// configMaps are those of an API server that settings are read from. Each is followed by its own
// name, so that no right to others is needed. While the server is away they stay as they were.
type configMaps struct {
	namespace string
	informers map[string]cache.SharedIndexInformer
	// changes are names of those that changed.
	changes *kube.Changes[string]
	said    kube.LogLimiter
}

// configMap is what is kept of one.
type configMap struct {
	metav1.ObjectMeta
	data map[string]string
}

// newConfigMaps makes informers of ConfigMaps by name (objects may be nil where there are none);
// what can't be watched is logged.
func newConfigMaps(objects dynamic.Interface, namespace string, names []string, out sdk.Publisher) (*configMaps, error) {
	m := &configMaps{namespace: namespace, informers: map[string]cache.SharedIndexInformer{}, changes: kube.NewChanges[string]()}
	if len(names) == 0 {
		return m, nil
	}
	client := objects.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(namespace)
	for _, name := range names {
		failed := func(err error) {
			if m.said.Allow(name, err, time.Now()) {
				out.Log(sdk.Warn, "a ConfigMap can't be watched; what is known of it stays, and it is tried again",
					"configMap", namespace+"/"+name, "error", err.Error())
			}
		}
		note := func(any) { m.changes.Add(name) }
		handler := cache.ResourceEventHandlerFuncs{
			AddFunc: note, UpdateFunc: func(_, now any) { note(now) }, DeleteFunc: note,
		}
		i, err := kube.Follow(client, "metadata.name="+name, leanConfigMap, handler, failed)
		if err != nil {
			return nil, err
		}
		m.informers[name] = i
	}
	return m, nil
}

// run follows the ConfigMaps until ctx ends, and returns when nothing of it runs any more.
func (m *configMaps) run(ctx context.Context) {
	var running sync.WaitGroup
	for _, i := range m.informers {
		running.Go(func() { i.RunWithContext(ctx) })
	}
	running.Wait()
}

// wait waits until the API server has said of each whether there is one, and says now and then
// which it has not. An error is that of ctx.
func (m *configMaps) wait(ctx context.Context, out sdk.Publisher) error {
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for told := time.Now(); ; {
		late := m.late()
		if len(late) == 0 {
			return nil
		}
		if now := time.Now(); now.Sub(told) > patience {
			told = now
			out.Log(sdk.Warn, "the mesh's settings are awaited: is the API server there, and may this account list and watch these ConfigMaps?",
				"configMaps", strings.Join(late, ", "), "namespace", m.namespace)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
	}
}

// late returns the names of those that were not answered for, sorted.
func (m *configMaps) late() (out []string) {
	for name, i := range m.informers {
		if !i.HasSynced() {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// text returns what stands under a key of a ConfigMap; nil where there is none.
func (m *configMaps) text(name, key string) []byte {
	found, _, _ := m.informers[name].GetStore().GetByKey(m.namespace + "/" + name)
	if c, ok := found.(*configMap); ok {
		if text, ok := c.data[key]; ok {
			return []byte(text)
		}
	}
	return nil
}

// leanConfigMap keeps of a ConfigMap what is read: other keys, such as values, are large.
func leanConfigMap(sent any) (any, error) {
	u, ok := sent.(*unstructured.Unstructured)
	if !ok {
		return sent, nil // kept already
	}
	c := &configMap{metav1.ObjectMeta{Name: u.GetName(), Namespace: u.GetNamespace(), ResourceVersion: u.GetResourceVersion()}, map[string]string{}}
	for _, key := range []string{meshKey, networksKey} {
		if text, ok, err := unstructured.NestedString(u.Object, "data", key); ok && err == nil {
			c.data[key] = text
		}
	}
	return c, nil
}
