package nacos

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/netns"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/registries"
)

const (
	user   = "nacos" // the first one, who may do everything
	secret = "a-secret"
	// grpcOffset is how far gRPC's port is from HTTP's.
	grpcOffset = 1000
)

// server is a Nacos server alone, in a pod of its own. Programs outside of it reach it by a door
// for each port.
type server struct {
	pod    *netns.Pod
	port   int
	home   string
	doors  []*door
	client *http.Client
	cmd    *exec.Cmd
	exited chan struct{}
	log    *registries.Tail

	mu    sync.Mutex
	token string
	// last are registered, by ID.
	last map[string]registries.Instance
}

// start starts one. Options are further lines of its application.properties.
func start(t testing.TB, options ...string) *server {
	t.Helper()
	s := configure(t, options...)
	s.Start(t)
	return s
}

// configure makes one that isn't started yet; the test's end stops it.
func configure(t testing.TB, options ...string) *server {
	t.Helper()
	s := &server{pod: netns.NewPod(t, "nacos", "10.254.0.1"), port: wait.Port(t), home: t.TempDir(), last: map[string]registries.Instance{}}
	s.client = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 32, DialContext: s.pod.Dial}}
	t.Cleanup(s.client.CloseIdleConnections)
	for _, port := range []int{s.port, s.port + grpcOffset} {
		s.doors = append(s.doors, open(t, s.pod, port))
	}
	t.Cleanup(s.stop)
	if err := os.Mkdir(filepath.Join(s.home, "conf"), 0o700); err != nil {
		t.Fatal(err)
	}
	lines := append([]string{
		"nacos.server.main.port=" + strconv.Itoa(s.port), "nacos.core.auth.enabled=true", "nacos.core.auth.system.type=nacos",
		"nacos.core.auth.server.identity.key=server", "nacos.core.auth.server.identity.value=server",
		"nacos.core.auth.plugin.nacos.token.secret.key=dGhpcyBpcyBub2JvZHkncyBzZWNyZXQsIGl0IGlzIGZvciB0ZXN0cw==", "nacos.core.auth.caching.enabled=true",
		"spring.main.banner-mode=off", "logging.level.root=warn",
	}, options...)
	if err := os.WriteFile(filepath.Join(s.home, "conf", "application.properties"), []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// folder is where Nacos is.
func folder(t testing.TB) string {
	t.Helper()
	sum := sha256.New()
	for _, name := range []string{"pom.xml", "Server.java", "Client.java", "sums"} {
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
	path := filepath.Join(cache, "coxswain", "nacos-"+hex.EncodeToString(sum.Sum(nil))[:16])
	if _, err := os.Stat(filepath.Join(path, ".installed")); err != nil {
		need.Missing(t, "%s is not there; make nacos gets it", path)
	}
	return path
}

func (s *server) Address() string { return fmt.Sprintf("127.0.0.1:%d", s.port) }

// Start starts it, again after Stop, and waits until it answers. Its database gives up where the
// machine is too busy to log in within a few seconds; then it is started once more.
func (s *server) Start(t testing.TB) {
	t.Helper()
	s.launch(t)
	for tries := 1; !s.answers(t); tries++ {
		if busy := strings.Contains(s.log.String(), "Login timeout exceeded"); !busy || tries == 3 {
			t.Fatalf("Nacos has ended: %s", s.log)
		}
		s.launch(t)
	}
}

func (s *server) launch(t testing.TB) {
	t.Helper()
	path := folder(t)
	s.cmd = exec.Command("java", "-Xms256m", "-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dnacos.standalone=true", "-Dnacos.home="+s.home,
		"-Dderby.system.home="+s.home, "-Dderby.stream.error.file="+filepath.Join(s.home, "derby.log"), "-Duser.home="+s.home,
		"-cp", filepath.Join(path, "classes")+":"+filepath.Join(path, "lib")+"/*", "Server", "--spring.config.additional-location=file:"+s.home+"/conf/")
	s.cmd.Dir = s.home
	s.exited, s.log = make(chan struct{}), &registries.Tail{}
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	if err := s.pod.Start(s.cmd, 0); err != nil {
		t.Fatal(err)
	}
	exited := s.exited
	cmd := s.cmd
	go func() { _ = cmd.Wait(); close(exited) }()
}

// answers waits until it does, and reports whether it does before it ends.
func (s *server) answers(t testing.TB) bool {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		err := s.enter()
		if err == nil {
			return true
		}
		select {
		case <-s.exited:
			return false
		case <-time.After(200 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("Nacos doesn't answer: %v\n%s", err, s.log)
		}
	}
}

// patience is how long a server may take to start: a minute and a half on a busy machine.
const patience = 4 * time.Minute

// enter logs in, as the user that it makes if there is none yet.
func (s *server) enter() error {
	if _, err := s.ask(http.MethodGet, "/v3/admin/core/state/readiness", nil); err != nil {
		return err
	}
	_, _ = s.ask(http.MethodPost, "/v3/auth/user/admin", url.Values{"password": {secret}}) // it is there already after the first time
	body, err := s.ask(http.MethodPost, "/v3/auth/user/login", url.Values{"username": {user}, "password": {secret}})
	if err != nil {
		return err
	}
	var got struct {
		Token string `json:"accessToken"`
	}
	if err := json.Unmarshal(body, &got); err != nil || got.Token == "" {
		return fmt.Errorf("no token: %.300s", body)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = got.Token
	return nil
}

// enlist has a program register instances by Nacos' own client, until end is called.
func (s *server) enlist(t testing.TB, service string, addresses ...string) (end func()) {
	t.Helper()
	path, log := folder(t), &registries.Tail{}
	cmd := exec.Command("java", append([]string{
		"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Duser.home=" + s.home, "-DJM.LOG.PATH=" + s.home, "-DJM.SNAPSHOT.PATH=" + s.home,
		"-cp", filepath.Join(path, "classes") + ":" + filepath.Join(path, "lib") + "/*", "Client", s.Address(), user, secret, service, "80",
	}, addresses...)...)
	cmd.Dir = s.home
	cmd.Stdout, cmd.Stderr = log, log
	if err := s.pod.Start(cmd, 0); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() { _ = cmd.Wait(); close(exited) }()
	end = func() { _ = cmd.Process.Kill(); <-exited }
	t.Cleanup(end)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(log)
		}
	})
	return end
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

// ask makes a request with a form; an error says what the server answered.
func (s *server) ask(method, path string, form url.Values) ([]byte, error) {
	r, err := http.NewRequestWithContext(context.Background(), method, "http://"+s.Address()+"/nacos"+path, nil)
	if err != nil {
		return nil, err
	}
	if r.URL.RawQuery = form.Encode(); method == http.MethodPost || method == http.MethodPut {
		r.URL.RawQuery, r.Body = "", io.NopCloser(strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	s.mu.Lock()
	r.Header.Set("accessToken", s.token)
	s.mu.Unlock()
	answer, err := s.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %s %.300s", method, path, answer.Status, text)
	}
	return text, err
}

const instancePath = "/v3/client/ns/instance"

// record is how an instance registers, by the API that clients have in languages without gRPC. It
// would have to renew that each 5 s.
func record(i registries.Instance, more map[string]string) url.Values {
	metadata := map[string]string{"preserved.heart.beat.timeout": "86400000", "preserved.ip.delete.timeout": "86400000"}
	maps.Copy(metadata, i.Metadata)
	maps.Copy(metadata, more)
	text, _ := json.Marshal(metadata) // strings always have a JSON form
	return url.Values{
		"serviceName": {i.Service}, "ip": {i.Address}, "port": {strconv.Itoa(i.Port)}, "weight": {strconv.Itoa(i.Weight)},
		"healthy": {strconv.FormatBool(!i.Unhealthy)}, "ephemeral": {"true"}, "metadata": {string(text)},
	}
}

func (s *server) Put(t testing.TB, all ...registries.Instance) {
	t.Helper()
	registries.Each(t, all, func(i registries.Instance) error { return s.register(i, nil) })
}

// register registers an instance. One is its address to Nacos: at another one it is another one,
// and the first goes.
func (s *server) register(i registries.Instance, more map[string]string) error {
	if _, err := s.ask(http.MethodPost, instancePath, record(i, more)); err != nil {
		return err
	}
	s.mu.Lock()
	old, moved := s.last[i.ID]
	s.last[i.ID] = i
	s.mu.Unlock()
	if moved && (old.Address != i.Address || old.Port != i.Port) {
		return s.deregister(old)
	}
	return nil
}

func (s *server) deregister(i registries.Instance) error {
	_, err := s.ask(http.MethodDelete, instancePath, record(i, nil))
	return err
}

func (s *server) Remove(t testing.TB, all ...registries.Instance) {
	t.Helper()
	registries.Each(t, all, func(i registries.Instance) error {
		s.mu.Lock()
		delete(s.last, i.ID)
		s.mu.Unlock()
		return s.deregister(i)
	})
}

// Spoil gives an instance metadata for a port that is none: Nacos takes any text.
func (s *server) Spoil(t testing.TB, i registries.Instance) string {
	t.Helper()
	if err := s.register(i, map[string]string{"gRPC_port": "none"}); err != nil {
		t.Fatal(err)
	}
	return "not between 1 and 65535"
}

// door carries connections to the same port of loopback in a pod.
type door struct {
	pod      *netns.Pod
	listener net.Listener

	mu   sync.Mutex
	open map[net.Conn]bool
}

func open(t testing.TB, pod *netns.Pod, port int) *door {
	t.Helper()
	address := fmt.Sprintf("127.0.0.1:%d", port)
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	d := &door{pod: pod, listener: listener, open: map[net.Conn]bool{}}
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			ended.Go(func() { d.carry(from, address) })
		}
	})
	t.Cleanup(func() { d.shut(); ended.Wait() })
	return d
}

func (d *door) carry(from net.Conn, address string) {
	defer from.Close()
	to, err := d.pod.Dial(context.Background(), "tcp", address)
	if err != nil {
		return
	}
	defer to.Close()
	if !d.note(from, to) {
		return
	}
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		both.Go(func() {
			if _, err := io.Copy(way[1], way[0]); err != nil && !errors.Is(err, net.ErrClosed) {
				_ = way[0].Close()
			}
			_ = way[1].Close()
		})
	}
	both.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.open, from)
	delete(d.open, to)
}

// note notes connections; false: the door is shut.
func (d *door) note(all ...net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range all {
		if d.open == nil {
			return false
		}
		d.open[c] = true
	}
	return true
}

func (d *door) shut() {
	_ = d.listener.Close()
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.open {
		_ = c.Close()
	}
	d.open = nil
}
