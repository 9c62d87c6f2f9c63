package eureka

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/registries"
)

const (
	user   = "mesh"
	secret = "secret"
	// window is for how long the server keeps changes; 3 minutes where nothing is said.
	window = 10 * time.Second
)

// server is a Eureka server alone.
type server struct {
	address string
	// scheme and client are how those who register ask it.
	scheme string
	client *http.Client
	args   []string
	cmd    *exec.Cmd
	exited chan struct{}
	log    *registries.Tail
	dirty  *atomic.Int64
}

// start starts one that tells at once what changed. More arguments win.
func start(t testing.TB, more ...string) *server {
	t.Helper()
	s := configure(t, more...)
	s.Start(t)
	return s
}

// configure makes one that isn't started yet; the test's end stops it.
func configure(t testing.TB, more ...string) *server {
	t.Helper()
	s := &server{
		address: wait.Address(t), dirty: &atomic.Int64{}, scheme: "http",
		client: &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 32}},
	}
	s.dirty.Store(time.Now().UnixMilli())
	_, port, err := net.SplitHostPort(s.address)
	if err != nil {
		t.Fatal(err)
	}
	s.args = append([]string{
		"--server.address=127.0.0.1", "--server.port=" + port, "--spring.security.user.name=" + user, "--spring.security.user.password=" + secret,
		"--eureka.client.register-with-eureka=false", "--eureka.client.fetch-registry=false",
		"--eureka.server.use-read-only-response-cache=false",
		"--eureka.server.response-cache-auto-expiration-in-seconds=1",
		"--eureka.server.wait-time-in-ms-when-sync-empty=0",
		"--eureka.server.retention-time-in-m-s-in-delta-queue=" + strconv.Itoa(int(window.Milliseconds())),
		"--eureka.server.delta-retention-timer-interval-in-ms=1000",
		"--spring.main.banner-mode=off", "--logging.level.root=warn",
	}, more...)
	t.Cleanup(s.stop)
	return s
}

// folder is where Eureka is.
func folder(t testing.TB) string {
	t.Helper()
	sum := sha256.New()
	for _, name := range []string{"pom.xml", "Server.java"} {
		text, err := os.ReadFile(filepath.Join("server", name))
		if err != nil {
			t.Fatal(err)
		}
		sum.Write(text)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(cache, "coxswain", "eureka-"+hex.EncodeToString(sum.Sum(nil))[:16])
	if _, err := os.Stat(filepath.Join(path, ".installed")); err != nil {
		need.Missing(t, "%s is not there; make eureka gets it", path)
	}
	return path
}

func (s *server) Address() string { return s.address }

// Start starts it, again after Stop, and waits until it answers.
func (s *server) Start(t testing.TB) {
	t.Helper()
	s.launch(t)
	s.answers(t)
}

func (s *server) launch(t testing.TB) {
	t.Helper()
	path := folder(t)
	s.cmd = exec.Command("java", append([]string{
		"-Xmx768m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", filepath.Join(path, "classes") + ":" + filepath.Join(path, "lib") + "/*", "Server",
	}, s.args...)...)
	s.exited, s.log = make(chan struct{}), &registries.Tail{}
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.cmd.Wait(); close(s.exited) }()
}

// patience is how long a server may take to start: some 20 s on a busy machine.
const patience = 2 * time.Minute

func (s *server) answers(t testing.TB) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		err := s.ask(http.MethodGet, "/apps", nil)
		if err == nil {
			return
		}
		select {
		case <-s.exited:
			t.Fatalf("Eureka has ended: %s", s.log)
		case <-time.After(200 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("Eureka doesn't answer: %v\n%s", err, s.log)
		}
	}
}

// Stop ends it as a crash does.
func (s *server) Stop(testing.TB) { s.stop() }

func (s *server) stop() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	<-s.exited
}

// ask makes a request; an error says what the server answered.
func (s *server) ask(method, path string, body []byte) error {
	r, err := http.NewRequestWithContext(context.Background(), method, s.scheme+"://"+s.address+"/eureka"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.SetBasicAuth(user, secret)
	r.Header.Set("Content-Type", "application/json")
	answer, err := s.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %s %.300s", method, path, answer.Status, text)
	}
	return err
}

// record is how an instance registers.
func (s *server) record(i registries.Instance) map[string]any {
	status, metadata := "UP", map[string]string{"weight": strconv.Itoa(i.Weight)}
	if i.Unhealthy {
		status = "DOWN"
	}
	for k, v := range i.Metadata {
		metadata[k] = v
	}
	return map[string]any{
		"instanceId": i.ID, "app": strings.ToUpper(i.Service), "hostName": i.Address, "ipAddr": i.Address,
		"vipAddress": i.Service, "secureVipAddress": i.Service,
		"status": status, "port": map[string]any{"$": i.Port, "@enabled": "true"}, "securePort": map[string]any{"$": 443, "@enabled": "false"},
		"dataCenterInfo": map[string]any{"@class": "com.netflix.appinfo.InstanceInfo$DefaultDataCenterInfo", "name": "MyOwn"},
		"leaseInfo":      map[string]any{"renewalIntervalInSecs": 30, "durationInSecs": 3600}, "metadata": metadata,
		// The server takes no record that is older than the one that it has.
		"lastDirtyTimestamp": strconv.FormatInt(s.dirty.Add(1), 10),
	}
}

// register registers instances as they are written, several at once.
func (s *server) register(t testing.TB, all ...map[string]any) {
	t.Helper()
	registries.Each(t, all, func(one map[string]any) error {
		text, err := json.Marshal(map[string]any{"instance": one})
		if err != nil {
			return err
		}
		return s.ask(http.MethodPost, "/apps/"+one["app"].(string), text)
	})
}

func (s *server) Put(t testing.TB, all ...registries.Instance) {
	t.Helper()
	var records []map[string]any
	for _, i := range all {
		records = append(records, s.record(i))
	}
	s.register(t, records...)
}

func (s *server) Remove(t testing.TB, all ...registries.Instance) {
	t.Helper()
	registries.Each(t, all, func(i registries.Instance) error {
		return s.ask(http.MethodDelete, "/apps/"+strings.ToUpper(i.Service)+"/"+i.ID, nil)
	})
}

// Forget waits until the server has no changes any more.
func (s *server) Forget(t testing.TB) {
	t.Helper()
	select {
	case <-time.After(window + 2*time.Second):
	case <-t.Context().Done():
	}
}

// Spoil gives an instance an address that is none: Eureka takes any text.
func (s *server) Spoil(t testing.TB, i registries.Instance) string {
	t.Helper()
	one := s.record(i)
	one["ipAddr"] = "no address!"
	s.register(t, one)
	return "neither an IP address nor a DNS name"
}
