package istiod

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/admin"
)

// What reads clusters, and where those are that Secrets name.
const (
	reader       = "registry/kubernetes"
	clusterTable = "clusters"
)

// cluster as istiod shows it: Status is synced or syncing.
type cluster struct {
	ID     string `json:"id"`
	Secret string `json:"secretName"`
	Status string `json:"syncStatus"`
}

// clusterz shows the clusters whose services are read: the control plane's own first, and those
// that rows of the table clusters name, in order of their ids.
func (s *source) clusterz(w http.ResponseWriter, _ *http.Request) {
	plugins := s.Plugins()
	status := func(of func(p admin.Plugin) bool) (state string, there bool) {
		state = "syncing"
		for _, p := range plugins {
			if !of(p) {
				continue
			}
			if there, state = true, "synced"; p.State != "serving" {
				return "syncing", true
			}
		}
		return state, there
	}
	all := []cluster{}
	if state, here := status(func(p admin.Plugin) bool {
		return p.Plugin == reader && !strings.Contains(p.Name, "@")
	}); here {
		all = append(all, cluster{ID: s.cluster, Status: state})
	}
	for _, r := range s.sorted(clusterTable) {
		var row struct{ ID, From string }
		if json.Unmarshal(r.Payload, &row) != nil || row.ID == "" {
			continue
		}
		c := cluster{ID: row.ID, Secret: row.From}
		if i := strings.LastIndexByte(row.From, '/'); i > 0 && !strings.HasPrefix(row.From, "file:") {
			c.Secret = row.From[:i] // without the key in it
		}
		c.Status, _ = status(func(p admin.Plugin) bool {
			return p.Plugin == reader && strings.HasSuffix(p.Name, "@"+r.Key)
		})
		all = append(all, c)
	}
	write(w, all)
}
