package environment

import "strings"

// Changes are the keys whose served rows changed in a commit, by table; the value says whether a source's row is among the causes.
type Changes map[string]map[string]bool

func (c Changes) add(n Name, source bool) {
	if c[n.Table] == nil {
		c[n.Table] = map[string]bool{}
	}
	c[n.Table][n.Key] = c[n.Table][n.Key] || source
}

// Merge adds the changes of another commit.
func (c Changes) Merge(more Changes) {
	for t, keys := range more {
		if c[t] == nil {
			c[t] = make(map[string]bool, len(keys))
		}
		for k, source := range keys {
			c[t][k] = c[t][k] || source
		}
	}
}

// OnlyEndpoints says whether nothing but endpoints changed.
func (c Changes) OnlyEndpoints() bool {
	for t := range c {
		if t != Endpoints {
			return false
		}
	}
	return true
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
