package process_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/coxswain-mesh/coxswain/core/host/process"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
)

// healthy asks whoever listens on a socket for its health.
func healthy(ctx context.Context, socket string) error {
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: "plugin"})
	return err
}

// stranger is a process that is not the core.
func stranger(socket string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	fmt.Println("healthy:", healthy(ctx, socket))
}

// The core may connect to a plugin; another process of the same user, which finds the socket, may
// not, with TLS or without.
func TestStrangerConnects(t *testing.T) {
	if runtime.GOOS != "linux" {
		need.Impossible(t, "who connects to a socket is known on Linux alone")
	}
	for _, tls := range []bool{false, true} {
		t.Run(fmt.Sprintf("tls=%v", tls), func(t *testing.T) {
			s := spec(t)
			s.TLS = tls
			_, link := start(t, s)
			sockets, err := filepath.Glob(filepath.Join(s.SocketDir, "*", "*"))
			if err != nil || len(sockets) != 1 {
				t.Fatalf("%v %v", sockets, err)
			}
			if dir, err := os.Stat(filepath.Dir(sockets[0])); err != nil || dir.Mode().Perm() != 0o700 {
				t.Errorf("the socket's directory: %v %v", dir.Mode(), err)
			}
			cmd := exec.CommandContext(limited(t), os.Args[0])
			cmd.Env = append(os.Environ(), "TEST_STRANGER_TO="+sockets[0])
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.HasPrefix(string(out), "healthy: rpc error") || strings.Contains(string(out), "DeadlineExceeded") {
				t.Errorf("a stranger: %s %v", out, err)
			}
			if err := healthy(limited(t), sockets[0]); !tls && err != nil {
				t.Errorf("the core: %v", err)
			}
			greet(t, link)
		})
	}
}

// The core speaks to nobody but the plugin's own processes, whatever address the plugin announces.
func TestStrangerListens(t *testing.T) {
	dir, err := os.MkdirTemp("", "cox")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s") // of this process, which is not the plugin's
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, c := range []struct{ name, script, want string }{
		{"elsewhere", `echo "1|1|unix|` + socket + `|grpc"`, "which is not in PLUGIN_UNIX_SOCKET_DIR"},
		{"beside", `echo "1|1|unix|$PLUGIN_UNIX_SOCKET_DIR/../s|grpc"`, "which is not in PLUGIN_UNIX_SOCKET_DIR"},
		{"tcp", `echo "1|1|tcp|127.0.0.1:1|grpc"`, "the contract wants a Unix socket"},
		{"another process", `ln -s ` + socket + ` $PLUGIN_UNIX_SOCKET_DIR/s && echo "1|1|unix|$PLUGIN_UNIX_SOCKET_DIR/s|grpc"`,
			fmt.Sprintf("process %d listens on", os.Getpid())},
	} {
		t.Run(c.name, func(t *testing.T) {
			if runtime.GOOS != "linux" && c.name == "another process" {
				need.Impossible(t, "who listens on a socket is known on Linux alone")
			}
			s := spec(t)
			s.Path, s.Args = "/bin/sh", []string{"-c", c.script + "; sleep 1000"}
			s.Env = []string{"PATH=" + os.Getenv("PATH")}
			_, err := process.Start(context.Background(), s)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
			empty(t, s.SocketDir)
		})
	}
}
