package zookeeper

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/coxswain-mesh/coxswain/plugins/internal/instances"
	"github.com/coxswain-mesh/coxswain/plugins/internal/registrytest"
	"github.com/coxswain-mesh/coxswain/sdk"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

func configured(t testing.TB, config string) *Config {
	t.Helper()
	c, err := parse([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// table is a publisher that keeps rows.
type table struct {
	rows map[string]map[string]*sdk.Row
}

func newTable() *table { return &table{map[string]map[string]*sdk.Row{}} }

func (p *table) Update(table string, upserts []*sdk.Row, deletes []string) error {
	if p.rows[table] == nil {
		p.rows[table] = map[string]*sdk.Row{}
	}
	for _, r := range upserts {
		p.rows[table][r.Key] = r
	}
	for _, k := range deletes {
		delete(p.rows[table], k)
	}
	return nil
}
func (p *table) Synced() error                                   { return nil }
func (p *table) State() (*state.State, <-chan struct{})          { return nil, nil }
func (p *table) Log(level sdk.Level, text string, fields ...any) {}

// tree is what ZooKeeper has: values by path. Those of lists are not said.
type tree map[string]string

// readTree reads a line for each node: its path, whose last part may be a URL, and after a space
// its value.
func readTree(text string) tree {
	all := tree{}
	for line := range strings.Lines(text) {
		path, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if i := strings.Index(path, "://"); i >= 0 {
			i = strings.LastIndexByte(path[:i], '/') + 1
			path = path[:i] + url.QueryEscape(path[i:])
		}
		if path != "" {
			all[path] = value
		}
	}
	return all
}

// children are those of a path.
func (t tree) children(path string) (all []string) {
	seen := map[string]bool{}
	for at := range t {
		if below, ok := strings.CutPrefix(at, path+"/"); ok {
			child, _, _ := strings.Cut(below, "/")
			if !seen[child] {
				seen[child] = true
				all = append(all, child)
			}
		}
	}
	return all
}

// walk has a follower read all that it wants.
func (t tree) walk(f *follower, now clock) {
	for {
		next, ok := f.next()
		if !ok {
			return
		}
		e := f.job(next)
		f.starts(e, now())
		r := found{target: next, number: e.number}
		if value, there := t[next.path]; next.value {
			r.data, r.missing = []byte(value), !there
		} else {
			r.children = t.children(next.path)
			r.missing = !there && len(r.children) == 0
		}
		_ = f.handle(r, now())
	}
}

// published is what a book has published, and what is lost, a line each.
func published(t testing.TB, b *book, p *table) string {
	t.Helper()
	if err := b.publish(); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, key := range sortedKeys(p.rows[state.Services]) {
		s, err := sdk.ServiceOf(p.rows[state.Services][key])
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "services %s is %s:", key, s.Name)
		for _, p := range s.Ports {
			fmt.Fprintf(&out, " %s %s", p.Name, p.Protocol)
		}
		if s.Resolution == pb.ServiceResolutionDns {
			out.WriteString(" by DNS")
		}
		out.WriteString("\n")
	}
	for _, key := range sortedKeys(p.rows[state.Endpoints]) {
		e, err := sdk.EndpointOf(p.rows[state.Endpoints][key])
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "endpoints %s weight %d", key, e.Weight)
		if e.Locality != "" {
			fmt.Fprintf(&out, " locality %s", e.Locality)
		}
		for i, k := range slices.Sorted(maps.Keys(e.Labels)) {
			fmt.Fprintf(&out, "%s%s=%s", []string{" labels ", ","}[min(i, 1)], k, e.Labels[k])
		}
		if e.Health == pb.EndpointHealthUnhealthy {
			out.WriteString(" not healthy")
		}
		if e.TlsMode == "istio" {
			fmt.Fprintf(&out, " account %s", e.ServiceAccount)
		}
		out.WriteString("\n")
	}
	faults := b.faults()
	lines := make([]string, len(faults))
	for i, f := range faults {
		lines[i] = fmt.Sprintf("lost %s %s: %s\n", f.File, f.Field, f.Message)
		if e, ok := explanations[instances.Reason(f.Field)]; ok {
			lines[i] = strings.Replace(lines[i], " "+e, "", 1)
		}
	}
	slices.Sort(lines)
	return out.String() + strings.Join(lines, "")
}

// describe tells what becomes of a tree.
func describe(t testing.TB, c *Config, all tree) string {
	t.Helper()
	p := newTable()
	b := newBook(c, p)
	f := newFollower(c, b)
	f.begin(origin)
	all.walk(f, fixed(origin))
	if !f.synced() {
		t.Errorf("not synced: %v", f.unread)
	}
	return published(t, b, p)
}

// TestMapping: what becomes of what Dubbo 3.3.2 wrote, and of what others write.
func TestMapping(t *testing.T) {
	for name, config := range map[string]string{
		"dubbo": `{}`, "odd": `{}`, "ports": `{"servicePorts": {"tri": 50051, "dubbo": 20880}}`,
		"merged": `{"host": "{interface}.dubbo", "roots": {"applications": ""}}`, "rules": `{}`,
		"applications": `{}`,
	} {
		t.Run(name, func(t *testing.T) {
			in, err := os.ReadFile("testdata/" + name + ".tree")
			if err != nil {
				t.Fatal(err)
			}
			got := describe(t, configured(t, config), readTree(string(in)))
			if os.Getenv("COXSWAIN_UPDATE") != "" {
				if err := os.WriteFile("testdata/"+name+".rows", []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile("testdata/" + name + ".rows")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestHosts: names of services are apart from each other, are DNS names, and can be read back.
func TestHosts(t *testing.T) {
	c := configured(t, `{}`)
	seen := map[string]igv{}
	for _, part := range []struct {
		k    igv
		want string
	}{
		{newIGV("com.example.Orders", "", ""), "com.example.orders.dubbo"},
		{newIGV("com.example.Orders", "", "0.0.0"), "com.example.orders.dubbo"},
		{newIGV("com.example.Orders", "", "1.0.0"), "version-1-0-0.com.example.orders.dubbo"},
		{newIGV("com.example.Orders", "blue", "1.0.0-SNAPSHOT"), "version-1-0-0--2dsnapshot.group-blue.com.example.orders.dubbo"},
		{newIGV("com.example.Outer$Inner", "", ""), "com.example.outer--24inner.dubbo"},
		{newIGV("version-1.com.example.Orders", "", ""), "version--2d1.com.example.orders.dubbo"},
		{newIGV("com.example.Orders", "a.-b", ""), "group-a--2e--2db.com.example.orders.dubbo"},
		{newIGV("com.example.Orders", "a..b", ""), "group-a--2e--2eb.com.example.orders.dubbo"},
		{newIGV("com.example.Orders", "a-b", ""), "group-a--2db.com.example.orders.dubbo"},
		{newIGV("com.example.Orders", "a.b", ""), "group-a-b.com.example.orders.dubbo"},
		{newIGV("version$1.Orders", "", ""), "version--241.orders.dubbo"},
		{newIGV("Orders", "", "$1"), "version---241.orders.dubbo"},
	} {
		got := c.host(part.k)
		if got != part.want {
			t.Errorf("%v: %s, not %s", part.k, got, part.want)
		}
		if was, there := seen[got]; there && was != part.k {
			t.Errorf("%s is %v and %v", got, was, part.k)
		}
		seen[got] = part.k
		if back := unhost(strings.TrimSuffix(got, ".dubbo")); !strings.EqualFold(back.String(), part.k.String()) {
			t.Errorf("%s is read back as %v, not %v", got, back, part.k)
		}
	}
	if got, want := c.applicationHost("Order-service.eu_1"), "order-service.eu--5f1.dubbo-application"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
}

// unhost reads a service back, as host's comment says.
func unhost(text string) (k igv) {
	next := func(marker string) (string, bool) {
		label, rest, _ := strings.Cut(text, ".")
		value, ok := strings.CutPrefix(label, marker+"-")
		if !ok || strings.HasPrefix(value, "-") && !strings.HasPrefix(value, "--") {
			return "", false
		}
		text = rest
		return unlabel(value), true
	}
	if v, ok := next("version"); ok {
		k.version = v
	}
	if g, ok := next("group"); ok {
		k.group = g
	}
	k.name = unlabel(text)
	return k
}

func unlabel(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case strings.HasPrefix(text[i:], "--"):
			var c byte
			_, _ = fmt.Sscanf(text[i+2:i+4], "%02x", &c)
			b.WriteByte(c)
			i += 3
		case text[i] == '-':
			b.WriteByte('.')
		default:
			b.WriteByte(text[i])
		}
	}
	return b.String()
}

// FuzzMapping: whatever stands in nodes makes rows that can be read, or is counted.
func FuzzMapping(f *testing.F) {
	for _, name := range []string{"dubbo", "odd", "rules", "applications"} {
		text, err := os.ReadFile("testdata/" + name + ".tree")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add("/dubbo/a/providers/tri://[::1]:1/a?interface=a\n/services/b/c {\"address\": \"b\", \"port\": 1}")
	c := configured(f, `{}`)
	f.Fuzz(func(t *testing.T, text string) {
		all := readTree(text)
		providers := 0
		for at := range all {
			parts := strings.Split(at, "/")
			if len(parts) == 5 && parts[0] == "" && parts[1] == "dubbo" && parts[3] == "providers" &&
				!slices.Contains(notInterfaces, parts[2]) && parts[2] != "" && parts[4] != "" {
				if name, err := url.QueryUnescape(parts[2]); err == nil && c.Interfaces.Select(name) && !slices.Contains(notInterfaces, name) {
					providers++
				}
			}
		}
		if got := describe(t, c, all); providers > 0 && got == "" {
			t.Errorf("nothing came of %d providers in\n%s", providers, text)
		}
	})
}

// TestConfigs: what is wrong with a config is said with its place.
func TestConfigs(t *testing.T) {
	for config, field := range map[string]string{
		`{"servers": []}`: "servers", `{"servers": ["zk:2181/chroot"]}`: "", `{"servers": ["zk"]}`: "servers[0]",
		`{"password": "x"}`: "username", `{"username": "a:b"}`: "username",
		`{"tls": {"caFile": "x"}}`: "tls.enabled", `{"tls": {"enabled": true, "certFile": "x"}}`: "tls",
		`{"roots": {"interfaces": "dubbo"}}`:                "roots.interfaces",
		`{"roots": {"interfaces": "/dubbo/"}}`:              "roots.interfaces",
		`{"roots": {"interfaces": "", "applications": ""}}`: "roots",
		`{"interfaces": {"include": ["["]}}`:                "interfaces.include[0]",
		`{"host": "dubbo"}`:                                 "host", `{"host": "{service}.{x}"}`: "host",
		`{"applicationHost": "x"}`: "applicationHost", `{"servicePorts": {"tri": 0}}`: "servicePorts",
		`{"protocols": {"tri": "SMTP"}}`: "protocols", `{"labels": {"-": "x"}}`: "labels",
		`{"labels": {"x": "token"}}`: "labels", `{"session": "1ms"}`: "session",
		`{"settle": "x"}`: "settle", `{"limits": {"reads": 0}}`: "limits.reads",
		`{"limits": {"nodeBytes": 1}}`: "limits.nodeBytes", `{"meshNamespace": "a/b"}`: "meshNamespace",
		`{"sevrers": []}`: "sevrers",
	} {
		_, err := parse([]byte(config))
		at, ok := err.(*sdk.FieldError)
		if field == "" && err == nil {
			continue
		}
		if !ok || at.Field != field && field != "" {
			t.Errorf("%s: %v, not at %s", config, err, field)
		}
	}
}

// TestReadme runs the examples.
func TestReadme(t *testing.T) {
	registrytest.Readme{
		Schema: string(sdk.ConfigSchema(Plugin())), Parse: func(config []byte) error { _, err := parse(config); return err }, Secret: "password",
		Describe: func(example string) string { return describe(t, configured(t, `{}`), readTree(example)) }, Reasons: registrytest.Names(explanations),
	}.Check(t)
}
