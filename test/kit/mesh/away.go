package mesh

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// Away waits until `coxswain plugins show` says that a plugin's source is away, with all words in
// that line; without words, that it isn't away.
func (p *Plane) Away(t testing.TB, plugin string, words ...string) {
	t.Helper()
	wait.For(t, fmt.Sprintf("plugins show %s says that its source is away: %q", plugin, words), func() error {
		out, err := exec.Command(p.binary, "plugins", "show", plugin, "--addr", p.HTTP).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		said := ""
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "its source is away since ") {
				said = line
			}
		}
		if (said != "") != (len(words) > 0) {
			return fmt.Errorf("it says:\n%s", out)
		}
		for _, word := range words {
			if !strings.Contains(said, word) {
				return fmt.Errorf("it says %s", said)
			}
		}
		return nil
	})
}
