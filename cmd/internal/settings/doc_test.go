package settings

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write the table in docs/configuration.md anew")

const (
	page  = "../../../docs/configuration.md"
	begin = "<!-- settings: made by `go test ./cmd/internal/settings -update` -->\n"
	end   = "<!-- end of settings -->"
)

// TestPage keeps docs/configuration.md in step with the flags.
func TestPage(t *testing.T) {
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(raw), begin)
	table, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no part between %q and %q", page, begin, end)
	}
	if table == settingsTable() {
		return
	}
	if !*update {
		t.Fatalf("%s is not what the flags say; run go test ./cmd/internal/settings -update", page)
	}
	if err := os.WriteFile(page, []byte(head+begin+settingsTable()+end+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}

func settingsTable() string {
	var b strings.Builder
	b.WriteString("| setting | environment | default | meaning |\n|---|---|---|---|\n")
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	Flags(fs, Defaults())
	fs.VisitAll(func(f *pflag.Flag) {
		d := "`" + f.DefValue + "`"
		if f.DefValue == "" {
			d = ""
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", f.Name, Variable(f.Name), d, f.Usage)
	})
	return b.String()
}
