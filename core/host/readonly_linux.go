package host

import "golang.org/x/sys/unix"

// readOnly reports whether a path is on a file system to which nobody writes, as volumes of
// ConfigMaps are, whatever the modes say.
func readOnly(path string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(path, &fs) == nil && fs.Flags&unix.ST_RDONLY != 0
}
