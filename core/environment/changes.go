package environment

import (
	"strings"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// Changes are the keys whose served rows changed in a commit, by table.
type Changes map[string]map[string]Change

// Change of a served row.
type Change struct {
	// Source reports whether a source's row is among the causes; if not, only derived rows changed.
	Source bool
	// Before is the row that was served before; nil if there was none.
	Before *pb.Row
}

func (c Changes) add(n Name, change Change) {
	if c[n.Table] == nil {
		c[n.Table] = map[string]Change{}
	}
	if first, ok := c[n.Table][n.Key]; ok {
		change.Source, change.Before = change.Source || first.Source, first.Before
	}
	c[n.Table][n.Key] = change
}

// Add adds the change of one row; of several the first one's Before counts.
func (c Changes) Add(table, key string, change Change) { c.add(Name{table, key}, change) }

// Merge adds the changes of a later commit.
func (c Changes) Merge(more Changes) {
	for t, keys := range more {
		for k, change := range keys {
			c.Add(t, k, change)
		}
	}
}

// ServiceOf returns the key of the service that an endpoint's key begins with: NAMESPACE/HOST.
func ServiceOf(endpoint string) string {
	i := strings.IndexByte(endpoint, '/')
	if i < 0 {
		return endpoint
	}
	j := strings.IndexByte(endpoint[i+1:], '/')
	if j < 0 {
		return endpoint
	}
	return endpoint[:i+1+j]
}
