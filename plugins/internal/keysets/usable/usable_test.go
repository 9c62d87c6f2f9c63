package usable

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/envoy"
)

// The key that nobody has is made as its comment says: whoever doubts it can make it anew.
func TestNobodysKeyIsMadeByHashing(t *testing.T) {
	var set struct {
		Keys []struct{ X, Y string }
	}
	if err := json.Unmarshal([]byte(Nobodys), &set); err != nil || len(set.Keys) != 1 {
		t.Fatal(err, set)
	}
	curve := elliptic.P256()
	for try := 0; ; try++ {
		hash := sha256.Sum256([]byte(Phrase + strconv.Itoa(try)))
		x, y := elliptic.UnmarshalCompressed(curve, append([]byte{2}, hash[:]...)) // 2: y is even
		if x == nil {
			continue
		}
		for name, c := range map[string]struct {
			want *big.Int
			got  string
		}{"x": {x, set.Keys[0].X}, "y": {y, set.Keys[0].Y}} {
			if want := base64.RawURLEncoding.EncodeToString(c.want.FillBytes(make([]byte, 32))); c.got != want {
				t.Errorf("%s is %s, want %s", name, c.got, want)
			}
		}
		return
	}
}

// sets are texts, and whether Envoy takes them as key sets.
func sets(t *testing.T) map[string]struct {
	text string
	ok   bool
} {
	type of = struct {
		text string
		ok   bool
	}
	one := func(members string) string { return `{"keys":[{` + members + `}]}` }
	b64 := base64.RawURLEncoding.EncodeToString
	modulus := func(bits int) string {
		n := new(big.Int).SetBit(big.NewInt(12345), bits-1, 1)
		return b64(n.Bytes())
	}
	rsaOf := func(bits int, e string) string { return `"kty":"RSA","n":"` + modulus(bits) + `","e":"` + e + `"` }
	k, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, err := k.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	p384 := `"x":"` + b64(point[1:49]) + `","y":"` + b64(point[49:]) + `"`
	good := `"x":"3wgPX7ujE13YxVMhE-d-_4Q-ElfTz89IPq0Tcd5_wLA","y":"-ov_Yx62kcwm9oF-hU3MlW_cQjrq1fP7SXkZhFDRVuw"`
	thirtyTwo := b64(make([]byte, 32))
	return map[string]of{
		"nobody's":                  {Nobodys, true},
		"no JSON":                   {`<html>`, false},
		"a list":                    {`[]`, false},
		"an object":                 {`{}`, false},
		"no key":                    {`{"keys":[]}`, false},
		"null":                      {`{"keys":null}`, false},
		"keys that are text":        {`{"keys":"x"}`, false},
		"a key that is text":        {`{"keys":["x"]}`, false},
		"a key without a kind":      {one(`"kid":"1"`), false},
		"a kind that is a number":   {one(`"kty":1`), false},
		"RSA":                       {one(rsaOf(2048, "AQAB")), true},
		"RSA, padded":               {one(`"kty":"RSA","n":"` + modulus(2048) + `==","e":"AQAB"`), true},
		"RSA with exponent 3":       {one(rsaOf(2048, "Aw")), true},
		"RSA with exponent 5":       {one(rsaOf(2048, "BQ")), false},
		"RSA without exponent":      {one(`"kty":"RSA","n":"` + modulus(2048) + `"`), false},
		"RSA, even":                 {one(`"kty":"RSA","n":"` + b64(new(big.Int).SetBit(big.NewInt(0), 2047, 1).Bytes()) + `","e":"AQAB"`), false},
		"RSA of 511 bits":           {one(rsaOf(511, "AQAB")), false},
		"RSA of 512 bits":           {one(rsaOf(512, "AQAB")), true},
		"RSA of 8192 bits":          {one(rsaOf(8192, "AQAB")), true},
		"RSA of 40000 bits":         {one(rsaOf(40000, "AQAB")), false},
		"RSA for encryption":        {one(rsaOf(2048, "AQAB") + `,"alg":"A128"`), false},
		"RSA for PS256":             {one(rsaOf(2048, "AQAB") + `,"alg":"PS256"`), true},
		"RSA, no base64":            {one(`"kty":"RSA","n":"!!!","e":"AQAB"`), false},
		"EC":                        {one(`"kty":"EC",` + good), true},
		"EC of another algorithm":   {one(`"kty":"EC","crv":"P-256","alg":"ES384",` + good), false},
		"EC by its algorithm":       {one(`"kty":"EC","alg":"ES384",` + p384), true},
		"EC by its curve":           {one(`"kty":"EC","crv":"P-384",` + p384), true},
		"EC of another curve":       {one(`"kty":"EC","crv":"P-256",` + p384), false},
		"EC of secp256k1":           {one(`"kty":"EC","crv":"secp256k1",` + good), false},
		"EC, curve a number":        {one(`"kty":"EC","crv":1,` + good), false},
		"EC beside the curve":       {one(`"kty":"EC","x":"` + thirtyTwo + `","y":"` + thirtyTwo + `"`), false},
		"EC without a point":        {one(`"kty":"EC"`), false},
		"Ed25519":                   {one(`"kty":"OKP","crv":"Ed25519","x":"` + thirtyTwo + `"`), true},
		"Ed25519 too short":         {one(`"kty":"OKP","crv":"Ed25519","x":"AQAB"`), false},
		"X25519":                    {one(`"kty":"OKP","crv":"X25519","x":"` + thirtyTwo + `"`), false},
		"oct":                       {one(`"kty":"oct","k":"AQAB"`), true},
		"oct, empty":                {one(`"kty":"oct","k":""`), false},
		"another kind":              {one(`"kty":"none"`), false},
		"a useless and a good one":  {`{"keys":[{"kty":"none"},7,{"kty":"EC",` + good + `}]}`, true},
		"a number that is too much": {`{"keys":[{"kty":"EC","n":1e999,` + good + `}]}`, false},
		"something behind":          {Nobodys + `{}`, false},
		"cut":                       {Nobodys[:len(Nobodys)-1], false},
		"deep":                      {one(`"kty":"EC",` + good + `,"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200)), false},
		"certificates":              {certificate(t), true},
		"certificates that are not": {`{"a":"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"}`, false},
	}
}

func certificate(t *testing.T) string {
	t.Helper()
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, c, c, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]string{"id": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestCheck(t *testing.T) {
	for name, c := range sets(t) {
		if err := Check(c.text); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	if Check("") == nil {
		t.Error("no text is a set")
	}
	large := `{"keys":[{"kty":"oct","k":"AQAB","a":"` + strings.Repeat("x", MaxBytes) + `"}]}`
	if err := Check(large); err == nil || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("too large: %v", err)
	}
}

// Envoy itself takes what Check takes, and refuses what Check refuses.
func TestEnvoyAgrees(t *testing.T) {
	program := envoy.Binary(t)
	for name, c := range sets(t) {
		t.Run(name, func(t *testing.T) {
			config := filepath.Join(t.TempDir(), "envoy.json")
			if err := os.WriteFile(config, bootstrap(t, c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			said, err := exec.Command(program, "--mode", "validate", "-c", config).CombinedOutput()
			if (err == nil) != c.ok {
				t.Errorf("taken: %v, want %v: %s", err == nil, c.ok, said)
			}
			if err != nil && !strings.Contains(string(said), "jwks") {
				t.Errorf("refused for something else: %s", said)
			}
		})
	}
}

// bootstrap is Envoy's with a listener that checks tokens by a key set.
func bootstrap(t *testing.T, keys string) []byte {
	t.Helper()
	type m = map[string]any
	filter := func(name, kind string, more m) m {
		more["@type"] = "type.googleapis.com/envoy.extensions.filters." + kind
		return m{"name": name, "typed_config": more}
	}
	http := filter("http", "network.http_connection_manager.v3.HttpConnectionManager", m{
		"stat_prefix": "x", "route_config": m{},
		"http_filters": []m{
			filter("jwt", "http.jwt_authn.v3.JwtAuthentication", m{"providers": m{"p": m{"issuer": "i", "local_jwks": m{"inline_string": keys}}}}),
			filter("router", "http.router.v3.Router", m{}),
		},
	})
	b, err := json.Marshal(m{"static_resources": m{"listeners": []m{{
		"address":       m{"socket_address": m{"address": "127.0.0.1", "port_value": 0}},
		"filter_chains": []m{{"filters": []m{http}}},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	return b
}
