package registrytest

import (
	"slices"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// Has waits until a host's healthy endpoints are at these addresses.
func Has(t *testing.T, h *plugintest.Harness, host string, addresses ...string) {
	t.Helper()
	slices.Sort(addresses)
	h.WaitRows(state.Endpoints, func(rows map[string]*sdk.Row) bool {
		return slices.Equal(healthy(rows, host), addresses)
	})
}

// Keeps watches that a host's healthy endpoints stay at these addresses, until while reports true.
func Keeps(t *testing.T, h *plugintest.Harness, while func() bool, host string, addresses ...string) {
	t.Helper()
	Until(t, "it did not come to that", func() bool {
		t.Helper()
		if got := healthy(h.Rows(state.Endpoints), host); !slices.Equal(got, addresses) {
			t.Fatalf("%s has %v, not %v", host, got, addresses)
		}
		return while()
	})
}

func healthy(rows map[string]*sdk.Row, host string) (all []string) {
	for _, r := range rows {
		if e, err := sdk.EndpointOf(r); err == nil && e.Host == host && e.Health == 0 {
			all = append(all, e.Address)
		}
	}
	slices.Sort(all)
	return all
}

// Until waits until is reports true, 20 s at most; what says what did not happen then.
func Until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
	}
}
