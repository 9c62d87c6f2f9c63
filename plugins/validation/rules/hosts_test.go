package rules

import (
	"math/rand/v2"
	"regexp"
	"testing"
)

// TestIsWord: the forms of labels are those of the regular expressions by which Kubernetes and DNS
// define them.
func TestIsWord(t *testing.T) {
	const some = "azAZ09-_./ \n*é\xff"
	random := rand.New(rand.NewPCG(1, 2))
	words := 0
	for range 100_000 {
		text := make([]byte, random.IntN(5))
		for i := range text {
			text[i] = some[random.IntN(len(some))]
		}
		for form, got := range map[*regexp.Regexp]bool{
			dnsLabel:    isWord(string(text), "-", true),
			labelName:   isWord(string(text), "-_.", true),
			labelPrefix: isWord(string(text), "-.", false),
		} {
			if want := form.Match(text); got != want {
				t.Fatalf("%q: %v, not %v as by %s", text, got, want, form)
			}
			if got {
				words++
			}
		}
	}
	if words < 1000 {
		t.Errorf("only %d words", words)
	}
}

var (
	dnsLabel    = regexp.MustCompile(`^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?$`)
	labelName   = regexp.MustCompile(`^[a-zA-Z0-9]([-_.a-zA-Z0-9]*[a-zA-Z0-9])?$`)
	labelPrefix = regexp.MustCompile(`^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$`)
)
