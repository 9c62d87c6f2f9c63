package envoyrules

import (
	"bufio"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"
)

// lines calls f with the first word and the text of each line of a file in testdata: what Envoy
// 1.40 said of the text, and the text as JSON.
func lines(t *testing.T, name string, f func(word, text string)) {
	t.Helper()
	in, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	n := 0
	for s := bufio.NewScanner(in); s.Scan(); n++ {
		word, rest, _ := strings.Cut(s.Text(), " ")
		var text string
		if err := json.Unmarshal([]byte(rest), &text); err != nil {
			t.Fatalf("%s:%d: %v", name, n+1, err)
		}
		f(word, text)
	}
	if n < 50 {
		t.Errorf("%s has %d lines", name, n)
	}
}

// TestFormatsAsEnvoy: what Envoy refuses is refused. What it takes is taken.
func TestFormatsAsEnvoy(t *testing.T) { verdicts(t, "formats.txt", Format) }

func TestRegexesAsEnvoy(t *testing.T) { verdicts(t, "regexes.txt", Regex) }

func verdicts(t *testing.T, name string, check func(string) error) {
	lines(t, name, func(word, text string) {
		if err := check(text); (err == nil) != (word == "takes") {
			t.Errorf("Envoy %s %q; here: %v", word, text, err)
		}
	})
}

// TestProgramSizes: what is reckoned is never less than what RE2 makes, and no more than three
// times as much.
func TestProgramSizes(t *testing.T) {
	lines(t, "programs.txt", func(word, text string) {
		size, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		got, err := reckon(text)
		if err != nil || got < size || got > 3*size+20 {
			t.Errorf("%q: %d, Envoy says %d; %v", text, got, size, err)
		}
	})
}
