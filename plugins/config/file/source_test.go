package file

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/watch"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	networking "istio.io/api/networking/v1alpha3"
)

func TestMain(m *testing.M) { wait.Main(m) }

// route is a VirtualService whose first host is its state.
func route(name, host string) string {
	return fmt.Sprintf("apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata:\n  name: %s\nspec:\n  "+
		"hosts:\n  - %s\n  http: [{route: [{destination: {host: %s}}]}]\n", name, host, host)
}

// bench is a directory that is served.
type bench struct {
	t   *testing.T
	dir string
	*plugintest.Harness
}

// newBench serves a directory that holds these files.
func newBench(t *testing.T, files map[string]string) *bench {
	t.Helper()
	b := &bench{t: t, dir: filepath.Join(t.TempDir(), "config")}
	b.mkdir("")
	for name, content := range files {
		b.write(name, content)
	}
	b.serve()
	return b
}

func (b *bench) serve() {
	b.t.Helper()
	b.Harness = plugintest.Start(b.t, Plugin(), map[string]any{"dir": b.dir, "settle": "1ms"})
	b.WaitSynced()
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) mkdir(name string) { b.t.Helper(); b.must(os.MkdirAll(b.path(name), 0o700)) }

func (b *bench) write(name, content string) {
	b.t.Helper()
	b.mkdir(filepath.Dir(name))
	b.must(os.WriteFile(b.path(name), []byte(content), 0o600))
}

func (b *bench) rename(from, to string) { b.t.Helper(); b.must(os.Rename(b.path(from), b.path(to))) }

func (b *bench) remove(name string) { b.t.Helper(); b.must(os.RemoveAll(b.path(name))) }

func (b *bench) link(target, name string) { b.t.Helper(); b.must(os.Symlink(target, b.path(name))) }

// routes returns name=host of all VirtualServices, sorted.
func routes(rows map[string]*sdk.Row) string {
	var list []string
	for key, row := range rows {
		vs, err := kinds.Decode[*networking.VirtualService](row)
		if err != nil {
			return err.Error()
		}
		list = append(list, strings.TrimPrefix(key, "default/")+"="+vs.Hosts[0])
	}
	return sorted(list)
}

func (b *bench) waitRoutes(want string) {
	b.t.Helper()
	b.WaitRows(kinds.VirtualService, func(rows map[string]*sdk.Row) bool { return routes(rows) == want })
}

// waitFaults waits until the faults are those, each given by a part of its key.
func (b *bench) waitFaults(want ...string) {
	b.t.Helper()
	b.WaitRows(kinds.FaultTable, func(rows map[string]*sdk.Row) bool {
		if len(rows) != len(want) {
			return false
		}
		for _, part := range want {
			if !anyKeyHas(rows, part) {
				return false
			}
		}
		return true
	})
}

// waitFault waits until one is told with these words.
func (b *bench) waitFault(words string) {
	b.t.Helper()
	b.WaitRows(kinds.FaultTable, func(rows map[string]*sdk.Row) bool {
		for _, row := range rows {
			if bytes.Contains(row.Payload, []byte(words)) {
				return true
			}
		}
		return false
	})
}

func anyKeyHas(rows map[string]*sdk.Row, part string) bool {
	for key := range rows {
		if strings.Contains(key, part) {
			return true
		}
	}
	return false
}

func TestDirectoryIsRead(t *testing.T) {
	b := newBench(t, map[string]string{
		"a.yaml": route("a", "one") + "---\n" + route("b", "two"), "deep/er/c.yml": route("c", "three"),
		"d.json": `{"apiVersion": "networking.istio.io/v1beta1", "kind": "VirtualService", "metadata": {"name": "d"}, ` +
			`"spec": {"hosts": ["four"], "http": [{"directResponse": {"status": 200}}]}}`,
		"e.txt":    route("e", "no"),
		".f.yaml":  route("f", "no"),
		".g/g.yml": route("g", "no"),
		"h.yaml~":  route("h", "no"), "#i.yaml#": route("i", "no"), ".j.yaml.swp": route("j", "no"),
		"other.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: x}\n",
	})
	b.waitRoutes("a=one b=two c=three d=four")
	if row := b.Rows(kinds.VirtualService)["default/b"]; row.Source != b.path("a.yaml")+":10:1" {
		t.Errorf("source %s", row.Source)
	}
	b.waitFaults()
	b.WaitLog(func(level sdk.Level, _ string, fields map[string]string) bool {
		return level == sdk.Debug && fields["object"] == "v1/Service" && strings.HasSuffix(fields["place"], "other.yaml:1:1")
	})
}

func TestEmptyDirectoryIsSynced(t *testing.T) {
	b := newBench(t, nil)
	for _, table := range append(kinds.Tables(), kinds.FaultTable) {
		if rows := b.Rows(table); len(rows) > 0 {
			t.Errorf("%s: %v", table, rows)
		}
	}
	b.write("a.yaml", route("a", "one"))
	b.waitRoutes("a=one")
}

func TestEditsArrive(t *testing.T) {
	b := newBench(t, map[string]string{"a.yaml": route("a", "one"), "b.yaml": route("b", "one")})
	b.write("a.yaml", route("a", "two"))
	b.waitRoutes("a=two b=one")
	b.write("a.yaml", route("a", "three")+"---\n"+route("c", "one"))
	b.waitRoutes("a=three b=one c=one")
	b.write("a.yaml", route("c", "one"))
	b.waitRoutes("b=one c=one")
	b.remove("b.yaml")
	b.waitRoutes("c=one")
	b.rename("a.yaml", "z.yaml")
	b.write("more.yaml", route("d", "one"))
	b.waitRoutes("c=one d=one")
	b.WaitRows(kinds.VirtualService, func(rows map[string]*sdk.Row) bool {
		return strings.Contains(rows["default/c"].Source, "z.yaml")
	})
}

func TestEditorsSave(t *testing.T) {
	t.Run("atomic", func(t *testing.T) {
		b := newBench(t, map[string]string{"a.yaml": route("a", "one")})
		b.write(".a.yaml.tmp", route("a", "two"))
		b.rename(".a.yaml.tmp", "a.yaml")
		b.waitRoutes("a=two")
	})
	t.Run("vim", func(t *testing.T) {
		b := newBench(t, map[string]string{"a.yaml": route("a", "one")})
		b.write("4913", "")
		b.remove("4913")
		b.write(".a.yaml.swp", "b0VIM")
		b.rename("a.yaml", "a.yaml~")
		b.write("a.yaml", route("a", "two"))
		b.remove("a.yaml~")
		b.waitRoutes("a=two")
		b.waitFaults()
	})
	t.Run("half written", func(t *testing.T) {
		b := newBench(t, map[string]string{"a.yaml": route("a", "one")})
		text := route("a", "two") + "---\n" + route("b", "two")
		f, err := os.OpenFile(b.path("a.yaml"), os.O_WRONLY|os.O_TRUNC, 0o600)
		b.must(err)
		for i := 0; i < len(text); i += 10 {
			_, err := f.WriteString(text[i:min(i+10, len(text))])
			b.must(err)
			if rows := b.Rows(kinds.VirtualService); rows["default/a"] == nil {
				t.Fatalf("a was lost after %d bytes", i)
			}
		}
		b.must(f.Close())
		b.waitRoutes("a=two b=two")
		b.waitFaults()
	})
	t.Run("emptied", func(t *testing.T) {
		b := newBench(t, map[string]string{"a.yaml": route("a", "one")})
		b.must(os.Truncate(b.path("a.yaml"), 0))
		b.waitFaults("a.yaml:1:1")
		b.waitRoutes("a=one")
		b.write("a.yaml", route("a", "one"))
		b.waitFaults()
		b.must(os.Truncate(b.path("a.yaml"), 0))
		b.waitFaults("a.yaml:1:1")
		b.write("a.yaml", "# nothing\n")
		b.waitRoutes("")
		b.waitFaults()
	})
}

// TestDirectoryThatGoes: while the directory is away, all that was in it stays, whichever notices
// come of it.
func TestDirectoryThatGoes(t *testing.T) {
	b := newBench(t, map[string]string{"a.yaml": route("a", "one"), "sub/b.yaml": route("b", "one")})
	b.must(os.Rename(b.dir, b.dir+".old")) // in one step: a removal may be seen half done
	b.must(os.RemoveAll(b.dir + ".old"))
	b.WaitLog(func(_ sdk.Level, text string, _ map[string]string) bool {
		return strings.Contains(text, "what was read last stays")
	})
	if got := routes(b.Rows(kinds.VirtualService)); got != "a=one b=one" {
		t.Errorf("routes %s", got)
	}
	b.write("a.yaml", route("a", "two"))
	b.waitRoutes("a=two")
	b.WaitLog(func(_ sdk.Level, text string, _ map[string]string) bool {
		return text == "the configuration directory can be read again"
	})
}

// TestFilesOfADirectoryThatIsAway: notices of the files come, and none of the directory.
func TestFilesOfADirectoryThatIsAway(t *testing.T) {
	dir := t.TempDir()
	l := files(t, dir, 3, 1)
	compareAll(t, l)
	r := &run{config: l.config, cache: l, folders: newFolders(t, dir)}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	r.apply([]string{filepath.Join(dir, "0.yaml"), filepath.Join(dir, "1.yaml"), filepath.Join(dir, "2.yaml")}, time.Now())
	if ch := l.catalog.Changes(); len(ch.Deletes) > 0 {
		t.Errorf("deleted %v", ch.Deletes)
	}
}

func newFolders(t *testing.T, dir string) *folders {
	t.Helper()
	w, err := watch.New(time.Millisecond, func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return &folders{dir: dir, watcher: w, log: func(sdk.Level, string, ...any) {}}
}

// TestBrokenBytesInAName: half of a name is no other name.
func TestBrokenBytesInAName(t *testing.T) {
	b := newBench(t, map[string]string{"a.yaml": route("hello", "one") + "---\n" + route("b", "one")})
	for _, broken := range []string{
		strings.Replace(route("hello", "one"), "hello", "hel\xfflo", 1),
		strings.Replace(route("hello", "one"), "metadata:\n  name: hello", "metadata: {namespace: de\xff, name: hello}", 1),
	} {
		b.write("a.yaml", broken+"---\n"+route("b", "two"))
		b.waitRoutes("b=two hello=one")
		b.waitFaults("a.yaml:")
		b.write("a.yaml", route("hello", "one")+"---\n"+route("b", "one"))
		b.waitRoutes("b=one hello=one")
		b.waitFaults()
	}
}

// TestLinksThatLeadFar: a link to everything is left out, and edits are seen.
func TestLinksThatLeadFar(t *testing.T) {
	b := newBench(t, map[string]string{"a.yaml": route("a", "one")})
	far := t.TempDir()
	for i := range 1100 {
		b.must(os.MkdirAll(filepath.Join(far, fmt.Sprint(i/100), fmt.Sprint(i)), 0o700))
	}
	b.must(os.WriteFile(filepath.Join(far, "far.yaml"), []byte(route("far", "one")), 0o600))
	b.link(far, "far")
	b.link("/proc", "proc")
	b.must(syscall.Mkfifo(b.path("pipe.yaml"), 0o600))
	b.WaitLog(func(_ sdk.Level, text string, fields map[string]string) bool {
		return strings.Contains(text, "cannot be read") && fields["path"] == b.path("far")
	})
	b.write("a.yaml", route("a", "two"))
	b.WaitRows(kinds.VirtualService, func(rows map[string]*sdk.Row) bool { return strings.Contains(routes(rows), "a=two") })
}

func TestKubernetesSwap(t *testing.T) {
	b := &bench{t: t, dir: filepath.Join(t.TempDir(), "config")}
	b.write("..1/a.yaml", route("a", "one"))
	b.write("..1/b.yaml", route("b", "one"))
	b.link("..1", "..data")
	b.link("..data/a.yaml", "a.yaml")
	b.link("..data/b.yaml", "b.yaml")
	b.serve()
	b.waitRoutes("a=one b=one")
	for i := 2; i < 5; i++ {
		b.write(fmt.Sprintf("..%d/a.yaml", i), route("a", fmt.Sprint("at", i)))
		b.write(fmt.Sprintf("..%d/b.yaml", i), route("b", "one"))
		b.link(fmt.Sprintf("..%d", i), "..data_tmp")
		b.rename("..data_tmp", "..data")
		b.remove(fmt.Sprintf("..%d", i-1))
		b.waitRoutes(fmt.Sprintf("a=at%d b=one", i))
	}
	b.write("..9/c.yaml", route("c", "one"))
	b.link("..9", "..data_tmp")
	b.rename("..data_tmp", "..data")
	b.link("..data/c.yaml", "c.yaml")
	b.remove("a.yaml")
	b.remove("b.yaml")
	b.waitRoutes("c=one")
}

func TestLinkedDirectories(t *testing.T) {
	b := &bench{t: t, dir: filepath.Join(t.TempDir(), "config")}
	outside := t.TempDir()
	for _, version := range []string{"v1", "v2"} {
		b.must(os.Mkdir(filepath.Join(outside, version), 0o700))
		b.must(os.WriteFile(filepath.Join(outside, version, "a.yaml"), []byte(route("a", version)), 0o600))
	}
	b.mkdir("sub")
	b.link(filepath.Join(outside, "v1"), "current")
	b.link("..", "sub/loop")
	b.serve()
	b.waitRoutes("a=v1")
	b.link(filepath.Join(outside, "v2"), "next")
	b.rename("next", "current")
	b.waitRoutes("a=v2")
	b.must(os.WriteFile(filepath.Join(outside, "v2", "a.yaml"), []byte(route("a", "edited")), 0o600))
	b.waitRoutes("a=edited")
}

func TestSubdirectoriesComeAndGo(t *testing.T) {
	b := newBench(t, nil)
	b.write("x/y/a.yaml", route("a", "one"))
	b.waitRoutes("a=one")
	b.write("x/y/z/b.yaml", route("b", "one"))
	b.waitRoutes("a=one b=one")
	b.rename("x/y", "w")
	b.WaitRows(kinds.VirtualService, func(rows map[string]*sdk.Row) bool {
		return len(rows) == 2 && strings.Contains(rows["default/b"].Source, "/w/z/b.yaml")
	})
	b.write("w/z/b.yaml", route("b", "two"))
	b.waitRoutes("a=one b=two")
	b.remove("w")
	b.waitRoutes("")
}

func TestDirectoryItselfIsSwapped(t *testing.T) {
	b := newBench(t, map[string]string{"a.yaml": route("a", "one")})
	b.must(os.Rename(b.dir, b.dir+".old"))
	b.WaitLog(func(level sdk.Level, text string, _ map[string]string) bool {
		return level == sdk.Warn && strings.Contains(text, "what was read last stays")
	})
	b.waitRoutes("a=one")
	b.write("a.yaml", route("a", "two"))
	b.waitRoutes("a=two")
	b.write("a.yaml", route("a", "three"))
	b.waitRoutes("a=three")
}

func TestBrokenFileAmongGoodOnes(t *testing.T) {
	b := newBench(t, map[string]string{"a.yaml": route("a", "one"), "b.yaml": "a: [\n", "c.yaml": route("c", "one")})
	b.waitRoutes("a=one c=one")
	b.waitFaults("b.yaml:1:1")
	b.write("a.yaml", "{")
	b.waitFaults("a.yaml:1:1", "b.yaml:1:1")
	b.waitRoutes("a=one c=one")
	b.write("c.yaml", route("c", "two"))
	b.waitRoutes("a=one c=two")
	b.write("a.yaml", route("a", "two"))
	b.waitRoutes("a=two c=two")
	b.remove("b.yaml")
	b.waitFaults()
	b.WaitLog(func(_ sdk.Level, text string, _ map[string]string) bool {
		return strings.Contains(text, "nothing is wrong")
	})
}

func TestUnknownFieldInOneOfTwoDocuments(t *testing.T) {
	b := newBench(t, map[string]string{"a.yaml": route("a", "one") + "---\n" + route("b", "one")})
	b.write("a.yaml", strings.Replace(route("a", "two"), "hosts:", "hots:", 1)+"---\n"+route("b", "two"))
	b.waitRoutes("a=one b=two")
	b.waitFaults("a.yaml:6:3")
	b.WaitLog(func(level sdk.Level, text string, fields map[string]string) bool {
		return level == sdk.Warn && text == "resource refused" && maps.Equal(fields, map[string]string{
			"file": b.path("a.yaml"), "line": "6", "column": "3", "object": "VirtualService default/a", "field": "spec.hots", "code": "COX1003",
			"why": `unknown field; did you mean "hosts"?`,
		})
	})
	b.write("a.yaml", route("b", "two"))
	b.waitRoutes("b=two")
	b.waitFaults()
}

func TestFirstOfTwoFilesWins(t *testing.T) {
	b := newBench(t, map[string]string{"m.yaml": route("a", "m"), "z.yaml": route("a", "z")})
	b.waitRoutes("a=m")
	b.waitFaults("z.yaml:1:1")
	b.WaitLog(func(_ sdk.Level, text string, fields map[string]string) bool {
		return text == "resource refused" && fields["file"] == b.path("z.yaml") && strings.Contains(fields["why"], "is already at "+b.path("m.yaml")+":1:1")
	})
	b.write("a.yaml", route("a", "a"))
	b.waitRoutes("a=a")
	b.waitFaults("m.yaml:1:1", "z.yaml:1:1")
	b.remove("a.yaml")
	b.remove("m.yaml")
	b.waitRoutes("a=z")
	b.waitFaults()
}

func TestBurst(t *testing.T) {
	b := newBench(t, nil)
	for i := range 1000 {
		b.write(fmt.Sprintf("d%d/%d.yaml", i%7, i), route(fmt.Sprint("r", i), "one"))
	}
	b.WaitRows(kinds.VirtualService, func(rows map[string]*sdk.Row) bool { return len(rows) == 1000 })
	for i := range 1000 {
		b.write(fmt.Sprintf("d%d/%d.yaml", i%7, i), route(fmt.Sprint("r", i), "two"))
	}
	b.WaitRows(kinds.VirtualService, func(rows map[string]*sdk.Row) bool {
		return len(rows) == 1000 && strings.Count(routes(rows), "=two") == 1000
	})
	b.remove("d3")
	b.WaitRows(kinds.VirtualService, func(rows map[string]*sdk.Row) bool { return len(rows) == 857 })
	b.waitFaults()
}

func TestUnreadableFiles(t *testing.T) {
	b := newBench(t, map[string]string{"a.yaml": route("a", "one")})
	b.must(os.WriteFile(b.path("big.yaml"), nil, 0o600))
	b.must(os.Truncate(b.path("big.yaml"), defaults().MaxFile+1))
	b.waitFaults("big.yaml:1:1")
	b.remove("big.yaml")
	b.waitFaults()
	b.link("nowhere", "dangling.yaml")
	b.write("b.yaml", route("b", "one"))
	b.waitRoutes("a=one b=one")
	b.waitFaults()
}

func TestLargeResourceIsRefusedAlone(t *testing.T) {
	large := strings.Replace(route("a", "one"), "metadata:\n", "metadata:\n  annotations: {x: "+strings.Repeat("x", 2<<20)+"}\n", 1)
	b := newBench(t, map[string]string{"a.yaml": large + "---\n" + route("b", "one")})
	b.waitRoutes("b=one")
	b.waitFaults("a.yaml:1:1")
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	f := filepath.Join(dir, "f")
	if err := os.WriteFile(f, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		config any
		field  string
		reason string
	}{
		{nil, "dir", "is missing"},
		{map[string]any{"dir": filepath.Join(dir, "none")}, "dir", "does not exist"},
		{map[string]any{"dir": f}, "dir", "is a file"},
		{map[string]any{"dri": dir}, "dri", `did you mean "dir"?`},
		{map[string]any{"dir": 5}, "dir", "expected a string"},
		{map[string]any{"dir": dir, "settle": "soon"}, "settle", "is no duration"},
		{map[string]any{"dir": dir, "settle": "0s"}, "settle", "0s is less than 1ms"},
		{map[string]any{"dir": dir, "maxFile": -1}, "maxFile", "-1 is less than 1"},
	} {
		field, reason := plugintest.Refusal(t, Plugin(), c.config)
		if field != c.field || !strings.Contains(reason, c.reason) {
			t.Errorf("%v: got %s: %s", c.config, field, reason)
		}
	}
}

// TestFileThatIsCut: a file that loses its end keeps what it had, wherever it is cut, valid or not,
// also when it is cut again.
func TestFileThatIsCut(t *testing.T) {
	whole := route("a", "one") + "---\n" + route("b", "one") + "---\n" + route("c", "one")
	b := newBench(t, map[string]string{"x.yaml": whole, "y.yaml": route("y", "one")})
	inName := strings.Index(whole, "name: b") + len("name")
	inHost := strings.LastIndex(whole, "  - one") + len("  - on") // all but the last document is there, and what is left of it is valid
	for _, n := range []int{inName, inHost, inHost - 1, len(route("a", "one")) + 2, 20} {
		b.write("x.yaml", whole[:n])
		b.waitFaults("x.yaml")
		b.waitRoutes("a=one b=one c=one y=one")
		b.write("x.yaml", whole)
		b.waitFaults()
	}
	// Who empties it, and is interrupted, and again in the middle, has cut it, too.
	b.write("x.yaml", "")
	b.waitFault("it is empty, and was not")
	b.write("x.yaml", whole[:inHost])
	b.waitFault("it has become shorter, and ends amid a line")
	b.waitRoutes("a=one b=one c=one y=one")
	b.write("x.yaml", whole)
	b.waitFaults()
	// Documents that go whole, and last lines that go, are meant.
	b.write("x.yaml", route("a", "one")+"---\n"+route("b", "one"))
	b.waitRoutes("a=one b=one y=one")
	b.write("x.yaml", strings.TrimSpace(route("a", "one")))
	b.waitFaults("x.yaml")
	b.write("x.yaml", route("a", "one"))
	b.waitRoutes("a=one y=one")
	b.waitFaults()
}
