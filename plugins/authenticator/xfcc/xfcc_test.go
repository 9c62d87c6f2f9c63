package xfcc

import (
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/internal/readme"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

func TestMain(m *testing.M) { wait.Main(m) }

const web, cart = "spiffe://cluster.local/ns/shop/sa/web", "spiffe://cluster.local/ns/shop/sa/cart"

func shown(text, address string) sdk.Credentials {
	c := sdk.Credentials{Headers: map[string]string{}, RemoteAddress: address}
	if text != "" {
		c.Headers[header] = text
	}
	return c
}

// TestHeader: what Envoy writes is read as it means it; what is written otherwise makes nobody
// known.
func TestHeader(t *testing.T) {
	last, all := plugintest.Start(t, Plugin(), nil), plugintest.Start(t, Plugin(), `{"elements": "all"}`)
	const envoy = `By=spiffe://cluster.local/ns/edge/sa/edge;Hash=468ed33be74eee6556d90c0149c1309e9ba61d6425303443c0748a02dd8de688;` +
		`Subject="CN=web\,inc,OU=Shop";URI=spiffe://cluster.local/ns/shop/sa/web;DNS=web.example;DNS=www.web.example`
	for what, c := range map[string]struct {
		text      string
		last, all []string
		refused   string
	}{
		"as Envoy writes it": {
			envoy, []string{web, "web.example", "www.web.example", "web,inc"},
			[]string{web, "web.example", "www.web.example", "web,inc"}, "",
		},
		"several certificates":     {"URI=" + cart + "," + "URI=" + web, []string{web}, []string{cart, web}, ""},
		"a comma in quotes":        {`Subject="O=a, URI=` + cart + `";URI=` + web, []string{web}, []string{web}, ""},
		"an escaped quote":         {`Subject="O=\",URI=` + cart + `;\"";URI=` + web, []string{web}, []string{web}, ""},
		"a value in quotes":        {`URI="` + web + `"`, []string{web}, []string{web}, ""},
		"keys in any case":         {"uri=" + web, []string{web}, []string{web}, ""},
		"several URIs":             {"URI=" + cart + ";URI=" + web, []string{cart, web}, []string{cart, web}, ""},
		"OpenSSL's form":           {`Subject="/C=US/O=Shop/CN=web"`, []string{"web"}, []string{"web"}, ""},
		"a CN that is no CN":       {`Subject="O=x\,CN=root,CN=web"`, []string{"web"}, []string{"web"}, ""},
		"a certificate alone":      {`Hash=00;Cert="-----BEGIN%20CERTIFICATE-----"`, nil, nil, "has neither URI, DNS nor Subject"},
		"the last says nothing":    {"URI=" + web + ",Hash=00", nil, []string{web}, "has neither URI"},
		"none":                     {"", nil, nil, "no header x-forwarded-client-cert"},
		"no pair":                  {"spiffe", nil, nil, "KEY=VALUE is missing"},
		"an empty element":         {"URI=" + web + ",", nil, nil, "certificate 2: a pair"},
		"no key":                   {"=" + web, nil, nil, "KEY=VALUE is missing"},
		"a quote that isn't shut":  {`URI="` + web, nil, nil, "not closed"},
		"text behind a quote":      {`URI="` + web + `"x`, nil, nil, "text follows"},
		"a quote within a value":   {`URI=a"b`, nil, nil, "a quote is within"},
		"a backslash at the end":   {`URI="\`, nil, nil, "not closed"},
		"half a key within quotes": {`U"RI=` + web, nil, nil, "KEY=VALUE is missing"},
	} {
		for h, want := range map[*plugintest.Harness][]string{last: c.last, all: c.all} {
			got := h.Authenticate(shown(c.text, "127.0.0.1:1"))
			if !slices.Equal(got.Identities, want) || (want == nil) != (got.Refusal != "") || want == nil && !strings.Contains(got.Refusal, c.refused) {
				t.Errorf("%s: %v; want %v", what, got, want)
			}
		}
	}
}

// TestTrust: the header counts of this machine and of trusted addresses, however they are written,
// and of no others.
func TestTrust(t *testing.T) {
	h := plugintest.Start(t, Plugin(), `{"trustedCIDRs": ["10.1.0.0/16", "fd00:1::/32"]}`)
	for address, counts := range map[string]bool{
		"127.0.0.1:5": true, "[::1]:5": true, "127.8.8.8:5": true, "10.1.2.3:5": true, "[::ffff:10.1.2.3]:5": true, "[fd00:1::9]:5": true,
		"10.2.0.1:5": false, "[::ffff:10.2.0.1]:5": false, "[fd00:2::9]:5": false, "192.0.2.1:5": false, "": false, "@": false, "10.1.2.3": false,
	} {
		got := h.Authenticate(shown("URI="+web, address))
		if counts != slices.Equal(got.Identities, []string{web}) || counts != (got.Refusal == "") {
			t.Errorf("%s: %v", address, got)
		}
		if !counts && !strings.Contains(got.Refusal, "of gateways alone that are trusted") {
			t.Errorf("%s: %s", address, got.Refusal)
		}
	}
}

func TestConfig(t *testing.T) {
	for field, config := range map[string]string{
		"trustedCIDRs[1]": `{"trustedCIDRs": ["10.0.0.0/8", "x"]}`, "elements": `{"elements": "first"}`, "trusted": `{"trusted": []}`,
	} {
		if got, why := plugintest.Refusal(t, Plugin(), config); got != field {
			t.Errorf("%s: refused for %q: %s", field, got, why)
		}
	}
}

// FuzzParse: whatever the header has, there is a name only if something of it was written.
func FuzzParse(f *testing.F) {
	f.Add(`By=a;Subject="CN=\"x\"";URI=b,DNS=c`)
	f.Fuzz(func(t *testing.T, text string) {
		all, err := parse(text)
		if err == nil && len(all) == 0 {
			t.Error("neither elements nor an error")
		}
		for _, e := range all {
			for _, name := range e.names() {
				if name == "" || len(name) > len(text) {
					t.Errorf("%q", name)
				}
			}
		}
	})
}

func TestReadme(t *testing.T) {
	blocks, config := readme.Example(t, 3)
	h := plugintest.Start(t, Plugin(), config)
	_, text, _ := strings.Cut(strings.TrimSpace(blocks[1].Text), ": ")
	if got := h.Authenticate(shown(text, "10.1.2.3:5")); !slices.Equal(got.Identities, strings.Fields(blocks[2].Text)) {
		t.Error(got)
	}
}
