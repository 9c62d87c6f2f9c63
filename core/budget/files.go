package budget

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
)

// Files returns how many of a process's descriptors may be taken while connections are let in: the
// others are kept for plugins, which need some when they start, and for files. 0: no bound.
func Files(limit int) int {
	if limit <= 0 {
		return 0
	}
	return limit - min(512, max(limit/4, min(64, limit/2)))
}

// FilesOfPages returns how many may be taken while connections to pages are let in: some more, so
// that pages answer when there is no room for proxies, and still fewer than there are. 0: no bound.
func FilesOfPages(limit int) int { return (Files(limit) + max(limit, 0)) / 2 }

// CheckFiles judges a connection by its descriptor: the kernel gives the lowest that is free, so
// that all below it are taken.
func CheckFiles(descriptor, most int) error {
	if most <= 0 || descriptor < most {
		return nil
	}
	return &Refusal{Limit: "files", Code: codes.ResourceExhausted, Text: fmt.Sprintf(
		"%d descriptors are open, and the others that the process may have are kept for plugins: raise its limit of open files (ulimit -n, LimitNOFILE)",
		descriptor)}
}

// Full reports whether a connection is refused because of all that there are.
func Full(err error) bool {
	var r *Refusal
	return errors.As(err, &r) && (r.Limit == "maxConnections" || r.Limit == "files")
}
