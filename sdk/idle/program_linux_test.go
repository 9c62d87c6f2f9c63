package idle

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// TestClean: a mapping in which something differs from the file would lose that.
func TestClean(t *testing.T) {
	const smaps = `00400000-00500000 r-xp 00000000 fe:00 5                  /opt/a program
Rss:                 700 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
00500000-00600000 r--p 00100000 fe:00 5                  /opt/a program
Anonymous:             0 kB
00600000-00700000 r-xp 00200000 fe:00 5                  /opt/a program
Anonymous:             4 kB
00700000-00800000 rw-p 00300000 fe:00 5                  /opt/a program
Anonymous:             0 kB
00800000-00900000 r--s 00400000 fe:00 5                  /opt/a program
Anonymous:             0 kB
00900000-00a00000 r-xp 00000000 fe:00 6                  /opt/program
Anonymous:             0 kB
00a00000-00b00000 rw-p 00000000 00:00 0
Anonymous:             0 kB
7fff00000000-7fff00001000 r-xp 00000000 00:00 0          [vdso]
Anonymous:             0 kB
`
	want := []mapping{{0x400000, 0x500000}, {0x500000, 0x600000}}
	if got := clean([]byte(smaps), "/opt/a program"); !slices.Equal(got, want) {
		t.Errorf("clean are %x, not %x", got, want)
	}
}

var residentPattern = regexp.MustCompile(`(?m)^Rss: +([0-9]+) kB$`)

// resident is how much of this program's file is mapped, in kB.
func resident(t *testing.T) (sum int) {
	t.Helper()
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	for part := range bytes.SplitSeq(smaps, []byte("VmFlags:")) {
		if !bytes.Contains(part, []byte(program)) || bytes.Contains(part, []byte(" rw-p ")) {
			continue
		}
		kB, err := strconv.Atoi(string(residentPattern.FindSubmatch(part)[1]))
		if err != nil {
			t.Fatal(err)
		}
		sum += kB
	}
	return sum
}

// TestDropProgram: what the program does after it is what it did before, with fewer of its pages.
func TestDropProgram(t *testing.T) {
	advise(unix.MADV_POPULATE_READ) // as after a start, whatever ran before this test
	before := resident(t)
	dropProgram()
	if after := resident(t); after == 0 || after > before*3/4 {
		t.Errorf("%d kB of the program are mapped, %d kB before", after, before)
	}
}
