package secrets

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/leaks"
	"github.com/coxswain-mesh/coxswain/test/kit/page"
)

// TestDeclaredTable: rows of a table of which one plugin says that they are secrets are in no page,
// recording or log, though nothing in the table's name says so; neither are they in the recording
// of a plugin that reads it and says nothing.
func TestDeclaredTable(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "accounts"), "./testdata/accounts").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	const first = "marked-7c0d-first-account-of-a-shop-with-a-password-that-is-long-enough-to-be-found-wherever-it-may-stand-in-a-text"
	const second = "marked-9e2f-second-account-of-a-shop-with-a-password-that-is-long-enough-to-be-found-wherever-it-may-stand-in-a-text"
	file := filepath.Join(dir, "account")
	put(t, file, first)
	w := newWorldOf(t, set+fmt.Sprintf(`
- {name: accounts, kind: config, insecure: true, process: {command: %[1]s/accounts}, config: {file: %[1]s/account}}
- {name: holders, kind: config, insecure: true, process: {command: %[1]s/accounts, args: [reader]}}
`, dir), nil)
	m := leaks.Marks{}
	m.Of("the first account", []byte(first))
	m.Of("the second account", []byte(second))
	clean := func(where string, text []byte) {
		t.Helper()
		for _, what := range m.In(text) {
			t.Errorf("%s has %s", where, what)
		}
	}
	w.shows(t, "Holder", "config")
	w.shows(t, "Account", "config")
	put(t, file, second)
	w.recordings(t, clean, map[string]string{"accounts": "shop/account", "holders": "shop/account"})
	_, err := page.Get(w.plane.HTTP, "/debug/rowz?table=example.com/Account")
	if err == nil || !strings.Contains(err.Error(), "the rows of example.com/Account are secrets") {
		t.Errorf("the page of the table says %v", err)
	}
	if _, err := page.Get(w.plane.HTTP, "/debug/rowz?table=example.com/Holder"); err != nil {
		t.Error(err)
	}
	w.pages(t, clean)
	clean("the log", []byte(w.plane.Log()))
	for _, command := range []string{"config", "views", "plugins"} {
		out, _ := w.run(command)
		if out == "" {
			t.Errorf("coxswain %s says nothing", command)
		}
		clean("coxswain "+command, []byte(out))
	}
	out, _ := w.run("analyze", "--live") // reads the tables that pages show
	clean("coxswain analyze", []byte(out))
}
