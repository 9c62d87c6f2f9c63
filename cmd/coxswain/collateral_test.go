package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// requests that pages may begin a line with.
var requests = regexp.MustCompile(`^\.(TH|SH|B|BR|PP|TP|nf|fi)( |$)`)

// TestCollateral: each command that users see has a page with all its flags, each shell its
// completions, and the same is written again.
func TestCollateral(t *testing.T) {
	write := func() map[string]string {
		dir := filepath.Join(t.TempDir(), "new")
		var out bytes.Buffer
		p := &program{out: &out, err: &out}
		root := rootCommand(p, []string{"collateral"})
		root.SetArgs([]string{"collateral", dir})
		if err := root.Execute(); err != nil {
			t.Fatal(err)
		}
		files := map[string]string{}
		found, err := filepath.Glob(dir + "/*/*")
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			files[strings.TrimPrefix(f, dir+"/")] = string(text)
		}
		return files
	}
	files := write()
	for name, again := range write() {
		if files[name] != again {
			t.Errorf("%s is another the second time", name)
		}
	}
	for _, name := range []string{"coxswain.bash", "_coxswain", "coxswain.fish", "coxswain.ps1"} {
		if !strings.Contains(files["completions/"+name], "coxswain") {
			t.Errorf("%s is %.100q", name, files["completions/"+name])
		}
	}
	if n := len(files); n < 40 {
		t.Errorf("there are %d files", n)
	}
	if page := files["man1/coxswain-discovery.1"]; !strings.Contains(page, `\fB\-\-grpcAddr\fP string`) ||
		!strings.Contains(page, `\fB\-n, \-\-namespace\fP`) || strings.Contains(page, "ctrlz") {
		t.Errorf("the page of discovery is %s", page)
	}
	for name, text := range files {
		if !strings.HasSuffix(name, ".1") {
			continue
		}
		for line := range strings.Lines(text) {
			if line[0] == '\'' || line[0] == '.' && !requests.MatchString(strings.TrimSpace(line)) {
				t.Errorf("%s: %q would be read as a request", name, line)
			}
		}
	}
	if got := roff(".x\n'y a-b \\n"); got != `\&.x`+"\n"+`\&'y a\-b \en` {
		t.Errorf("it is %q", got)
	}
}
