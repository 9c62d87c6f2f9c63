// Package zookeeper runs ZooKeeper itself, on loopback, for tests. `make zookeeper` gets it from
// Maven Central, as pom.xml says.
package zookeeper

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/program"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// User and Password of those who may do all where nodes are made by Server.Create.
const User, Password = "mesh", "secret"

// ACL is theirs.
func ACL() []zk.ACL { return zk.DigestACL(zk.PermAll, User, Password) }

// Server is a ZooKeeper of one server.
type Server struct {
	// Address is HOST:PORT of its clients.
	Address string
	// Dir has what it keeps.
	Dir string
	// Client is the test's own, authenticated.
	Client *zk.Conn

	java, lib string
	process   *program.Process
	made      sync.Map // nodes without a value that are there
}

// LoseDisk ends it, and starts it without what it had on disk. The test has a new session then: a
// server refuses who has seen what it knows nothing of.
func (s *Server) LoseDisk(t testing.TB) {
	t.Helper()
	s.Down()
	if err := os.RemoveAll(filepath.Join(s.Dir, "version-2")); err != nil {
		t.Fatal(err)
	}
	s.made.Clear()
	s.Up(t)
	s.Client.Close()
	s.connect(t)
}

// Lib is the folder with Java libraries of ZooKeeper and Dubbo, and java's path. Without either the
// test is skipped.
func Lib(t testing.TB) (java, lib string) {
	t.Helper()
	java, err := exec.LookPath("java")
	if err != nil {
		need.Missing(t, "no java: install a JDK (17 or newer)")
	}
	return java, filepath.Join(program.Cached(t, "test/kit/zookeeper/pom.xml", "zookeeper", ".installed"), "lib")
}

// Start starts one whose configuration has more lines, and waits until it answers. The test's end
// stops it.
func Start(t testing.TB, more ...string) *Server {
	t.Helper()
	s := &Server{Address: wait.Address(t), Dir: t.TempDir()}
	s.java, s.lib = Lib(t)
	_, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(
		"dataDir=%s\nclientPort=%s\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\ntickTime=1000\nmaxSessionTimeout=60000\nmaxClientCnxns=0\n",
		s.Dir, port,
	)
	for _, line := range more {
		text += line + "\n"
	}
	if err := os.WriteFile(filepath.Join(s.Dir, "zoo.cfg"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Up(t)
	s.connect(t)
	t.Cleanup(func() { s.Client.Close() })
	return s
}

// connect makes the test's own session.
func (s *Server) connect(t testing.TB) {
	t.Helper()
	client, _, err := zk.Connect([]string{s.Address}, 30*time.Second, zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	s.Client = client
	wait.For(t, "ZooKeeper knows the test", func() error { return client.AddAuth("digest", []byte(User+":"+Password)) })
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// Down ends it as a crash does.
func (s *Server) Down() { s.process.Stop() }

// Up starts it, again after Down, with what it has on disk.
func (s *Server) Up(t testing.TB) {
	t.Helper()
	s.process = program.Start(t, exec.Command(s.java, "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Dzookeeper.forceSync=no",
		"-cp", s.lib+"/*", "org.apache.zookeeper.server.ZooKeeperServerMain", filepath.Join(s.Dir, "zoo.cfg")))
	wait.For(t, "ZooKeeper serves", func() error {
		if !s.process.Runs() {
			t.Fatalf("ZooKeeper has ended:\n%s", s.process.Last())
		}
		return s.serves()
	})
}

// serves asks for the server's mode. Before it has one it takes connections and does not answer.
func (s *Server) serves() error {
	c, err := net.DialTimeout("tcp", s.Address, time.Second)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := c.Write([]byte("srvr")); err != nil {
		return err
	}
	answer, err := io.ReadAll(c)
	if err == nil && !strings.Contains(string(answer), "Mode: ") {
		err = fmt.Errorf("it says %q", answer)
	}
	return err
}

// Create makes a node, and those above it. One that is ephemeral goes when the test's session does.
// One that is there stays as it is.
func (s *Server) Create(t testing.TB, path string, value []byte, ephemeral bool) {
	t.Helper()
	for i, c := range path {
		if c == '/' && i > 0 {
			s.create(t, path[:i], nil, 0)
		}
	}
	flags := int32(0)
	if ephemeral {
		flags = zk.FlagEphemeral
	}
	s.create(t, path, value, flags)
}

func (s *Server) create(t testing.TB, path string, value []byte, flags int32) {
	t.Helper()
	if _, there := s.made.Load(path); there && flags == 0 {
		return
	}
	err := s.ask(func() error {
		_, err := s.Client.Create(path, value, flags, ACL())
		return err
	})
	if err != nil && err != zk.ErrNodeExists {
		t.Errorf("%s: %v", path, err)
	}
	if flags == 0 && value == nil {
		s.made.Store(path, true)
	}
}

// Set gives a node a value; it makes it where it isn't there.
func (s *Server) Set(t testing.TB, path string, value []byte, ephemeral bool) {
	t.Helper()
	err := s.ask(func() error {
		_, err := s.Client.Set(path, value, -1)
		return err
	})
	if err == zk.ErrNoNode {
		s.Create(t, path, value, ephemeral)
	} else if err != nil {
		t.Errorf("%s: %v", path, err)
	}
}

// Delete takes a node away, if it is there.
func (s *Server) Delete(t testing.TB, path string) {
	t.Helper()
	if err := s.ask(func() error { return s.Client.Delete(path, -1) }); err != nil && err != zk.ErrNoNode {
		t.Errorf("%s: %v", path, err)
	}
}

// ask asks again while the client's session comes back after a restart of the server: until then
// its requests end with errors, whether they were made or not. All of them may be made twice.
func (s *Server) ask(request func() error) (err error) {
	for deadline := time.Now().Add(wait.Deadline); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if err = request(); err != zk.ErrNoServer && err != zk.ErrConnectionClosed && err != zk.ErrSessionMoved {
			return err
		}
	}
	return err
}
