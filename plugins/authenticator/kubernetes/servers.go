package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kube"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// agent is what requests say that they are of.
const agent = "coxswain/authenticator-kubernetes"

// servers are the API servers of the clusters that are known.
type servers struct {
	config *Config
	own    *server
	said   kube.LogLimiter

	mu     sync.Mutex
	others map[string]*server
	out    sdk.Publisher
}

// server is the API server of a cluster.
type server struct {
	id, hash string
	// make makes its client.
	make func(ctx context.Context) (rest.Interface, error)

	mu   sync.Mutex
	made rest.Interface
	// failed is why the last try brought none, tried when that was.
	failed error
	tried  time.Time
}

// again is how long a client that can't be made is not tried again.
const again = 2 * time.Second

// newServers returns the own one alone.
func newServers(c *Config) (*servers, error) {
	config, err := c.Connect(agent)
	if err != nil {
		return nil, err
	}
	about, err := asker(config)
	if err != nil {
		return nil, err
	}
	return &servers{config: c, own: &server{id: c.Cluster, made: about}, others: map[string]*server{}}, nil
}

// asker is a client of settings that asks in JSON.
func asker(config *rest.Config) (rest.Interface, error) {
	return rest.UnversionedRESTClientFor(dynamic.ConfigFor(config))
}

// saw takes the other clusters of a state.
func (s *servers) saw(is *state.State) {
	if is.Revision().Epoch == 0 {
		return
	}
	others := map[string]*server{}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, row := range is.Table(clusters).All() {
		var c struct{ ID, From, Hash string } // as registry/clusters writes them
		if json.Unmarshal(row.Payload, &c) != nil || c.ID == "" {
			continue
		}
		if was := s.others[c.ID]; was != nil && was.hash == c.Hash+c.From {
			others[c.ID] = was
			continue
		}
		others[c.ID] = &server{id: c.ID, hash: c.Hash + c.From, make: func(ctx context.Context) (rest.Interface, error) { return s.reach(ctx, c.From) }}
	}
	s.others = others
}

// reach makes the client of a cluster whose kubeconfig stands somewhere.
func (s *servers) reach(ctx context.Context, from string) (rest.Interface, error) {
	place := kube.Place{Remote: from, Directory: s.config.Directory}
	if err := place.Check(); err != nil {
		return nil, err
	}
	here, err := s.config.Client(agent)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := place.Read(ctx, here.Core)
	if err != nil {
		return nil, err
	}
	config, err := s.config.Other(kubeconfig, agent)
	if err != nil {
		return nil, err
	}
	return asker(config)
}

var errUnknownCluster = errors.New("the cluster that the header clusterid names (CLUSTER_ID of the proxy) is not known: " +
	"registry/clusters finds others by Secrets, clusterAliases gives them other ids")

// of returns the server of the cluster that a caller says it is in: the own one where it says none.
func (s *servers) of(id string) (*server, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if alias := s.config.ClusterAliases[id]; alias != "" {
		id = alias
	}
	if id == "" || id == s.config.Cluster {
		return s.own, nil
	}
	if other := s.others[id]; other != nil {
		return other, nil
	}
	return nil, errUnknownCluster
}

// client returns the client of a server, which is made when it is needed first.
func (s *server) client(ctx context.Context) (rest.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made != nil {
		return s.made, nil
	}
	if s.failed == nil || time.Since(s.tried) >= again {
		s.made, s.failed = s.make(ctx)
		s.tried = time.Now()
	}
	return s.made, s.failed
}

func (s *servers) log(out sdk.Publisher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out = out
}

// complain logs why a server can't be asked, once a minute for each.
func (s *servers) complain(of *server, err error) {
	s.mu.Lock()
	out := s.out
	s.mu.Unlock()
	kind := errors.New("unreachable") // reasons differ from try to try
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		kind = err
	}
	if out == nil || errors.Is(err, context.Canceled) || !s.said.Allow(of.id, kind, time.Now()) {
		return
	}
	out.Log(sdk.Warn, "an API server can't be asked about tokens; its callers are told to come again", "cluster", of.id, "error", err.Error())
}
