package e2e

import (
	"archive/zip"
	"bufio"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/mesh"
)

// edge has a Gateway of Istio, one of the Gateway API, and a route that nobody serves.
const edge = `
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: test}
spec:
  selector: {istio: ingressgateway}
  servers: [{port: {number: 18080, name: http, protocol: HTTP}, hosts: ["*"]}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: other, namespace: test}
spec: {gatewayClassName: another, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: UDPRoute
metadata: {name: dns, namespace: test}
spec: {rules: [{backendRefs: [{name: dns, port: 53}]}]}
`

// TestWordsOfCommands: what commands say of a control plane with one proxy, where all is well or
// what is asked for is not there: no addresses of pages, no numbers of nothing, and never silence.
func TestWordsOfCommands(t *testing.T) {
	dir := t.TempDir()
	place(t, filepath.Join(dir, "edge.yaml"), edge)
	place(t, filepath.Join(dir, "web.yaml"), heldService)
	plane := mesh.Start(t, program, dir)
	plane.Ready(t)
	const clusters = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	node := plane.Follow(t, plane.Bootstrap(t, "--type", "router", "--name", "edge", "--namespace", "test", "--labels", "istio=ingressgateway"), clusters)
	archive := filepath.Join(t.TempDir(), "report.zip")
	for _, c := range []struct {
		args, says, never string // expressions
		code              int
	}{
		{"hold", `^nothing is held\n$`, "", 0},
		{"hold list", `^nothing is held\n$`, "", 0},
		{"analyze --live", `1 resource left out: 1 UDPRoute\n$`, "", 0},
		{"config", `UDPRoute +test/dns +left out`, "", 0},
		{"diff --from 1", `revision 1 -> \d+: 1 proxy compared`, "1 proxies", 0},
		{"history", `kept: 1 revision of `, "1 revisions", 0},
		{"plan -f " + filepath.Join(dir, "edge.yaml"), "directory", "http://", 2},
		{"explain " + node + " cluster nosuch", "nosuch", "http://|404", 1},
		{"wait Gateway/test/edge --for served --timeout 20s", `Gateway test/edge of revision`, "", 0},
		{"wait Gateway/test/nosuch --for served --timeout 1s", "several tables", "http://|400", 1},
		{"proxies --refused", `^PROXY .*\n$`, "", 0},
		{"bug-report -o " + archive, "report.zip", "", 0},
	} {
		out, err := exec.Command(program, append(strings.Fields(c.args), "--addr", plane.HTTP)...).CombinedOutput()
		code := 0
		if exit, ok := err.(*exec.ExitError); ok {
			code = exit.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		if code != c.code || !regexp.MustCompile(c.says).Match(out) || c.never != "" && regexp.MustCompile(c.never).Match(out) {
			t.Errorf("coxswain %s ends with %d, want %d, and says\n%s", c.args, code, c.code, out)
		}
	}
	reported(t, archive)

	watch, said := watching(t, plane.HTTP)
	if !strings.Contains(said, "watching "+plane.HTTP+" from revision ") {
		t.Errorf("coxswain watch says %q", said)
	}
	_ = watch.Process.Kill()
	_ = watch.Wait()
}

// watching starts `coxswain watch`, and returns what it says first.
func watching(t *testing.T, address string) (*exec.Cmd, string) {
	t.Helper()
	watch := exec.Command(program, "watch", "--addr", address)
	out, err := watch.StderrPipe()
	if err == nil {
		err = watch.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Error(err)
	}
	return watch, line
}

// reported sees that an archive has the time at which it was made, and is asked as the control
// plane is.
func reported(t *testing.T, archive string) {
	t.Helper()
	z, err := zip.OpenReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = z.Close() }()
	for _, f := range z.File {
		if age := time.Since(f.Modified); age < -time.Minute || age > time.Hour {
			t.Errorf("%s is of %v", f.Name, f.Modified)
		}
	}
	out, err := exec.Command(program, "config", "--from", archive).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "test/edge") {
		t.Errorf("config --from: %v: %s", err, out)
	}
	out, err = exec.Command(program, "route", "--from", archive, "edge.test", "http://web.example:18080/").CombinedOutput()
	if strings.Contains(string(out), "no such file") || strings.Contains(string(out), "unmarshal") {
		t.Errorf("route --from: %v: %s", err, out)
	}
}
