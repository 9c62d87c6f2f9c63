package idle

import (
	"bufio"
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// dropProgram unmaps the pages of the program's file that are in memory: most of them only the
// start has touched, by 64 KB around each page that it needed, and they count as this process's.
// What is needed again comes back by itself, from the system's cache of the file, where the pages
// stay as long as there is room.
func dropProgram() {
	advise(syscall.MADV_DONTNEED)
}

// advise gives advice about the mappings of the program's file, as far as they are clean.
func advise(advice uintptr) {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return
	}
	for _, m := range clean(maps, program) {
		// Not by syscall.Madvise, which wants a slice: this is no memory that Go may write to.
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, m.begin, m.end-m.begin, advice)
	}
}

// mapping is of the addresses from begin to before end.
type mapping struct{ begin, end uintptr }

// clean returns those mappings of a file in /proc/PID/smaps (proc_pid_smaps(5)) that nobody writes
// to and of which no page differs from the file's, as one would in which a debugger has set a
// breakpoint.
func clean(smaps []byte, path string) (found []mapping) {
	var last mapping // the latest of the file, while it is not known to differ
	for lines := bufio.NewScanner(bytes.NewReader(smaps)); lines.Scan(); {
		line := lines.Bytes()
		words := bytes.Fields(line)
		if len(words) < 2 {
			continue
		}
		if begin, end, ok := bytes.Cut(words[0], []byte("-")); ok && len(words) >= 5 {
			last = mapping{}
			from, err1 := strconv.ParseUint(string(begin), 16, 64)
			to, err2 := strconv.ParseUint(string(end), 16, 64)
			mode := words[1]
			private := len(mode) == 4 && mode[1] == '-' && mode[3] == 'p'
			if err1 == nil && err2 == nil && private && len(words) > 5 && bytes.HasSuffix(line, []byte(" "+path)) {
				last = mapping{uintptr(from), uintptr(to)}
			}
			continue
		}
		if string(words[0]) == "Anonymous:" && string(words[1]) == "0" && last != (mapping{}) {
			found = append(found, last)
		}
	}
	return found
}
