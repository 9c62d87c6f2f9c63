package host

import (
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/coxswain-mesh/coxswain/core/host/process"
	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// runAs is who an entry's process runs as; nil: as the core.
func runAs(e *manifest.Entry) (*process.User, error) {
	if e.User == "" {
		return nil, nil
	}
	wrong := func(err error) (*process.User, error) {
		return nil, fmt.Errorf("user %s (%s): %w; give a name that /etc/passwd has, or UID:GID", e.User, e.Keys["user"], err)
	}
	name, group, hasGroup := strings.Cut(e.User, ":")
	who := &process.User{}
	found, err := account(name)
	switch {
	case err == nil:
		who.UID, who.GID = idOf(found.Uid), idOf(found.Gid)
		if ids, err := found.GroupIds(); err == nil {
			for _, id := range ids {
				who.Groups = append(who.Groups, idOf(id))
			}
		}
	case !hasGroup:
		return wrong(err)
	default:
		uid, bad := strconv.ParseUint(name, 10, 32)
		if bad != nil {
			return wrong(err)
		}
		who.UID = uint32(uid)
	}
	if hasGroup {
		gid, err := strconv.ParseUint(group, 10, 32)
		if err != nil {
			g, err := user.LookupGroup(group)
			if err != nil {
				return wrong(err)
			}
			gid = uint64(idOf(g.Gid))
		}
		who.GID, who.Groups = uint32(gid), nil
	}
	return who, nil
}

func account(name string) (*user.User, error) {
	if _, err := strconv.ParseUint(name, 10, 32); err == nil {
		return user.LookupId(name)
	}
	return user.Lookup(name)
}

func idOf(id string) uint32 {
	n, _ := strconv.ParseUint(id, 10, 32)
	return uint32(n)
}

// admit opens the way to the sockets to the user of an entry, and says where it can't be.
func (ln *launcher) admit(e *manifest.Entry, l *Launch, private string) error {
	if l.User == nil || int(l.User.UID) == os.Geteuid() {
		return nil
	}
	for _, dir := range []string{ln.runtimeDir, private} { // to go through, not to look into
		if err := os.Chmod(dir, 0o711); err != nil {
			return err
		}
	}
	for _, c := range []struct{ dir, what string }{
		{private, "where its socket is; set XDG_RUNTIME_DIR of the core to a directory that it may enter, such as /run"},
		{l.Dir, "the directory of plugins.yaml, in which plugins run; move that file, or chmod o+x"},
	} {
		if closed := closedTo(c.dir, l.User.UID, l.User.GID, l.User.Groups); closed != "" {
			return fmt.Errorf("user %s (%s) may not enter %s: it is on the way to %s, %s", e.User, e.Keys["user"], closed, c.dir, c.what)
		}
	}
	return nil
}

// mayEnter reports whether a user may go through a directory.
func mayEnter(info os.FileInfo, uid, gid uint32, groups []uint32) bool {
	of, ok := info.Sys().(*syscall.Stat_t)
	switch mode := info.Mode().Perm(); {
	case !ok || uid == 0:
		return true
	case of.Uid == uid:
		return mode&0o100 != 0
	case of.Gid == gid || slices.Contains(groups, of.Gid):
		return mode&0o010 != 0
	default:
		return mode&0o001 != 0
	}
}
