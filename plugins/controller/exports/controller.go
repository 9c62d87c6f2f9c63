package exports

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/coxswain-mesh/coxswain/plugins/internal/clusterlocal"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/lead"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

type controller struct {
	config Config
	client *kube.Client
}

// Run makes exports while this replica leads, until ctx ends.
func (c *controller) Run(ctx context.Context, out sdk.Publisher) error {
	c.config.Report(ctx, out)
	var said kube.LogLimiter
	client := c.config.Reach(ctx, &c.config.Access, c.client, agent, func(err error) {
		if said.Allow("remote", err, time.Now()) {
			out.Log(sdk.Warn, "the cluster's kubeconfig can't be had; it is tried again", "remote", c.config.Remote, "error", err.Error())
		}
	})
	if client == nil {
		return nil
	}
	task := func(ctx context.Context) error { return c.lead(ctx, out, client) }
	if c.config.Alone {
		return task(ctx)
	}
	// The lock is where the exports are: an istiod of that cluster looks for it there.
	locks := kube.Locks{Objects: client.Objects, Key: kube.LockKey(c.config.Revision, c.config.Remote != "")}
	return lead.Election{Objects: locks, Log: out.Log, Namespace: c.config.Namespace, Name: leaseName, Duration: c.config.Lease}.Run(ctx, task)
}

// lead makes exports until ctx ends.
func (c *controller) lead(ctx context.Context, out sdk.Publisher, client *kube.Client) error {
	w := &work{config: &c.config, client: client, out: out, arrived: kube.NewChanges[string](), waiting: map[string]bool{}}
	list := cache.NewListWatchFromClient(client.Core, "services", metav1.NamespaceAll, fields.Everything())
	w.services = cache.NewSharedIndexInformer(list, &corev1.Service{}, 0, cache.Indexers{})
	if err := w.services.SetTransform(lean); err != nil {
		return err
	}
	if err := w.services.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { w.failed("services", err) }); err != nil {
		return err
	}
	_, err := w.services.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(o any) {
		if key, err := cache.MetaNamespaceKeyFunc(o); err == nil {
			w.arrived.Add(key)
		}
	}})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { w.services.RunWithContext(ctx) })
	return w.follow(ctx)
}

// lean keeps of a service who it is.
func lean(object any) (any, error) {
	if s, ok := object.(*corev1.Service); ok {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name, UID: s.UID, ResourceVersion: s.ResourceVersion}}, nil
	}
	return object, nil
}

// work is what there is to do in a cluster.
type work struct {
	config   *Config
	client   *kube.Client
	out      sdk.Publisher
	said     kube.LogLimiter
	services cache.SharedIndexInformer
	// arrived are services that are new, waiting those of them that have no export yet: as they are
	// local, or it could not be made.
	arrived *kube.Changes[string]
	waiting map[string]bool
	local   []clusterlocal.Host
}

func (w *work) failed(what string, err error) {
	if w.said.Allow(what, err, time.Now()) {
		w.out.Log(sdk.Warn, "services are not exported; it is tried again", "of", what, "error", err.Error())
	}
}

// follow makes the exports of services that come, once each, and of those that are local no more.
func (w *work) follow(ctx context.Context) error {
	first, newer, err := kube.FirstState(ctx, w.out)
	if err != nil {
		return nil
	}
	w.read(first)
	var tries kube.Retry
	for {
		for key := range w.arrived.Drain() {
			w.waiting[key] = true
		}
		retry := tries.After(w.make(ctx))
		select {
		case <-ctx.Done():
			return nil
		case <-newer:
			var next *state.State
			next, newer = w.out.State()
			w.read(next)
		case <-w.arrived.Some():
		case <-retry:
		}
	}
}

// read takes the mesh's settings.
func (w *work) read(s *state.State) {
	mesh, err := kinds.Mesh(s)
	if err != nil {
		return // no config source publishes such a row
	}
	w.local = clusterlocal.Hosts(mesh, w.config.Domain)
}

// make makes the exports of waiting services that aren't local; done: all that could be made are.
func (w *work) make(ctx context.Context) (done bool) {
	done = true
	for key := range w.waiting {
		object, _, _ := w.services.GetStore().GetByKey(key)
		s, ok := object.(*corev1.Service)
		if !ok {
			delete(w.waiting, key) // it has gone
			continue
		}
		if clusterlocal.Has(w.local, s.Name+"."+s.Namespace+".svc."+w.config.Domain) {
			continue
		}
		switch err := w.export(ctx, s); {
		case ctx.Err() != nil:
			return true
		case err == nil, apierrors.IsAlreadyExists(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			delete(w.waiting, key)
		default:
			w.failed("serviceexports", err)
			return false // what is wrong with one is wrong with all
		}
	}
	return done
}

// asking is how long a question may take.
const asking = 10 * time.Second

// export makes the export of a service, which goes with it.
func (w *work) export(ctx context.Context, s *corev1.Service) error {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	of := schema.GroupVersion{Group: w.config.Group, Version: w.config.Version}
	e := &unstructured.Unstructured{}
	e.SetAPIVersion(of.String())
	e.SetKind("ServiceExport")
	e.SetNamespace(s.Namespace)
	e.SetName(s.Name)
	e.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: s.Name, UID: s.UID}})
	_, err := w.client.Objects.Resource(of.WithResource("serviceexports")).Namespace(s.Namespace).Create(ctx, e, metav1.CreateOptions{FieldManager: agent})
	return err
}
