package eureka

import (
	"os"
	"path/filepath"
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

// describe tells what is published of an answer that has everything, a line each, and what is lost.
func describe(t testing.TB, c *Config, body []byte) string {
	t.Helper()
	all, err := read(body, 100_000)
	if err != nil {
		t.Fatal(err)
	}
	l := newLoop(c, nil, nil)
	if err := l.view.full(all, true, time.Now()); err != nil {
		t.Fatal(err)
	}
	l.apply()
	return registrytest.Describe(t, l.book.Changes(), true)
}

func recorded(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestRecorded: what becomes of what Eureka itself answers.
func TestRecorded(t *testing.T) {
	for _, c := range []struct{ name, config, want string }{
		{"everything", `{}`, `services default/db.eureka tcp-5432 TCP external
services default/shop.eureka http-8080 HTTP
services default/web.eureka grpc-8080 GRPC https-8443 HTTPS
endpoints default/db.eureka/tcp-5432/10.0.1.1:5432 weight 1 labels external=true,protocol=tcp node db.example.com
endpoints default/shop.eureka/http-8080/10.0.0.1:8080 weight 1 locality us-east-1/us-east-1c labels eureka/application=WEB,eureka/asg=web-v001,eureka/group=SHOPPING node 10.0.0.1
endpoints default/web.eureka/grpc-8080/10.0.0.2:8080 weight 3 locality eu/b labels protocol=grpc,region=eu,service-account=web,version=v2,weight=3,zone=b node n2 account web
endpoints default/web.eureka/grpc-8080/10.0.0.3:8080 weight 1 labels protocol=grpc,weight=0 node n3 not healthy
endpoints default/web.eureka/grpc-8080/10.0.0.4:8080 weight 1 labels protocol=grpc node n4 draining
endpoints default/web.eureka/https-8443/10.0.0.2:8443 weight 3 locality eu/b labels protocol=grpc,region=eu,service-account=web,version=v2,weight=3,zone=b node n2 account web
lost odd:address 1 (ODD/odd-1)
lost odd:label 1 (ODD/odd-2 no label)
lost odd:port 1 (ODD/odd-2)
lost shop:same 1 (SHOP/shop-1)
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, describe(t, configured(t, c.config), recorded(t, c.name))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestOdd: what can be registered, and what older servers answer.
func TestOdd(t *testing.T) {
	apps := func(text string) []byte {
		return []byte(`{"applications": {"apps__hashcode": "", "application": ` + text + `}}`)
	}
	for name, c := range map[string]struct{ config, apps, want string }{
		"single elements, numbers as text, no ID": {
			`{}`,
			`{"name": "A", "instance": {"hostName": "h", "ipAddr": "10.0.0.1", "status": "UP", "port": {"$": "80"}, "leaseInfo": null, "metadata": null}}`,
			"services default/a.eureka http-80 HTTP\nendpoints default/a.eureka/http-80/10.0.0.1:80 weight 1 node h\n",
		},
		"several VIP addresses": {`{}`, `[{"name": "A", "instance": [{"instanceId": "1", "hostName": "h", "ipAddr": ` +
			`"10.0.0.1", "status": "UP", "vipAddress": "a, B:7001 ,b", "port": {"$": 80, "@enabled": "true"}}]}]`,
			"services default/a.eureka http-80 HTTP\nservices default/b.eureka http-80 HTTP\nendpoints default/a.eureka/http-80/10.0.0.1:80 weight 1 node h\n" +
				"endpoints default/b.eureka/http-80/10.0.0.1:80 weight 1 labels eureka/application=A node h\n"},
		"by application, at host names": {
			`{"by": "application", "address": "hostname", "servicePort": 80, "secureServicePort": 443, "host": "{service}.example", "meshNamespace": "n"}`,
			`[{"name": "A", "instance": [{"instanceId": "1", "hostName": "h.example", "status": "UP", "vipAddress": "x",` +
				` "port": {"$": 8081}, "securePort": {"$": 8444, "@enabled": true}}]}]`,
			"services n/a.example http-80 HTTP https-443 HTTPS by DNS\nendpoints n/a.example/http-80/h.example:8081 " +
				"weight 1 node h.example\nendpoints n/a.example/https-443/h.example:8444 weight 1 node h.example\n",
		},
		"zones": {`{"region": "eu", "healthy": ["UP", "STARTING"]}`, `[{"name": "A", "instance": [
			{"instanceId": "1", "ipAddr": "10.0.0.1", "status": "STARTING", "port": {"$": 80}, "metadata": {"zone": "z/1"}},
			{"instanceId": "2", "ipAddr": "10.0.0.2", "status": "UNKNOWN", "port": {"$": 80}, "dataCenterInfo": {"metadata": {"availability-zone": "local"}}},
			{"instanceId": "3", "ipAddr": "10.0.0.3", "status": "UP", "port": {"$": 80}, "metadata": {"topology.istio.io/locality": "r.z"}}]}]`,
			"services default/a.eureka http-80 HTTP\nendpoints default/a.eureka/http-80/10.0.0.1:80 weight 1 locality eu/z-1 labels zone=z/1 node \n" +
				"endpoints default/a.eureka/http-80/10.0.0.2:80 weight 1 locality eu/local node  not healthy\n" +
				"endpoints default/a.eureka/http-80/10.0.0.3:80 weight 1 locality r/z labels topology.istio.io/locality=r.z node \n"},
		"what can't be used": {`{}`, `[{"name": "A", "instance": [null, 5, {"instanceId": "1"}, {"instanceId": "2", "ipAddr": "h.example", "port": {"$": 80}},
			{"instanceId": "3", "ipAddr": "10.0.0.3", "status": "UP", "port": {"$": 0}}, {"instanceId": "4", "ipAddr": "10.0.0.4", "status": "ODD", "port": {"$": 80}, "metadata": {"weight": "-1", "zone": "z"}},
			{"instanceId": "5", "ipAddr": "10.0.0.4", "status": "UP", "port": {"$": 80}}, {"instanceId": "6", "ipAddr": "10.0.0.6", "vipAddress": "${x}", "port": {"$": 80}}, {"instanceId": 7}]}, "A"]`,
			"services default/a.eureka http-80 HTTP\nendpoints default/a.eureka/http-80/10.0.0.4:80 weight 1 node \n" +
				"lost ${x}:host 1 (${x})\nlost ${x}:status 1 (A/6:)\nlost a:address 2 (A/1)\nlost a:port 1 (A/3)\n" +
				"lost a:record 3 (A/#1: it is null)\n" +
				"lost a:region 1 (A/4)\nlost a:same 1 (A/4)\nlost a:status 1 (A/4: ODD)\nlost a:weight 1 (A/4: " +
				"-1)\nlost applications:record 1 (APPLICATIONS/#4: an application is neither an object nor null)\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, describe(t, configured(t, c.config), apps(c.apps))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestPortsOfTheirOwn: instances with a port of their own each are one service port where the
// config says so, and at most 64 otherwise.
func TestPortsOfTheirOwn(t *testing.T) {
	var all []record
	for n := range 100 {
		all = append(all, at("web", n, with("port", map[string]any{"$": 20000 + n, "@enabled": "true"})))
	}
	got := describe(t, configured(t, `{}`), encode("", all))
	if n := strings.Count(got, "endpoints "); n != 64 || !strings.Contains(got, "lost web:ports 36 (20064)") {
		t.Errorf("%d endpoints, and\n%s", n, got[strings.LastIndex(got, "lost"):])
	}
	got = describe(t, configured(t, `{"servicePort": 80}`), encode("", all))
	if n := strings.Count(got, "endpoints default/web.eureka/http-80/"); n != 100 || strings.Contains(got, "lost") {
		t.Errorf("%d endpoints", n)
	}
}

// FuzzMapping: whatever can be read as an answer makes rows that can be read, or is counted.
func FuzzMapping(f *testing.F) {
	for _, name := range []string{"everything", "changes"} {
		f.Add(string(recorded(f, name)))
	}
	f.Add(`{"applications": {"application": {"name": "A", "instance": {"hostName": "h", "ipAddr": "10.0.0.1", "port": {"$": "80"}}}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		all, err := read([]byte(text), 100_000)
		if err != nil {
			return
		}
		l := newLoop(configured(t, `{}`), nil, nil)
		all.hash = ""
		for _, take := range []func() error{
			func() error { return l.view.full(all, true, time.Now()) },
			func() error { l.view.delta(all); return nil },
		} {
			if err := take(); err != nil {
				t.Fatal(err)
			}
			l.apply()
			registrytest.Describe(t, l.book.Changes(), true) // can be read
			if there := len(l.view.have) + len(l.view.bad); there > 0 && len(l.services) == 0 {
				t.Errorf("nothing came of %d instances: %s", there, text)
			}
			for status, n := range l.view.counts {
				if n < 0 {
					t.Errorf("%d are %s", n, status)
				}
			}
		}
	})
}

// TestReadme runs the examples.
func TestReadme(t *testing.T) {
	registrytest.Readme{
		Schema: string(sdk.ConfigSchema(Plugin())), Parse: func(config []byte) error { _, err := parse(config); return err },
		Describe: func(example string) string { return describe(t, configured(t, `{}`), []byte(example)) }, Reasons: registrytest.Names(reasons),
	}.Check(t)
}

// TestConfig: mistakes are told with their field, and no password.
func TestConfig(t *testing.T) {
	for config, field := range map[string]string{
		`{"servers": ["http://mesh:pw@h/eureka"]}`:                 "servers[0]",
		`{"servers": ["http://a:pw@h\u0000/eureka"]}`:              "servers[0]",
		`{"servers": ["http://h/eureka", "http://h/eureka/"]}`:     "servers[1]",
		`{"remoteRegions": ["a,b"]}`:                               "remoteRegions[0]",
		`{"servers": ["http://h/eureka/apps/"]}`:                   "servers[0]",
		`{"servers": ["http://h/eureka?x=1"]}`:                     "servers[0]",
		`{"password": "pw"}`:                                       "username",
		`{"username": "u", "password": "pw", "passwordFile": "f"}`: "passwordFile",
		`{"tls": {"ca": "f"}}`:                                     "tls",
		`{"servers": ["https://h"], "tls": {"cert": "f"}}`:         "tls.cert",
		`{"by": "vips"}`:                                           "by",
		`{"address": "dns"}`:                                       "address",
		`{"healthy": ["up"]}`:                                      "healthy[0]",
		`{"applications": {"include": ["["]}}`:                     "applications.include[0]",
		`{"host": "eureka"}`:                                       "host",
		`{"protocol": "smtp"}`:                                     "protocol",
		`{"servicePort": 70000}`:                                   "servicePort",
		`{"servicePort": 80, "secureServicePort": 80}`:             "secureServicePort",
		`{"interval": "1ms"}`:                                      "interval",
		`{"maxBytes": 1}`:                                          "maxBytes",
		`{"meshNamespace": ""}`:                                    "meshNamespace",
	} {
		_, err := parse([]byte(config))
		wrong, ok := err.(*sdk.FieldError)
		if !ok || wrong.Field != field || strings.Contains(err.Error(), "pw") {
			t.Errorf("%s: %v; it is %s", config, err, field)
		}
	}
}
