package protoyaml

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/coxswain-mesh/coxswain/plugins/internal/shared"
)

// same reports how a tree differs from the library's, comments aside; empty: not at all.
func same(quick, full *yaml.Node) string {
	switch {
	case quick.Kind != full.Kind || quick.Tag != full.Tag || quick.Value != full.Value || quick.Style != full.Style ||
		quick.Anchor != full.Anchor || quick.Alias != full.Alias:
		return quick.Tag + " " + quick.Value + ", not " + full.Tag + " " + full.Value
	case quick.Line != full.Line || quick.Column != full.Column:
		return quick.Tag + " " + quick.Value + " stands elsewhere"
	case len(quick.Content) != len(full.Content):
		return quick.Tag + " has another number of nodes"
	}
	for i := range quick.Content {
		if d := same(quick.Content[i], full.Content[i]); d != "" {
			return d
		}
	}
	return ""
}

// agree parses a text in both ways, and reports whether it was parsed plainly. What is wrong to the
// library is never plain.
func agree(t *testing.T, text []byte) bool {
	t.Helper()
	quick := plainly(text)
	if quick == nil {
		return false
	}
	var document yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&document); err != nil {
		t.Fatalf("plain, but %v:\n%s", err, text)
	}
	if d := same(quick, document.Content[0]); d != "" {
		t.Fatalf("%s:\n%s", d, text)
	}
	return true
}

const plainText = `---
# a comment
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name:   shop
  # another
  labels:
    app.kubernetes.io/name: "shop: one"

    yes: no
    n: 'it is # no comment'
spec:
  hosts:
  - shop.example.com
  - -1
  - 0x1F
  - 12:30:45
  - 2001-01-01
  - a  b - c, {d} [e]
  http:
    - match:
        - uri:
            exact: /a?b=c&d
      route:
      - destination:
          host: a
          port:
            number: 80
        weight: 1.5
      timeout: 5s
`

// What is parsed plainly is what the library makes of it: what was recorded, what is written here,
// and what random edits make of both.
func TestPlainIsSure(t *testing.T) {
	texts := [][]byte{[]byte(plainText)}
	if !agree(t, texts[0]) {
		t.Fatal("what is plain was not parsed so")
	}
	files, err := filepath.Glob(filepath.Join(shared.Dir(t, "parity/cases"), "*", "config", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	all, plain := 0, 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range Split(content) {
			if all++; agree(t, c.Text) {
				plain++
				texts = append(texts, c.Text)
			}
		}
	}
	t.Logf("%d of %d recorded documents are plain", plain, all)
	if plain < all/4 {
		t.Errorf("only %d of %d recorded documents are plain", plain, all)
	}
	edited, random := 0, rand.New(rand.NewPCG(1, 2))
	for range 40_000 {
		text := texts[random.IntN(len(texts))]
		if random.IntN(3) == 0 {
			text = texts[0]
		}
		for range 1 + random.IntN(3) {
			text = spoil(random, text)
		}
		if agree(t, text) {
			edited++
		}
	}
	t.Logf("%d edited documents are plain", edited)
	if edited < 4000 {
		t.Errorf("only %d edited documents are plain", edited)
	}
}

// pieces are what edits put in.
var pieces = []string{
	" ", "  ", "\t", "\n", "\r", ":", ": ", " :", "#", " #", "- ", "-", "\n- ", "\n  - ", "? ", "'", "\"", "\\", "|",
	">", "{", "}", "[", "]", ",", "&a ", "*a", "!!str ", "!", "%", "@", "`",
	"~", "null", "true", "y", "<<", "<<: ", "---", "...", "--- a", "é", "\x00", "\ufeff", "0", "1e3", ".5", "a",
	"a: b", "a:b", "a:\n", "- a: b\n", "  a: b\n", "# c\n", " \n", "=", ".inf", "_", "/",
}

// spoil edits a text somewhere: a piece put in or left out, a line taken away, doubled, moved, or
// indented otherwise.
func spoil(random *rand.Rand, text []byte) []byte {
	lines := strings.SplitAfter(string(text), "\n")
	i := random.IntN(len(lines))
	line := lines[i]
	at := random.IntN(len(line) + 1)
	switch random.IntN(8) {
	case 0:
		line = ""
	case 1:
		line += line
	case 2:
		line = " " + line
	case 3:
		line = strings.TrimPrefix(line, " ")
	case 4:
		j := random.IntN(len(lines))
		lines[j], line = line, lines[j]
	case 5:
		line = line[:at]
	default:
		line = line[:at] + pieces[random.IntN(len(pieces))] + line[at:]
	}
	lines[i] = line
	return []byte(strings.Join(lines, ""))
}
