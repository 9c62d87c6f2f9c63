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

const page = "../../../docs/configuration.md"

// part is one of the page that is made: what is between two lines.
func part(name string) (begin, end string) {
	return "<!-- " + name + ": made by `go test ./cmd/internal/settings -update` -->\n", "<!-- end of " + name + " -->"
}

// TestPage keeps docs/configuration.md in step with the flags, and with istiod's variables.
func TestPage(t *testing.T) {
	inStep(t, "settings", settingsTable())
	inStep(t, "istiod's variables", variablesTable())
}

func inStep(t *testing.T, name, want string) {
	t.Helper()
	begin, end := part(name)
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(raw), begin)
	table, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no part between %q and %q", page, begin, end)
	}
	if table == want {
		return
	}
	if !*update {
		t.Fatalf("%s is not what the program says; run go test ./cmd/internal/settings -update", page)
	}
	if err := os.WriteFile(page, []byte(head+begin+want+end+tail), 0o644); err != nil {
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

func variablesTable() string {
	var b strings.Builder
	b.WriteString("| variable | here |\n|---|---|\n")
	var moot []string
	for _, v := range istiodVariables {
		text := ""
		switch v.fate {
		case isRead:
			text = "read, as `" + theirs[v.name] + "`"
		case hasSetting:
			text = "warned of where it says something else than `" + v.note + "`"
		case inPlugins:
			text = "warned of: " + v.note + " in plugins.yaml"
		case isAlways:
			text = "warned of: always as with `" + v.is + "`"
			if v.is == "" {
				text = "warned of: always as without it"
			}
		case isLacking:
			text = "warned of: " + v.note
		case isMoot:
			moot = append(moot, "`"+v.name+"`")
			continue
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", v.name, text)
	}
	fmt.Fprintf(&b, "\nThese tune what is inside of istiod, and mean nothing here:\n%s.\n", lines(moot))
	return b.String()
}

// lines joins words by commas, in lines of at most 120 columns.
func lines(words []string) string {
	var b strings.Builder
	column := 0
	for i, w := range words {
		if i > 0 {
			b.WriteByte(',')
			if column += len(w) + 2; column > 118 {
				b.WriteByte('\n')
				column = len(w)
			} else {
				b.WriteByte(' ')
			}
		} else {
			column = len(w)
		}
		b.WriteString(w)
	}
	return b.String()
}
