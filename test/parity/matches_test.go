package parity

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
	peer "github.com/coxswain-mesh/coxswain/test/kit/program"
)

var update = flag.Bool("update", false, "write the states with all matches that are taken")

// matched is a field whose values are matches: an object's spec with a place for one, and the forms
// that are refused there.
type matched struct{ field, spec, refused string }

// ofRoutes are the fields of a VirtualService that are StringMatches.
var ofRoutes = []matched{
	{"uri", "match: [{uri: %s}]", broken},
	{"uri in any case", "match: [{uri: %s, ignoreUriCase: true}]", broken},
	{"scheme", "match: [{scheme: %s}]", empty},
	{"method", "match: [{method: %s}]", empty},
	{"authority", "match: [{authority: %s}]", empty},
	{"headers", "match: [{headers: {x-k: %s}}]", empty},
	{"headers: a pseudo header", `match: [{headers: {":path": %s}}]`, empty},
	{"headers: a claim", `match: [{headers: {"@request.auth.claims.sub": %s}}]`, empty},
	{"withoutHeaders", "match: [{withoutHeaders: {x-k: %s}}]", absent},
	{"withoutHeaders: a pseudo header", `match: [{withoutHeaders: {":path": %s}}]`, absent},
	{"withoutHeaders: a claim", `match: [{withoutHeaders: {"@request.auth.claims.sub": %s}}]`, absent},
	{"queryParams", "match: [{queryParams: {q: %s}}]", empty},
	{"allowOrigins", "corsPolicy: {allowOrigins: [%s]}", origin},
}

// Forms that are refused: of expressions, of prefixes as well, where the expression * says that
// there is no value, and where nothing else would.
const (
	broken = `{regex: ""} {regex: "*"} {regex: "("}`
	empty  = `{prefix: ""} ` + broken
	absent = `{prefix: ""} {regex: ""} {regex: "("}`
	origin = `{} {exact: ""} ` + empty
)

// Patterns that are refused: empty ones, and those of service accounts that are no names.
const (
	emptyText = `""`
	noNames   = `"" "*" "a*" "*a" "a*b" "*a*" "**" "a/b*" "*/b" "/{*}/b" "/a/{**}"`
)

// ofPolicies are the fields of an AuthorizationPolicy that are patterns.
var ofPolicies = []matched{
	{"principals", "from: [{source: {principals: [%s]}}]", emptyText},
	{"notPrincipals", "from: [{source: {notPrincipals: [%s]}}]", emptyText},
	{"requestPrincipals", "from: [{source: {requestPrincipals: [%s]}}]", emptyText},
	{"notRequestPrincipals", "from: [{source: {notRequestPrincipals: [%s]}}]", emptyText},
	{"namespaces", "from: [{source: {namespaces: [%s]}}]", emptyText},
	{"notNamespaces", "from: [{source: {notNamespaces: [%s]}}]", emptyText},
	{"serviceAccounts", "from: [{source: {serviceAccounts: [%s]}}]", noNames},
	{"notServiceAccounts", "from: [{source: {notServiceAccounts: [%s]}}]", noNames},
	{"hosts", "to: [{operation: {hosts: [%s]}}]", emptyText},
	{"notHosts", "to: [{operation: {notHosts: [%s]}}]", emptyText},
	{"methods", "to: [{operation: {methods: [%s]}}]", emptyText},
	{"notMethods", "to: [{operation: {notMethods: [%s]}}]", emptyText},
	{"paths", "to: [{operation: {paths: [%s]}}]", emptyText},
	{"notPaths", "to: [{operation: {notPaths: [%s]}}]", emptyText},
	{"header", `when: [{key: "request.headers[x-k]", values: [%s]}]`, emptyText},
	{"header, not", `when: [{key: "request.headers[x-k]", notValues: [%s]}]`, emptyText},
	{"source.namespace", `when: [{key: source.namespace, values: [%s]}]`, emptyText},
	{"source.principal", `when: [{key: source.principal, values: [%s]}]`, emptyText},
	{"source.serviceAccount", `when: [{key: source.serviceAccount, values: [%s]}]`, noNames},
	{"request.auth.principal", `when: [{key: request.auth.principal, values: [%s]}]`, emptyText},
	{"request.auth.audiences", `when: [{key: request.auth.audiences, values: [%s]}]`, emptyText},
	{"request.auth.presenter", `when: [{key: request.auth.presenter, values: [%s]}]`, emptyText},
	{"claim", `when: [{key: "request.auth.claims[group]", values: [%s]}]`, emptyText},
	{"claim, not", `when: [{key: "request.auth.claims[group]", notValues: [%s]}]`, emptyText},
	{"nested claim", `when: [{key: "request.auth.claims[a][b]", values: [%s]}]`, emptyText},
	{"connection.sni", `when: [{key: connection.sni, values: [%s]}]`, emptyText},
}

var (
	formsOfRoutes = []string{
		"{}", `{exact: ""}`, `{exact: "*"}`, `{exact: "/a"}`, `{exact: "A-b"}`,
		`{prefix: ""}`, `{prefix: "*"}`, `{prefix: "/"}`, `{prefix: "/a"}`, `{prefix: "A-b"}`,
		`{regex: ""}`, `{regex: "*"}`, `{regex: "("}`, `{regex: ".*"}`, `{regex: "/a.*"}`, `{regex: "a{1,9}"}`,
	}
	formsOfPolicies = []string{
		`""`, `"*"`, `"a"`, `"a*"`, `"*a"`, `"a*b"`, `"*a*"`, `"**"`, `"a/b"`, `"a/b*"`, `"*/b"`, `"/{*}/b"`, `"/a/{**}"`, `"(a).+"`,
	}
)

// ofMatch is one form in one field.
type ofMatch struct {
	name, text string
	refused    bool
}

// of makes an object of each form in each field, by a template with places for its name, its host
// and what the field says.
func ofEach(fields []matched, forms []string, template string) (all []ofMatch) {
	for _, f := range fields {
		for _, form := range forms {
			name := fmt.Sprintf("m-%03d", len(all))
			text := fmt.Sprintf(template, name, fmt.Sprintf(f.spec, form))
			if strings.Contains(f.field, "claim") { // which gateways alone know
				text = strings.ReplaceAll(text, "gateways: [mesh, ", "gateways: [")
			}
			all = append(all, ofMatch{name, strings.ReplaceAll(text, "HOST", name+".example"), strings.Contains(f.refused, form)})
		}
	}
	return all
}

// TestEveryFormOfAMatch: each form of a match, in each field that has one, is taken or refused as
// by istioctl, whose rules are the webhook's of istiod. What proxies get of those that are taken is
// compared with a living istiod: in states of test/parity, which are made of them.
func TestEveryFormOfAMatch(t *testing.T) {
	for _, c := range []struct {
		kind, state, template string
		fields                []matched
		forms                 []string
	}{
		{"VirtualService", "137-string-matches", "{apiVersion: networking.istio.io/v1, kind: VirtualService, " +
			"metadata: {name: %s, namespace: default}, spec: {hosts: [HOST], gateways: [mesh, istio-system/edge], " +
			"http: [{%s, route: [{destination: {host: web}}]}]}}\n", ofRoutes, formsOfRoutes},
		{"AuthorizationPolicy", "138-patterns-of-policies", "{apiVersion: security.istio.io/v1, kind: AuthorizationPolicy, " +
			"metadata: {name: %s, namespace: default}, spec: {action: DENY, rules: [{%s}]}}\n", ofPolicies, formsOfPolicies},
	} {
		t.Run(c.kind, func(t *testing.T) {
			all := ofEach(c.fields, c.forms, c.template)
			var texts, taken []string
			var wanted []string
			for _, m := range all {
				texts = append(texts, m.text)
				if m.refused {
					wanted = append(wanted, m.name)
				} else {
					taken = append(taken, m.text)
				}
			}
			file := filepath.Join(t.TempDir(), "matches.yaml")
			if err := os.WriteFile(file, []byte(strings.Join(texts, "---\n")), 0o600); err != nil {
				t.Fatal(err)
			}
			differ(t, "refused here", all, refusedHere(t, file), wanted)
			upToDate(t, filepath.Join("states", c.state, "objects/2-matches.yaml"), strings.Join(taken, "---\n"))
			need.All(t) // istioctl is built for long
			differ(t, "refused by istioctl", all, refusedByIstioctl(t, file), wanted)
		})
	}
}

var named = regexp.MustCompile(`\bm-\d+\b`)

// refusedHere are the names of objects that `coxswain validate` refuses.
func refusedHere(t *testing.T, file string) (names []string) {
	t.Helper()
	out, _ := exec.Command(program, "validate", "-o", "json", file).Output() // fails where anything is refused
	var faults []struct{ Name, Severity string }
	if err := json.Unmarshal(out, &faults); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, f := range faults {
		if f.Severity == "error" {
			names = append(names, f.Name)
		}
	}
	return names
}

// refusedByIstioctl are those that istioctl refuses.
func refusedByIstioctl(t *testing.T, file string) []string {
	t.Helper()
	cmd := exec.Command(filepath.Join(peer.Built(t, "test/peer", "peer", "istioctl"), "istioctl"), "validate", "-f", file)
	out, err := cmd.CombinedOutput()
	if err != nil && !bytes.Contains(out, []byte("occurred")) {
		t.Fatalf("istioctl: %v: %s", err, out)
	}
	_, errors, _ := strings.Cut(string(out), "occurred:") // warnings come before
	return named.FindAllString(errors, -1)
}

// differ tells which objects are in one list alone.
func differ(t *testing.T, what string, all []ofMatch, got, want []string) {
	t.Helper()
	for _, m := range all {
		if is, wanted := slices.Contains(got, m.name), slices.Contains(want, m.name); is != wanted {
			t.Errorf("%s: %v, want %v: %s", what, is, wanted, m.text)
		}
	}
}

func upToDate(t *testing.T, file, text string) {
	t.Helper()
	text = "# Made by go test ./test/parity -run TestEveryFormOfAMatch -update\n" + text
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if is, err := os.ReadFile(file); err != nil || string(is) != text {
		t.Errorf("%s is not what this test has: go test ./test/parity -run TestEveryFormOfAMatch -update (%v)", file, err)
	}
}
