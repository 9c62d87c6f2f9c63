// Command vault is HashiCorp's Vault for tests: its core and its HTTP interface, with the key-value
// store and the AppRole method alone, on a folder. It unseals itself: what it needs for that, and
// the root token, are in the folder, too.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/hashicorp/go-hclog"
	kv "github.com/hashicorp/vault-plugin-secrets-kv"
	"github.com/hashicorp/vault/builtin/credential/approle"
	vaulthttp "github.com/hashicorp/vault/http"
	"github.com/hashicorp/vault/internalshared/configutil"
	"github.com/hashicorp/vault/sdk/helper/consts"
	"github.com/hashicorp/vault/sdk/logical"
	"github.com/hashicorp/vault/sdk/physical/file"
	"github.com/hashicorp/vault/vault"
)

func main() {
	dir := flag.String("dir", "", "folder of what it keeps")
	address := flag.String("address", "", "where it listens")
	cert := flag.String("cert", "", "file of its certificate")
	key := flag.String("key", "", "file of its key")
	flag.Parse()
	if err := run(*dir, *address, *cert, *key); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// opened is what a vault is opened with.
type opened struct {
	Key  []byte `json:"key"`
	Root string `json:"root"`
}

func run(dir, address, cert, key string) error {
	log := hclog.New(&hclog.LoggerOptions{Level: hclog.Warn, Output: os.Stderr})
	storage, err := file.NewFileBackend(map[string]string{"path": filepath.Join(dir, "storage")}, log)
	if err != nil {
		return err
	}
	core, err := vault.NewCore(&vault.CoreConfig{
		Physical: storage, Logger: log, DisableMlock: true, BuiltinRegistry: builtins{},
		LogicalBackends:    map[string]logical.Factory{"kv": kv.Factory},
		CredentialBackends: map[string]logical.Factory{"approle": approle.Factory},
	})
	if err != nil {
		return err
	}
	by, err := open(core, filepath.Join(dir, "opened"))
	if err != nil {
		return err
	}
	if _, err := core.Unseal(by.Key); err != nil {
		return err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: vaulthttp.Handler.Handler(&vault.HandlerProperties{Core: core, ListenerConfig: &configutil.Listener{}})}
	if cert == "" {
		return server.Serve(l)
	}
	return server.ServeTLS(l, cert, key)
}

// builtins are the plugins that there are.
type builtins struct{}

var factories = map[consts.PluginType]map[string]logical.Factory{
	consts.PluginTypeSecrets:    {"kv": kv.Factory},
	consts.PluginTypeCredential: {"approle": approle.Factory},
}

func (builtins) Get(name string, kind consts.PluginType) (func() (any, error), bool) {
	f, ok := factories[kind][name]
	return func() (any, error) { return f, nil }, ok
}

func (b builtins) Contains(name string, kind consts.PluginType) bool {
	_, ok := b.Get(name, kind)
	return ok
}

func (builtins) Keys(kind consts.PluginType) []string {
	return slices.Sorted(maps.Keys(factories[kind]))
}

func (b builtins) DeprecationStatus(name string, kind consts.PluginType) (consts.DeprecationStatus, bool) {
	return consts.Supported, b.Contains(name, kind)
}

func (builtins) IsBuiltinEntPlugin(string, consts.PluginType) bool { return false }

// open returns what opens a vault, which is made where there is none.
func open(core *vault.Core, path string) (*opened, error) {
	text, err := os.ReadFile(path)
	if err == nil {
		var o opened
		return &o, json.Unmarshal(text, &o)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	made, err := core.Initialize(context.Background(), &vault.InitParams{
		BarrierConfig: &vault.SealConfig{SecretShares: 1, SecretThreshold: 1}, RecoveryConfig: &vault.SealConfig{},
	})
	if err != nil {
		return nil, err
	}
	o := &opened{Key: made.SecretShares[0], Root: made.RootToken}
	if text, err = json.Marshal(o); err != nil {
		return nil, err
	}
	return o, os.WriteFile(path, text, 0o600)
}
