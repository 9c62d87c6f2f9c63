// Package vault is the built-in plugin config/vault: certificates and keys from HashiCorp Vault's
// key-value store (version 2), as Secrets for generator/sds.
//
// server.go asks the server, source.go does so again and again and publishes what has changed.
package vault

import (
	"net"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secrets"
	"github.com/coxswain-mesh/coxswain/plugins/internal/secure"
	"github.com/coxswain-mesh/coxswain/plugins/internal/strict"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// Config is the entry's `config` in plugins.yaml.
type Config struct {
	Address string      `json:"address" required:"true" doc:"The server's URL, such as https://vault.example:8200; http for this machine's own addresses alone."`
	TLS     *secure.TLS `json:"tls" doc:"For https."`
	Mount   string      `json:"mount" doc:"Where the key-value store (version 2) is mounted."`
	// Path of the folder whose secrets are read; empty: all of the store.
	Path string `json:"path" doc:"The folder of the store with a secret NAMESPACE/NAME for each Secret; if absent, the store itself."`
	// Namespace is that of all secrets, which then have no folder for it.
	Namespace string `json:"namespace" doc:"The namespace of all; secrets are then NAME alone."`
	TokenFile string `json:"tokenFile" doc:"File of a token, read anew for each look. This or appRole."`
	AppRole   *Role  `json:"appRole" doc:"A role to log in with."`
	// Interval is how often the store is looked at.
	Interval time.Duration `json:"interval" min:"1s" doc:"How often the store is looked at; 1s at least."`
	Timeout  time.Duration `json:"timeout" min:"1ms" doc:"How long a look may take."`
	Limits   limits        `json:"limits"`
}

// Role is one of Vault's AppRole method.
type Role struct {
	Mount        string `json:"mount" doc:"Where the method is mounted; approle if absent."`
	RoleID       string `json:"roleID" required:"true" doc:"The role's id."`
	SecretIDFile string `json:"secretIDFile" required:"true" doc:"File of its secret id, read anew for each login."`
}

// limits bound what is taken of a store.
type limits struct {
	Secrets int   `json:"secrets" min:"1" doc:"Secrets that the folder may have; more are an error, and what was read last stays."`
	Bytes   int64 `json:"bytes" min:"1" doc:"The largest answer of the server that is taken."`
}

// defaults are what counts where the config says nothing.
func defaults() Config {
	return Config{Mount: "secret", Interval: 30 * time.Second, Timeout: 20 * time.Second, Limits: limits{Secrets: 1000, Bytes: 1 << 20}}
}

// Check is an sdk.Checker's.
func (c *Config) Check() error {
	for field, text := range map[string]*string{"mount": &c.Mount, "path": &c.Path} {
		clean := strings.Trim(path.Clean("/"+*text), "/")
		if clean != strings.Trim(*text, "/") || strings.ContainsAny(clean, "?#%") {
			return strict.Errorf(field, "%q is no path within a store, such as mesh/certificates", *text)
		}
		*text = clean
	}
	switch {
	case c.Mount == "":
		return strict.Errorf("mount", "is empty: it is where the store is mounted, such as secret")
	case strings.ContainsAny(c.Namespace, "/@"):
		return strict.Errorf("namespace", "%q is no name of a namespace", c.Namespace)
	case (c.TokenFile == "") == (c.AppRole == nil):
		return strict.Errorf("tokenFile", "either a file of a token or an appRole says who asks")
	}
	if err := c.TLS.Check("tls"); err != nil {
		return err
	}
	return checkAddress(c.Address)
}

// checkAddress reports, as an error, why a server must not be asked at an address. Whoever could
// read what it answers would have the keys.
func checkAddress(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || strings.Trim(u.Path, "/") != "":
		return strict.Errorf("address", "is no URL of a server such as https://vault.example:8200")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return strict.Errorf("address", "keys would cross the network in plain text: use https")
	}
	return nil
}

// loopback reports whether a host is this machine.
func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback() || host == "localhost" && net.ParseIP(host) == nil
}

// Plugin returns the plugin for sdk.Serve.
func Plugin() sdk.ConfigSourcePlugin {
	return sdk.ConfigSourcePlugin{
		Name:      "config/vault",
		Version:   "1",
		Publishes: []string{secrets.SecretTable, kinds.FaultTable},
		Secrets:   []string{secrets.SecretTable},
		New:       sdk.WithConfig(defaults(), func(c Config) (sdk.ConfigSource, error) { return newSource(c) }),
	}
}
