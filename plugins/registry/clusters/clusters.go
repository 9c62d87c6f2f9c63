package clusters

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Table is where the clusters are published, by their ids: a Cluster as JSON each.
const Table = "clusters"

// label is that of the Secrets.
// Source: Istio, "Install Multicluster": istioctl create-remote-secret.
const label = "istio/multiCluster=true"

// Cluster is the payload of a row. Whoever may see rows may see it, so that it has nothing of what
// the Secret holds.
type Cluster struct {
	// ID is the cluster's, From where its kubeconfig stands: NAMESPACE/SECRET/KEY, or file:NAME in
	// the directory.
	ID   string `json:"id"`
	From string `json:"from"`
	// Hash of the kubeconfig: another one means other credentials.
	Hash string `json:"hash"`
}

type registry struct {
	config Config
	client rest.Interface
}

// Run publishes the clusters, and follows the Secrets, or the directory, until ctx ends. An API
// server that is away changes nothing.
func (r *registry) Run(ctx context.Context, out sdk.Publisher) error {
	if r.config.Directory != "" {
		return r.files(ctx, out)
	}
	r.config.Report(ctx, out)
	changes := kube.NewChanges[struct{}]()
	list := cache.NewFilteredListWatchFromClient(r.client, "secrets", r.config.Namespace, func(o *metav1.ListOptions) { o.LabelSelector = label })
	informer := cache.NewSharedIndexInformer(list, &corev1.Secret{}, 0, cache.Indexers{})
	if err := informer.SetTransform(func(o any) (any, error) { return r.config.lean(o), nil }); err != nil {
		return err
	}
	changed := func(any) { changes.Add(struct{}{}) }
	registered, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: changed, UpdateFunc: func(_, now any) { changed(now) }, DeleteFunc: changed,
	})
	if err != nil {
		return err
	}
	var said kube.LogLimiter
	if err := informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
		if said.Allow("secrets", err, time.Now()) {
			out.Log(sdk.Warn,
				"the Secrets of other clusters can't be watched; what is known stays, and it is tried again",
				"namespace", r.config.Namespace, "error", err.Error())
		}
	}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { informer.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), registered.HasSynced) {
		return nil
	}
	p := r.publication(out)
	for synced := false; ; {
		changes.Drain()
		if err := p.publish(inSecrets(secretsOf(informer.GetStore()))); err != nil {
			return err
		}
		if !synced {
			synced = true
			if err := out.Synced(); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changes.Some():
		}
	}
}

// secretsOf are those of a store.
func secretsOf(store cache.Store) (all []*secret) {
	for _, o := range store.List() {
		if s, ok := o.(*secret); ok {
			all = append(all, s)
		}
	}
	return all
}

// secret is what is kept of a Secret: nothing that is secret.
type secret struct {
	metav1.ObjectMeta
	keys []key
}

// key is one of a Secret's, in their order: a cluster's id, and a hash of its kubeconfig, or why it
// is none.
type key struct {
	id, hash string
	fault    error
}

// lean returns a Secret as a *secret, and anything else as it is.
func (c *Config) lean(object any) any {
	s, ok := object.(*corev1.Secret)
	if !ok {
		return object
	}
	kept := &secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: s.Namespace, Name: s.Name, UID: s.UID, ResourceVersion: s.ResourceVersion,
		CreationTimestamp: s.CreationTimestamp, DeletionTimestamp: s.DeletionTimestamp,
	}}
	for _, id := range slices.Sorted(maps.Keys(s.Data)) {
		hash := sha256.Sum256(s.Data[id])
		_, err := c.Other(s.Data[id], "")
		kept.keys = append(kept.keys, key{id: id, hash: hex.EncodeToString(hash[:]), fault: err})
	}
	return kept
}

// found is a kubeconfig: the id of its cluster, a hash, or why it is none; where it is, and what is
// said of its faults.
type found struct {
	id, hash, from, source string
	fault                  error
	at                     kinds.Fault
}

// inSecrets are the kubeconfigs of Secrets: those of older ones first.
func inSecrets(secrets []*secret) (all []found) {
	slices.SortFunc(secrets, func(a, b *secret) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, s := range secrets {
		if s.DeletionTimestamp != nil {
			continue
		}
		for _, k := range s.keys {
			from := kube.SecretKey{Namespace: s.Namespace, Name: s.Name, Key: k.id}.String()
			all = append(all, found{id: k.id, hash: k.hash, fault: k.fault, from: from, source: "secret " + from, at: kinds.Fault{
				File: "k8s://Secret/" + s.Namespace + "/" + s.Name, Kind: "Secret", Namespace: s.Namespace, Name: s.Name, Field: "data." + k.id,
			}})
		}
	}
	return all
}

func (r *registry) publication(out sdk.Publisher) *publication {
	return &publication{config: &r.config, out: out, served: map[string]Cluster{}, faultSet: kinds.NewFaultSet(time.Now)}
}

// publication is what was published.
type publication struct {
	config   *Config
	out      sdk.Publisher
	served   map[string]Cluster
	faultSet kinds.FaultSet
}

// publish publishes what differs from what was published before.
func (p *publication) publish(all []found) error {
	now, faults := p.read(all)
	sources := map[string]string{}
	for _, f := range all {
		sources[f.from] = f.source
	}
	var upserts []*sdk.Row
	var deletes []string
	for _, id := range slices.Sorted(maps.Keys(now)) {
		if p.served[id] != now[id] {
			payload, err := json.Marshal(now[id])
			if err != nil {
				return err
			}
			upserts = append(upserts, &sdk.Row{Key: id, Payload: payload, Source: sources[now[id].From]})
		}
	}
	for id := range p.served {
		if _, stays := now[id]; !stays {
			deletes = append(deletes, id)
		}
	}
	p.served = now
	if len(upserts)+len(deletes) > 0 {
		if err := p.out.Update(Table, upserts, deletes); err != nil {
			return err
		}
	}
	shown := p.faultSet.Show(faults)
	for _, f := range shown.New {
		f.Log(p.out.Log)
	}
	if len(shown.Upserts)+len(shown.Deletes) == 0 {
		return nil
	}
	return p.out.Update(kinds.FaultTable, shown.Upserts, shown.Deletes)
}

// read returns the clusters that there are, and what is wrong with kubeconfigs that are passed
// over. One that is faulty stays as it was. Of two with one id the first counts.
func (p *publication) read(all []found) (map[string]Cluster, []kinds.Fault) {
	now, faults := map[string]Cluster{}, []kinds.Fault(nil)
	for _, f := range all {
		is, err := p.cluster(f, now)
		if err != nil {
			f.at.Message = err.Error()
			faults = append(faults, f.at)
		}
		if is.ID != "" {
			now[is.ID] = is
		}
	}
	return now, faults
}

// cluster is that of a kubeconfig. With an error it is the one that is served, if the error is one
// of its kubeconfig.
func (p *publication) cluster(f found, others map[string]Cluster) (Cluster, error) {
	if f.fault != nil {
		for _, was := range p.served { // one that can't be read has no id
			if was.From == f.from && others[was.ID].ID == "" {
				return was, fmt.Errorf("%w; what stood there before is kept", f.fault)
			}
		}
		return Cluster{}, fmt.Errorf("%w; it is left out", f.fault)
	}
	if f.id == p.config.Cluster {
		return Cluster{}, fmt.Errorf("%s is the id of this cluster, which is not read by a kubeconfig of others; it is left out", f.id)
	}
	if other, twice := others[f.id]; twice {
		return Cluster{}, fmt.Errorf("the cluster %s stands in %s, too, which counts; this one is left out", f.id, other.From)
	}
	return Cluster{ID: f.id, From: f.from, Hash: f.hash}, nil
}
