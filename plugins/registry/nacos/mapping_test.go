package nacos

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-mesh/coxswain/plugins/internal/registrytest"
	"github.com/coxswain-mesh/coxswain/sdk"
)

func configured(t testing.TB, config string) *Config {
	t.Helper()
	c, err := parse([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// describe tells what is published of services as the server tells of them, a line each, and what
// is lost.
func describe(t testing.TB, c *Config, services ...string) string {
	t.Helper()
	l := newLoop(c, nil)
	for _, text := range services {
		var info serviceInfo
		if err := json.Unmarshal([]byte(text), &info); err != nil {
			t.Fatal(err)
		}
		has, _ := info.hosted(nil, 100_000)
		l.view.put(key{"public", info.Group, info.Name}, has, true, time.Now())
	}
	l.apply()
	return registrytest.Describe(t, l.book.Changes(), false)
}

// of writes what the server tells of a service.
func of(service string, all ...record) string {
	text, err := json.Marshal(map[string]any{"name": service, "groupName": "DEFAULT_GROUP", "hosts": all})
	if err != nil {
		panic(err)
	}
	return string(text)
}

func meta(pairs ...string) func(record) {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return with("metadata", m)
}

// TestMapping: what becomes of instances, and what is lost of them.
func TestMapping(t *testing.T) {
	const short = `"host": "{service}.nacos"`
	for name, c := range map[string]struct {
		config, service, want string
	}{
		"protocols": {`{` + short + `}`, of("a", at(1, with("port", 1), meta("protocol", "grpc")),
			at(1, with("port", 2), meta("protocol", "tri")), at(1, with("port", 3), meta("protocol", "dubbo")),
			at(1, with("port", 4), meta("protocol", "odd")), at(1, with("port", 5), meta("secure", "true")), at(1, with("port", 6))),
			"services default/a.nacos grpc-1 GRPC grpc-2 GRPC tcp-3 TCP tcp-4 TCP https-5 HTTPS http-6 HTTP\n" +
				"endpoints default/a.nacos/grpc-1/10.0.0.1:1 weight 1 labels " +
				"nacos/cluster=DEFAULT,protocol=grpc\nendpoints default/a.nacos/grpc-2/10.0.0.1:2 weight 1 labels " +
				"nacos/cluster=DEFAULT,protocol=tri\n" +
				"endpoints default/a.nacos/http-6/10.0.0.1:6 weight 1 labels nacos/cluster=DEFAULT\nendpoints " +
				"default/a.nacos/https-5/10.0.0.1:5 weight 1 labels nacos/cluster=DEFAULT,secure=true\n" +
				"endpoints default/a.nacos/tcp-3/10.0.0.1:3 weight 1 labels " +
				"nacos/cluster=DEFAULT,protocol=dubbo\nendpoints default/a.nacos/tcp-4/10.0.0.1:4 weight 1 labels " +
				"nacos/cluster=DEFAULT,protocol=odd\n" +
				"lost a.nacos:speaks 1 (public/DEFAULT_GROUP/a 10.0.0.1:4 odd)\n"},
		"weights": {`{` + short + `, "servicePort": 80}`, of("a", at(1, with("weight", 0.25)),
			at(2, with("weight", 0)), at(3, with("weight", 10000.0)), at(4, with("weight", "NaN")),
			at(5, with("weight", 0.0001))),
			"services default/a.nacos http-80 HTTP\nendpoints default/a.nacos/http-80/10.0.0.1:8080 weight 25 labels nacos/cluster=DEFAULT\n" +
				"endpoints default/a.nacos/http-80/10.0.0.2:8080 weight 1 labels nacos/cluster=DEFAULT not " +
				"healthy\nendpoints default/a.nacos/http-80/10.0.0.3:8080 weight 1000000 labels " +
				"nacos/cluster=DEFAULT\n" +
				"endpoints default/a.nacos/http-80/10.0.0.4:8080 weight 100 labels nacos/cluster=DEFAULT\nendpoints " +
				"default/a.nacos/http-80/10.0.0.5:8080 weight 1 labels nacos/cluster=DEFAULT\n" +
				"lost a.nacos:weight 1 (public/DEFAULT_GROUP/a 10.0.0.4:8080: NaN)\n"},
		"clusters are zones": {`{` + short + `, "servicePort": 80, "region": "eu", "locality": {"cluster": "zone"}}`,
			of("a", at(1, with("clusterName", "B/1")), at(2),
				at(3, with("clusterName", "B"), meta("zone", "z", "region", "us", "subzone", "s")),
				at(4, meta("topology.istio.io/locality", "r.z"))),
			"services default/a.nacos http-80 HTTP\nendpoints default/a.nacos/http-80/10.0.0.1:8080 weight 1 locality eu/B-1 labels nacos/cluster=B/1\n" +
				"endpoints default/a.nacos/http-80/10.0.0.2:8080 weight 1 labels nacos/cluster=DEFAULT\n" +
				"endpoints default/a.nacos/http-80/10.0.0.3:8080 weight 1 locality us/z/s labels nacos/cluster=B,region=us,subzone=s,zone=z\n" +
				"endpoints default/a.nacos/http-80/10.0.0.4:8080 weight 1 locality r/z labels nacos/cluster=DEFAULT,topology.istio.io/locality=r.z\n"},
		"clusters are regions": {`{` + short + `, "locality": {"cluster": "region"}}`, of("a", at(1, with("clusterName", "B")), at(2, meta("zone", "z"))),
			"services default/a.nacos http-8080 HTTP\nendpoints default/a.nacos/http-8080/10.0.0.1:8080 weight 1 locality B labels nacos/cluster=B\n" +
				"endpoints default/a.nacos/http-8080/10.0.0.2:8080 weight 1 labels nacos/cluster=DEFAULT,zone=z\nlost " +
				"a.nacos:region 1 (public/DEFAULT_GROUP/a 10.0.0.2:8080)\n"},
		"names, accounts, outside": {`{` + short + `}`, of("A_b", at(1, with("ip", "db.example.com"), meta("external", "true", "service-account", "web"))),
			"services default/a_b.nacos http-8080 HTTP by DNS external\nendpoints " +
				"default/a_b.nacos/http-8080/db.example.com:8080 weight 1 labels " +
				"external=true,nacos/cluster=DEFAULT,service-account=web account web\n"},
		"no host": {
			`{` + short + `}`, of("providers:com.example.Web:1.0:", at(1)),
			"lost providers:com.example.web:1.0:.nacos:host 1 (providers:com.example.web:1.0:.nacos)\n",
		},
		"the same place in two clusters": {`{` + short + `}`, of("a", at(1, with("healthy", false)), at(1, with("clusterName", "B"))),
			"services default/a.nacos http-8080 HTTP\nendpoints default/a.nacos/http-8080/10.0.0.1:8080 weight 1 labels " +
				"nacos/cluster=B\nlost a.nacos:same 1 (public/DEFAULT_GROUP/a 10.0.0.1:8080)\n"},
		"what can't be used": {
			`{` + short + `}`,
			`{"name": "a", "groupName": "DEFAULT_GROUP", "hosts": [null, 5, [], {"ip": 7, "port": 1}, {"ip": "no host!", "port": 80}, {"ip": "10.0.0.2", "port": 0},
			{"ip": "10.0.0.3", "port": "x"}, {"ip": "10.0.0.4", "port": 80, "metadata": {"gRPC_port": "99999"}}, {"ip": "10.0.0.5", "port": "80", "metadata": null}, {"ip": "10.0.0.6", "port": 80, "healthy": "yes"}]}`,
			"services default/a.nacos http-80 HTTP\nendpoints default/a.nacos/http-80/10.0.0.5:80 weight 1\nlost " +
				"a.nacos:address 1 (public/DEFAULT_GROUP/a no host!:80)\n" +
				"lost a.nacos:port 3 (public/DEFAULT_GROUP/a 10.0.0.2:0)\nlost a.nacos:record 5",
		},
		"protected": {
			`{` + short + `}`,
			`{"name": "a", "groupName": "DEFAULT_GROUP", "reachProtectionThreshold": true, "hosts": [{"ip": "10.0.0.2", "port": 80, "healthy": true}]}`,
			"services default/a.nacos http-80 HTTP\nendpoints default/a.nacos/http-80/10.0.0.2:80 weight 1\nlost " +
				"a.nacos:protected 1 (public/DEFAULT_GROUP/a)\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := describe(t, configured(t, c.config), c.service)
			if i := strings.Index(got, "lost a.nacos:record"); i >= 0 { // which is the example depends on nothing but chance
				got = got[:i+len("lost a.nacos:record 5")]
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestOneHost: services whose hosts differ in case alone are one, and each has its own instances in
// it.
func TestOneHost(t *testing.T) {
	got := describe(t, configured(t, `{"host": "{service}.nacos"}`), of("Web", at(1)), of("web", at(1), at(2)))
	if n := strings.Count(got, "endpoints default/web.nacos/http-8080/"); n != 2 || !strings.Contains(got, "lost web.nacos:same 1") {
		t.Errorf("%s", got)
	}
}

// TestLimits: what is beyond is counted.
func TestLimits(t *testing.T) {
	var all []record
	for n := range 10 {
		all = append(all, at(n))
	}
	got := describe(t, configured(t, `{"limits": {"instances": 7}}`), of("web", all...))
	if n := strings.Count(got, "endpoints "); n != 7 || !strings.Contains(got, "lost web.default-group.public.nacos:limit 3 (") {
		t.Errorf("%d endpoints:\n%s", n, got)
	}
}

// TestPayload: what is written can be read, and what is cut can't harm.
func TestPayload(t *testing.T) {
	want := payload{kind: "K", headers: map[string]string{"a": "b", "c": ""}, clientIP: "10.0.0.1", body: []byte(`{}`)}
	text, err := codec{}.Marshal(&want)
	if err != nil {
		t.Fatal(err)
	}
	var got payload
	if err := (codec{}).Unmarshal(text, &got); err != nil || !cmp.Equal(want, got, cmp.AllowUnexported(payload{})) {
		t.Errorf("%+v, %v", got, err)
	}
	for n := range text {
		if err := (codec{}).Unmarshal(text[:n], &got); err == nil && n > 0 && got.kind == "K" && len(got.body) > 0 {
			t.Errorf("%d of %d bytes are whole", n, len(text))
		}
	}
}

// FuzzMapping: whatever can be read as a service makes rows that can be read, or is counted.
func FuzzMapping(f *testing.F) {
	f.Add(of("web", at(1), at(2, with("weight", 0.5), meta("gRPC_port", "9090"))))
	f.Add(`{"name": "a", "groupName": "g", "reachProtectionThreshold": true, "hosts": [null, {"ip": "10.0.0.1", "port": "80"}]}`)
	c := configured(f, `{}`)
	f.Fuzz(func(t *testing.T, text string) {
		var info serviceInfo
		if json.Unmarshal([]byte(text), &info) != nil {
			return
		}
		l, k := newLoop(c, nil), key{"public", info.Group, info.Name}
		var before map[string]*instance
		for _, first := range []bool{true, false, true} {
			var has *hosted
			has, before = info.hosted(before, 100_000)
			l.view.put(k, has, first, time.Now())
			l.apply()
			registrytest.Describe(t, l.book.Changes(), false)
		}
		l.view.put(k, &hosted{}, false, time.Now())
		l.apply()
		l.book.Changes()
		if l.view.total != 0 || len(l.shown) != 0 || l.book.Services() != 0 {
			t.Errorf("something is left: %d instances, %v", l.view.total, l.shown)
		}
	})
}

// FuzzPayload: no bytes break the reader.
func FuzzPayload(f *testing.F) {
	text, _ := codec{}.Marshal(&payload{kind: "K", headers: map[string]string{"a": "b"}, body: []byte(`{}`)})
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		var first, second payload
		if (codec{}).Unmarshal(text, &first) != nil {
			return
		}
		again, err := codec{}.Marshal(&first)
		if err != nil {
			t.Fatal(err)
		}
		if err := (codec{}).Unmarshal(again, &second); err != nil || second.kind != first.kind ||
			string(second.body) != string(first.body) || !maps.Equal(second.headers, first.headers) {
			t.Errorf("%+v, not %+v: %v", second, first, err)
		}
	})
}

// TestReadme runs the examples.
func TestReadme(t *testing.T) {
	registrytest.Readme{
		Schema: string(sdk.ConfigSchema(Plugin())), Parse: func(config []byte) error { _, err := parse(config); return err },
		Describe: func(example string) string { return describe(t, configured(t, `{}`), example) }, Reasons: registrytest.Names(reasons),
	}.Check(t)
}

// TestConfig: mistakes are told with their field, and no password.
func TestConfig(t *testing.T) {
	for config, field := range map[string]string{
		`{"servers": []}`:                                               "servers",
		`{"servers": ["http://mesh:pw@h"]}`:                             "servers[0]",
		`{"servers": ["http://a:pw@h\u0000/"]}`:                         "servers[0]",
		`{"servers": ["h:8848", "https://h:8848/"]}`:                    "servers[1]",
		`{"servers": ["h/nacos"]}`:                                      "servers[0]",
		`{"servers": ["h:65000"]}`:                                      "servers[0]",
		`{"servers": ["ftp://h"]}`:                                      "servers[0]",
		`{"grpcOffset": 70000}`:                                         "grpcOffset",
		`{"contextPath": "nacos"}`:                                      "contextPath",
		`{"password": "pw"}`:                                            "username",
		`{"username": "u"}`:                                             "passwordFile",
		`{"username": "u", "password": "pw", "passwordFile": "f"}`:      "passwordFile",
		`{"tls": {"cert": "f"}}`:                                        "tls.cert",
		`{"namespaces": []}`:                                            "namespaces",
		`{"namespaces": [""]}`:                                          "namespaces[0]",
		`{"groups": ["a", "a"]}`:                                        "groups[1]",
		`{"groups": ["A_B", "a-b"]}`:                                    "groups[1]",
		`{"groups": ["a", "b"], "host": "{service}.nacos"}`:             "host",
		`{"namespaces": ["a", "b"], "host": "{service}.{group}.nacos"}`: "host",
		`{"services": {"include": ["["]}}`:                              "services.include[0]",
		`{"clusters": [""]}`:                                            "clusters[0]",
		`{"host": "nacos"}`:                                             "host",
		`{"host": "{service}.{x}"}`:                                     "host",
		`{"protocol": "smtp"}`:                                          "protocol",
		`{"ports": {"a": "smtp"}}`:                                      "ports.a",
		`{"servicePort": 70000}`:                                        "servicePort",
		`{"locality": {"cluster": "rack"}}`:                             "locality.cluster",
		`{"interval": "1ms"}`:                                           "interval",
		`{"limits": {"messageBytes": 1}}`:                               "limits.messageBytes",
		`{"limits": {"requests": 0}}`:                                   "limits.requests",
		`{"meshNamespace": ""}`:                                         "meshNamespace",
		`{"server": "127.0.0.1:8848"}`:                                  "server",
	} {
		_, err := parse([]byte(config))
		wrong, ok := err.(*sdk.FieldError)
		if !ok || wrong.Field != field || strings.Contains(err.Error(), "pw") {
			t.Errorf("%s: %v; it is %s", config, err, field)
		}
	}
	c := configured(t, `{"servers": ["h", "https://i:443/", "[::1]:80"], "contextPath": "/"}`)
	if want := []server{{"http://h:8848", "h:9848"}, {"https://i:443", "i:1443"}, {"http://[::1]:80", "[::1]:1080"}}; !slices.Equal(c.servers, want) {
		t.Errorf("%v", c.servers)
	}
}
