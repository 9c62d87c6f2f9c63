package audit

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/user"
	"strconv"

	"github.com/coxswain-mesh/coxswain/sdk/peer"
)

// Who changed something.
type Who struct {
	// By is command, page, rollback, dev, crash, or the path of the plugins.yaml that is followed.
	By string `json:"by"`
	// UID and User are those of the process that gave the command, PID and Command its number and
	// name, Login who it has logged in as, before sudo.
	UID     *int   `json:"uid,omitempty"`
	User    string `json:"user,omitempty"`
	Login   string `json:"login,omitempty"`
	PID     int    `json:"pid,omitempty"`
	Command string `json:"command,omitempty"`
}

// Those who are no file and no process.
const (
	ByCommand  = "command"
	ByRollback = "rollback"
	ByDev      = "dev"
	ByCrash    = "crash"
	// ByPage: somebody who logged in on the page; the rest says who asked for the login.
	ByPage = "page"
	ByRow  = "row" // of a table that an entry has instances for
)

// String returns who it was, in words for people.
func (w Who) String() string {
	if w.UID == nil {
		return w.By
	}
	text := fmt.Sprintf("%s (uid %d) by %s %d", named(w.User, *w.UID), *w.UID, w.Command, w.PID)
	if w.Login != "" && w.Login != w.User {
		text += ", logged in as " + w.Login
	}
	if w.By == ByPage {
		text += ", on the page"
	}
	return text
}

func named(name string, uid int) string {
	if name == "" {
		return strconv.Itoa(uid)
	}
	return name
}

type key struct{}

// With notes in a context who acts in it.
func With(ctx context.Context, w Who) context.Context { return context.WithValue(ctx, key{}, w) }

// Acting notes that it is no process that acts.
func Acting(ctx context.Context, by string) context.Context { return With(ctx, Who{By: by}) }

// By returns who acts in a context; the zero value: nobody said.
func By(ctx context.Context) Who { return from(ctx) }

func from(ctx context.Context) Who {
	w, _ := ctx.Value(key{}).(Who)
	return w
}

// Peer is the process at the other end of a connection, as the kernel knows it.
func Peer(c net.Conn) Who {
	p, known := peer.Of(c)
	if !known {
		return Who{By: ByCommand}
	}
	w := Who{By: ByCommand, UID: &p.UID, User: userOf(p.UID), PID: p.PID}
	if p.PID > 0 {
		w.Command = string(bytes.TrimSpace(procFile(p.PID, "comm")))
		if id, err := strconv.ParseUint(string(bytes.TrimSpace(procFile(p.PID, "loginuid"))), 10, 32); err == nil && id != noLogin {
			w.Login = named(userOf(int(id)), int(id))
		}
	}
	return w
}

// noLogin is what the kernel says of a process that nobody logged in for (proc_pid_loginuid(5)).
const noLogin = 1<<32 - 1

func procFile(pid int, name string) []byte {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name)) // of another user, or gone: nothing is known
	return text
}

func userOf(uid int) string {
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return ""
	}
	return u.Username
}
