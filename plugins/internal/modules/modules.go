// Package modules is what config/modules publishes, and generator/istio reads: the modules of
// WasmPlugins and TrafficExtensions, for proxies that can't fetch them.
package modules

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"google.golang.org/protobuf/proto"
	extensions "istio.io/api/extensions/v1alpha1"
)

// Table has, for each resource whose module is there, a row with a Module as JSON (Key); and for
// each of these modules one with its bytes (BytesKey).
const Table = "wasmmodules"

// Module is one that is there.
type Module struct {
	// SHA256 of its bytes, in hexadecimal digits.
	SHA256 string `json:"sha256"`
	// Spec is what the resource said when it was fetched: a WasmConfig, as bytes. It counts until
	// what the resource names now is there.
	Spec []byte `json:"spec"`
}

// Key returns the key of a resource's row: KIND/NAMESPACE/NAME.
func Key(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }

const bytesKey = "sha256/"

// BytesKey returns the key of the row with a module's bytes.
func BytesKey(sha256 string) string { return bytesKey + sha256 }

// Sum is the SHA-256 of bytes, in hexadecimal digits.
func Sum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// Encode returns the payload of a resource's row.
func (m Module) Encode() []byte {
	text, err := json.Marshal(m)
	if err != nil {
		panic(err) // texts and bytes always can be
	}
	return text
}

var sums = regexp.MustCompile("^[0-9a-f]{64}$")

// Row is a row of Table: a Module, or the Bytes of one.
type Row struct {
	Module Module
	Bytes  []byte
}

// Parse reads a row. Bytes that aren't those of its key are an error.
func Parse(key string, payload []byte) (r Row, err error) {
	if sum, ok := strings.CutPrefix(key, bytesKey); ok {
		if Sum(payload) != sum {
			return r, errors.New("its bytes are not those of its key")
		}
		return Row{Bytes: payload}, nil
	}
	if json.Unmarshal(payload, &r.Module) != nil || !sums.MatchString(r.Module.SHA256) {
		return r, errors.New("it doesn't say which module it is about")
	}
	return r, nil
}

// Config reads what the resource said when the module was fetched.
func (m Module) Config() (*extensions.WasmConfig, error) {
	c := &extensions.WasmConfig{}
	return c, proto.Unmarshal(m.Spec, c)
}

// ConfigOf is what a WasmPlugin says of its module, as a TrafficExtension says it.
func ConfigOf(p *extensions.WasmPlugin) *extensions.WasmConfig {
	return &extensions.WasmConfig{
		Url: p.Url, Sha256: p.Sha256, ImagePullPolicy: p.ImagePullPolicy, ImagePullSecret: p.ImagePullSecret,
		VerificationKey: p.VerificationKey, PluginConfig: p.PluginConfig, PluginName: p.PluginName,
		FailStrategy: p.FailStrategy, VmConfig: p.VmConfig, Type: p.Type,
	}
}

// Same reports whether two configurations name the same module, by the same credentials.
func Same(a, b *extensions.WasmConfig) bool {
	return a.Url == b.Url && a.Sha256 == b.Sha256 && a.ImagePullSecret == b.ImagePullSecret && a.Type == b.Type
}

// URL is where a module is. A location without a scheme is an image's.
// Source: Istio, WasmPlugin.url.
func URL(c *extensions.WasmConfig) (*url.URL, error) {
	location := c.Url
	if !strings.Contains(location, "://") {
		location = "oci://" + location
	}
	u, err := url.Parse(location)
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	return u, nil
}
