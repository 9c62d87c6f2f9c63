package show

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/plugins/shared/istio"
)

// LastWord is a type without its package.
func LastWord(typeURL string) string { return typeURL[strings.LastIndexAny(typeURL, "/.")+1:] }

func more(w io.Writer, n int, others bool) {
	if n > 0 {
		fmt.Fprintf(w, "… and %d others (-o wide)\n", n)
	}
	if others {
		fmt.Fprintln(w, "… and others, which are not named")
	}
}

// RowText names a row as people do: KIND NAMESPACE/NAME.
func RowText(n admin.RowName) string {
	return n.Table[strings.LastIndexByte(n.Table, '/')+1:] + " " + cmp.Or(n.Key, "-")
}

// FirstOf returns the first of some reasons, and how many more there are; empty for none.
func FirstOf(lines []string) string {
	switch len(lines) {
	case 0:
		return ""
	case 1:
		return lines[0]
	}
	return fmt.Sprintf("%s (and %d more reasons)", lines[0], len(lines)-1)
}

// Are is many with its verb: 1 proxy is, 2 proxies are.
func Are(n int, what string) string {
	if n == 1 {
		return Many(n, what) + " is"
	}
	return Many(n, what) + " are"
}

// Many says how many of something there are, by its singular: 1 proxy, 2 proxies.
func Many(n int, what string) string {
	if n != 1 {
		if before, found := strings.CutSuffix(what, "y"); found {
			what = before + "ie"
		}
		what += "s"
	}
	return fmt.Sprint(n, " ", what)
}

// Age is how long ago something was, as people say it.
func Age(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	d := max(0, time.Since(at))
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// Size in the unit that people read.
func Size(bytes uint64) string {
	if bytes == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f MB", float64(bytes)/1e6)
}

// brief is a time of so many seconds, as short as it can be read.
func brief(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d == 0:
		return "-"
	case d < 10*time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(time.Millisecond).String()
}

// rate is bytes a second.
func rate(bytes float64) string {
	switch {
	case bytes < 1:
		return "-"
	case bytes < 1e6:
		return fmt.Sprintf("%.1f kB", bytes/1e3)
	}
	return fmt.Sprintf("%.1f MB", bytes/1e6)
}

// ShortName is NAME.NAMESPACE where a node's ID has that, else the ID.
func ShortName(node string) string {
	if id, ok := istio.ParseNodeID(node); ok {
		return id.Short()
	}
	return node
}

// revisionText is a revision's number; it is 0 where none was sent.
func revisionText(number uint64) string {
	if number == 0 {
		return "-"
	}
	return fmt.Sprint(number)
}
