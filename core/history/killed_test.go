package history

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// killedVariable has the directory and the seed of a process that writes a history until it is
// killed.
const killedVariable = "COXSWAIN_TEST_HISTORY"

func TestMain(m *testing.M) {
	if dir, seed, ok := strings.Cut(os.Getenv(killedVariable), " "); ok {
		n, _ := strconv.ParseUint(seed, 10, 64)
		h, err := New(Config{Dir: dir, Revisions: 200, Bytes: 1 << 30, Log: silent()})
		if err != nil {
			panic(err)
		}
		for w := newWorld(h, n); ; {
			w.revise()
			h.Flush()
			fmt.Println(w.rev)
		}
	}
	os.Exit(m.Run())
}

// TestKilled: a process is killed while it writes. The file opens and has a whole prefix of what
// was served: all that was written down, each revision as it was.
func TestKilled(t *testing.T) {
	for seed := range uint64(3) {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d", killedVariable, dir, seed))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := uint64(0)
		lines := bufio.NewScanner(out)
		for n := range 20 + 13*seed {
			if !lines.Scan() {
				t.Fatalf("it ended after %d revisions", n)
			}
			said, _ = strconv.ParseUint(lines.Text(), 10, 64)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() {
			said, _ = strconv.ParseUint(lines.Text(), 10, 64)
		}
		_ = cmd.Wait() // it was killed
		h := newHistory(t, Config{Dir: dir, Revisions: 200})
		oldest, newest, ok := h.log.Span()
		if !ok || newest < said {
			t.Fatalf("revision %d was written, the newest one is %d", said, newest)
		}
		w := newWorld(newHistory(t, Config{}), seed)
		for w.rev < newest {
			w.revise()
			w.h.Flush()
		}
		compared := 0
		for rev := oldest; rev < newest; rev++ {
			want, known := w.was[rev]
			if !known {
				continue
			}
			im, err := h.At(rev)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]map[string]string{}
			for k := range im.Places {
				got[k.Node] = words(im.Snapshot(k))
			}
			if !cmp.Equal(got, want) {
				t.Fatalf("revision %d: %s", rev, cmp.Diff(want, got))
			}
			compared++
		}
		if compared < 15 {
			t.Errorf("%d revisions were compared", compared)
		}
	}
}
