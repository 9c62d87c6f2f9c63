package expectations

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// good is a file that can be; the tests break it.
const good = `workloads:
  web: {ip: 10.0.0.1}
expectations:
- name: one
  request: {from: web, url: http://a/}
  expect: {closed: true}
`

// TestMistakes: what can't be is refused, with its place.
func TestMistakes(t *testing.T) {
	for _, c := range []struct{ old, by, want string }{
		{"closed: true", "closde: true", "expectations[0].expect.closde"},
		{"closed: true", "", "expectations[0] (line 4): expect: it wants one of to, refused, answer and closed"},
		{"closed: true", "closed: true, answer: {status: 200}", "it wants one of"},
		{"closed: true", "answer: {status: 700}", "expectations[0].expect.answer.status"},
		{"closed: true", "answer: {by: db}", `expect.answer.by: there is no workload "db"`},
		{"closed: true", "to: [{port: 80}]", "destination 1 wants host or cluster"},
		{"closed: true", "to: [{cluster: a, port: 80}]", "in the cluster's name already"},
		{"closed: true", "closed: true, retries: 2", "mirrors, timeout and retries go with to"},
		{"closed: true", "to: [{host: a}], timeout: 2", `expect.timeout`},
		{"from: web", "from: db", `request.from: there is no workload "db"`},
		{"from: web", "method: GET", "request: it wants from"},
		{"from: web", "from: web, at: web", "request: it wants from"},
		{"from: web", "from: web, peer: spiffe://x", "request.peer"},
		{"from: web", "at: web, source: here", "request.source"},
		{"from: web", "from: web, to: here", "request.to"},
		{"url: http://a/", "method: GET", "expectations[0].request.url"},
		{"10.0.0.1", "here", `workloads.web.ip: "here" is no IP address`},
		{"  web: {ip: 10.0.0.1}", "  db: {ip: 10.0.0.1}\n  web: {ip: 10.0.0.1}", "workloads.web.ip: 10.0.0.1 has that of db, too"},
		{"ip: 10.0.0.1", "ip: 10.0.0.1, type: waypoint", "workloads.web.type"},
		{"ip: 10.0.0.1", "ip: 10.0.0.1, locality: a/b/c/d", "workloads.web: locality"},
		{"ip: 10.0.0.1", "ip: 10.0.0.1, metadata: [1]", "workloads.web: metadata"},
		{"- name: one", "- name: one\n  name: two", `"name" already set`},
		{good, good + "- null\n", "expectations[1] is empty"},
		{good, good + good[strings.Index(good, "- name"):], `another one is named "one", too`},
		{good, "workloads: {}\n", "expectations"},
		{good, "{", "yaml"},
	} {
		text := strings.Replace(good, c.old, c.by, 1)
		if _, err := parse([]byte(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\n%v, want %q", text, err, c.want)
		}
	}
	if _, err := parse([]byte(good)); err != nil {
		t.Errorf("the file that is good: %v", err)
	}
}

// TestLimits: too many workloads, and too many bytes, are refused before anything of them is done.
func TestLimits(t *testing.T) {
	var b strings.Builder
	b.WriteString("workloads:\n")
	for i := range mostWorkloads + 1 {
		fmt.Fprintf(&b, "  w%d: {ip: 10.0.%d.%d}\n", i, i/250, i%250+1)
	}
	b.WriteString(good[strings.Index(good, "expectations:"):])
	if _, err := parse([]byte(b.String())); err == nil || !strings.Contains(err.Error(), "1001 workloads") {
		t.Errorf("too many workloads: %v", err)
	}
	large := filepath.Join(t.TempDir(), Suffix)
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, mostBytes+1); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(large); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("too many bytes: %v", err)
	}
}
