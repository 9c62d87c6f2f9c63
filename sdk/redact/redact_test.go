package redact_test

import (
	"fmt"
	"strings"
	"testing"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	wasm "github.com/envoyproxy/go-control-plane/envoy/extensions/wasm/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/coxswain-mesh/coxswain/sdk/redact"
)

// planted begins each secret, shown each text that is none.
const planted, shown = "hunter2-", "seen-"

func TestText(t *testing.T) {
	pem := "-----BEGIN EC PRIVATE KEY-----\nhunter2-\n-----END EC PRIVATE KEY-----"
	for in, want := range map[string]string{
		"password=hunter2-x and more":                        "password=[redacted] and more",
		`bad field: {"clientSecret": "hunter2-\"x", "a": 1}`: `bad field: {"clientSecret": "[redacted]", "a": 1}`,
		"Authorization: Bearer hunter2-x":                    "Authorization: Bearer [redacted]",
		"it says bearer hunter2-x,":                          "it says bearer [redacted],",
		"Basic aHVudGVyMjpodW50ZXIy refused":                 "Basic [redacted] refused",
		"redis://me:hunter2-x@cache:6379 is away":            "redis://me:[redacted]@cache:6379 is away",
		"https://hunter2-x@git.example/a":                    "https://[redacted]@git.example/a",
		"x " + pem + " y":                                    "x [redacted] y",
		"cut off " + pem[:40]:                                "cut off [redacted]",
		`inline_string: "hunter2-x"`:                         `inline_string: "[redacted]"`,
		"password: hunter2-x":                                "password: [redacted]",
		// What is no secret stays.
		"there is no Secret: kubernetes://edge/web":        "there is no Secret: kubernetes://edge/web",
		"invalid token: expected a comma":                  "invalid token: expected a comma",
		"basic authentication and a bearer token":          "basic authentication and a bearer token",
		"credentialName=web secretName: web":               "credentialName=web secretName: web",
		"spiffe://cluster.local/ns/a/sa/b, a@example.com":  "spiffe://cluster.local/ns/a/sa/b, a@example.com",
		"oci://ghcr.io/a@sha256:0123":                      "oci://ghcr.io/a@sha256:0123",
		"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERT": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERT",
	} {
		if got := redact.Text(in); got != want {
			t.Errorf("%q: %q, not %q", in, got, want)
		}
	}
}

func TestName(t *testing.T) {
	for _, name := range []string{
		"password", "Passwd", "API-Key", "x-api-key", "clientSecret", "auth_token", "PRIVATE_KEY", "credentials",
		"spring.datasource.password",
	} {
		if !redact.Name(name) {
			t.Errorf("%s is no secret's", name)
		}
	}
	for _, name := range []string{
		"key", "name", "credentialName", "secret_name", "token_bucket", "max_tokens", "tokensPerFill",
		"tokenEndpoint", "imagePullSecret", "privateKeyProvider", "path",
	} {
		if redact.Name(name) {
			t.Errorf("%s is a secret's", name)
		}
	}
}

func TestString(t *testing.T) {
	in := `{"apiVersion":"v1","spec":{"pluginConfig":{"password":"hunter2-a","pin":{"token":12345},"mode":"seen-a","note":"password=hunter2-b"},` +
		`"vmConfig":{"env":[{"name":"value","value":"hunter2-c"},{"value":"hunter2-d","name":"seen-b"}]},` +
		`"headers":[{"name":"Cookie","value":"hunter2-e"},{"name":"a","value":"seen-c"}]}}`
	got := redact.String(in)
	if strings.Contains(got, planted) || strings.Contains(got, "12345") ||
		strings.Count(got, shown) != strings.Count(in, shown) || strings.Count(got, redact.Word) != 6 {
		t.Error(got)
	}
}

// inline is a DataSource.
func inline(text string) *core.DataSource {
	return &core.DataSource{Specifier: &core.DataSource_InlineString{InlineString: text}}
}

func wrap(t testing.TB, m proto.Message) *anypb.Any {
	t.Helper()
	a, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func made(t testing.TB, text string) *structpb.Struct {
	t.Helper()
	s := &structpb.Struct{}
	if err := protojson.Unmarshal([]byte(text), s); err != nil {
		t.Fatal(err)
	}
	return s
}

// full is a cluster with secrets wherever one may be.
func full(t testing.TB, with string) *cluster.Cluster {
	t.Helper()
	config := wrap(t, &wasm.PluginConfig{
		Vm: &wasm.PluginConfig_VmConfig{VmConfig: &wasm.VmConfig{
			VmId: "seen-vm", EnvironmentVariables: &wasm.EnvironmentVariables{KeyValues: map[string]string{"seen-variable": with + "env"}},
		}},
	})
	return &cluster.Cluster{
		Name: "seen-token-server",
		TransportSocket: &core.TransportSocket{Name: "seen-socket", ConfigType: &core.TransportSocket_TypedConfig{TypedConfig: wrap(t, &tls.UpstreamTlsContext{
			CommonTlsContext: &tls.CommonTlsContext{TlsCertificates: []*tls.TlsCertificate{{
				CertificateChain: inline("seen-chain"), PrivateKey: inline(with + "key"),
				Password: &core.DataSource{Specifier: &core.DataSource_Filename{Filename: "/seen-file"}},
			}}},
		})}},
		Metadata: &core.Metadata{
			FilterMetadata: map[string]*structpb.Struct{
				"seen-a": made(t, `{"password": "`+with+`p", "deep": [{"api_key": {"is": "`+with+`q"}}], "other": "seen-b", "pin_token": 4711,
				"env": [{"name": "seen-d", "value": "`+with+`r"}], "pair": {"value": "`+with+`s", "name": "authorization"}}`),
			},
			TypedFilterMetadata: map[string]*anypb.Any{"seen-c": config},
		},
	}
}

// TestMessage: secrets are in nothing that is made of a message, and all else is.
func TestMessage(t *testing.T) {
	c := full(t, planted)
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	const url = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	out := redact.Message(url, raw)
	got := &cluster.Cluster{}
	if err := proto.Unmarshal(out, got); err != nil {
		t.Fatal(err)
	}
	text := protojson.Format(got)
	if strings.Contains(string(out), planted) || strings.Contains(text, "4711") {
		t.Errorf("secrets are in %s", text)
	}
	if a, b := strings.Count(text, shown), strings.Count(protojson.Format(c), shown); a != b {
		t.Errorf("%d of %d other texts are in %s", a, b, text)
	}
	if !redact.Has(url, raw) || len(redact.Values(url, raw)) != 7 {
		t.Errorf("it has %q", redact.Values(url, raw))
	}
	// What is not known is looked through by its shape.
	if out := redact.Message("type.googleapis.com/example.Unknown", raw); strings.Contains(string(out), planted) {
		t.Errorf("of a type that is not known: %q", out)
	}
	same := redact.SameLength("", raw)
	if len(same) != len(raw) || strings.Contains(string(same), planted) || proto.Unmarshal(same, got) != nil {
		t.Errorf("%d bytes of %d: %q", len(same), len(raw), same)
	}
	plain, err := proto.Marshal(&cluster.Cluster{Name: "seen-password-server", AltStatName: "a"})
	if err != nil || redact.Has(url, plain) || string(redact.Message(url, plain)) != string(plain) {
		t.Errorf("a cluster without secrets: %v %q", err, redact.Message(url, plain))
	}
}

func TestHeaders(t *testing.T) {
	c := &route.RouteConfiguration{
		RequestHeadersToAdd: []*core.HeaderValueOption{
			{Header: &core.HeaderValue{Key: "Authorization", Value: "hunter2-a"}}, {Header: &core.HeaderValue{Key: "x-api-key", RawValue: []byte("hunter2-b")}},
			{Header: &core.HeaderValue{Key: "cookie", Value: "hunter2-c"}}, {Header: &core.HeaderValue{Key: "x-version", Value: "seen-d"}},
		},
		VirtualHosts: []*route.VirtualHost{{Name: "v", Routes: []*route.Route{{Match: &route.RouteMatch{Headers: []*route.HeaderMatcher{
			{Name: "authorization", HeaderMatchSpecifier: &route.HeaderMatcher_PrefixMatch{PrefixMatch: "hunter2-e"}}, //lint:ignore SA1019 proxies take it
			{Name: "seen-f", HeaderMatchSpecifier: &route.HeaderMatcher_PrefixMatch{PrefixMatch: "seen-g"}},           //lint:ignore SA1019 as above
		}}}}}},
	}
	raw, err := proto.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	out := string(redact.Message("envoy.config.route.v3.RouteConfiguration", raw))
	if strings.Contains(out, planted) || strings.Count(out, shown) != 3 || !strings.Contains(out, "Authorization") {
		t.Errorf("%q", out)
	}
}

// TestNumbered: two secrets are told apart, and equal ones are equal.
func TestNumbered(t *testing.T) {
	n := redact.Numbered()
	of := func(secret string) string {
		raw, err := proto.Marshal(&core.Metadata{FilterMetadata: map[string]*structpb.Struct{"a": made(t, `{"password":"`+secret+`"}`)}})
		if err != nil {
			t.Fatal(err)
		}
		return string(n("envoy.config.core.v3.Metadata", raw))
	}
	a, b, c := of("one"), of("two"), of("one")
	if a == b || a != c || !strings.Contains(b, "[redacted 2]") {
		t.Errorf("%q %q %q", a, b, c)
	}
}

// TestDeep: what lies too deep is not shown, and costs little.
func TestDeep(t *testing.T) {
	v := structpb.NewStringValue("hunter2-deep")
	for range 1000 {
		v = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{v}})
	}
	raw, err := proto.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{"google.protobuf.Value", "example.Unknown"} {
		if out := redact.Message(url, raw); strings.Contains(string(out), planted) || !redact.Has(url, raw) {
			t.Errorf("%s: %d bytes", url, len(out))
		}
	}
	deep := strings.Repeat("[", 5000) + `"hunter2-deep"` + strings.Repeat("]", 5000)
	if out := redact.String(deep); strings.Contains(out, planted) {
		t.Errorf("%.100s", out)
	}
}

// TestDeclared: a field that a program names is secret, in rows of a table, too.
func TestDeclared(t *testing.T) {
	redact.Declare("envoy.config.core.v3.Locality.zone")
	redact.DeclareRows("example.com/Place", "envoy.config.core.v3.Locality")
	raw, err := proto.Marshal(&core.Locality{Region: "seen-a", Zone: "hunter2-a"})
	if err != nil {
		t.Fatal(err)
	}
	if out := string(redact.Row("example.com/Place", raw)); strings.Contains(out, planted) || !strings.Contains(out, shown) {
		t.Errorf("%q", out)
	}
	for in, want := range map[string]string{
		`{"data":{"token":"hunter2-a"},"seen":1}`: `{"data":{"token":"[redacted]"},"seen":1}`,
		"password=hunter2-a":                      "password=[redacted]",
	} {
		if got := string(redact.Row("example.com/Other", []byte(in))); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
}

// FuzzMessage: whatever comes, nothing panics, and what keeps its length does so.
func FuzzMessage(f *testing.F) {
	f.Add([]byte("\x0a\x08password\x12\x03abc"))
	f.Add([]byte(`{"a":[{"password":"b"}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, url := range []string{"envoy.config.cluster.v3.Cluster", "google.protobuf.Struct", "google.protobuf.Any", "unknown"} {
			redact.Message(url, b)
		}
		if out := redact.SameLength("", b); len(out) != len(b) {
			t.Errorf("%d bytes of %d", len(out), len(b))
		}
		redact.String(string(b))
	})
}

func Example() {
	fmt.Println(redact.Text("refused: password=hunter2"))
	// Output: refused: password=[redacted]
}
