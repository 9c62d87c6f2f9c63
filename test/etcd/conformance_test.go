package etcd_test

import (
	"context"
	"fmt"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/test/etcd"
)

const (
	taken = `{"apiVersion": "networking.istio.io/v1beta1", "kind": "ServiceEntry", "metadata": {"namespace": "shop"},
	"spec": {"hosts": ["a.example"], "resolution": "DNS", "ports": [{"number": 80, "name": "http", "protocol": "HTTP"}]},
	"status": {"conditions": [{"type": "example.com/Seen", "status": "True"}], "addresses": [{"value": "240.240.0.1"}]}}`
	refused = `{"apiVersion": "networking.istio.io/v1", "kind": "ServiceEntry", "metadata": {"namespace": "shop"},
	"spec": {"hosts": [], "ports": [{"number": 80, "name": "http"}]}}`
)

// source makes an etcd have so many keys, with what key and value return.
func source(s *etcd.Server, prefix string, of func(i int) (key, value string)) func(int) error {
	has := 0
	return func(rows int) error {
		var ops []clientv3.Op
		flush := func() error {
			if len(ops) == 0 {
				return nil
			}
			_, err := s.Client.Txn(context.Background()).Then(ops...).Commit()
			ops = nil
			return err
		}
		for i := min(has, rows); i < max(has, rows); i++ {
			key, value := of(i)
			if i < rows {
				ops = append(ops, clientv3.OpPut(prefix+key, value))
			} else {
				ops = append(ops, clientv3.OpDelete(prefix+key))
			}
			if len(ops) == 100 {
				if err := flush(); err != nil {
					return err
				}
			}
		}
		has = rows
		return flush()
	}
}

// TestStoreConformance: config/etcd is a config source and a store as any other.
func TestStoreConformance(t *testing.T) {
	t.Parallel()
	s := etcd.Start(t)
	plugintest.Conform(t, plugintest.Suite{
		Kind: "config", Config: fmt.Sprintf(`{"endpoints": ["http://%s"]}`, s.Address),
		BadConfigs: []any{`{}`, `{"endpoints": ["x"]}`}, Object: taken, BadObject: refused, Many: 3000,
		Source: source(s, resources, func(i int) (string, string) {
			name := fmt.Sprintf("entry-%d", i)
			return "networking.istio.io/ServiceEntry/many/" + name,
				fmt.Sprintf(`{"apiVersion": "networking.istio.io/v1", "kind": "ServiceEntry", "metadata": {"namespace": "many", "name": %q},
				"spec": {"hosts": ["%s.example"], "resolution": "DNS", "ports": [{"number": 80, "name": "http", "protocol": "HTTP"}]}}`, name, name)
		}),
	}, plugin("config/etcd"))
}

// TestRegistryConformance: registry/etcd is a registry as any other.
func TestRegistryConformance(t *testing.T) {
	t.Parallel()
	s := etcd.Start(t)
	plugintest.Conform(t, plugintest.Suite{
		Kind: "registry", Config: fmt.Sprintf(`{"endpoints": ["http://%s"]}`, s.Address), BadConfigs: []any{`{}`, `{"endpoints": ["x"]}`}, Many: 20_000,
		Source: source(s, instances, func(i int) (string, string) {
			return fmt.Sprintf("%d", i), fmt.Sprintf(`{"host": "service-%d.example", "address": "10.%d.%d.%d", "port": 80}`, i/100, i>>16&255, i>>8&255, i&255)
		}),
	}, plugin("registry/etcd"))
}
