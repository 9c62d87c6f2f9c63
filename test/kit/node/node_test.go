package node_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/coxswain-mesh/coxswain/test/kit/node"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

// serves is the first argument of this binary when it is the program of a container: it answers
// requests with the content of the file that their path names, or ends.
const serves = "serve"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == serves {
		serve(os.Args[2])
	}
	node.Main()
	os.Exit(m.Run())
}

func serve(address string) {
	fmt.Println("serving as", os.Getenv("WHO"))
	mux := http.NewServeMux()
	mux.HandleFunc("/crash", func(http.ResponseWriter, *http.Request) { fmt.Println("crashing"); os.Exit(3) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		text, err := os.ReadFile(r.URL.Path)
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		fmt.Println("asked for", r.URL.Path)
		_, _ = w.Write(text)
	})
	fmt.Println(http.ListenAndServe(address, mux)) //nolint:gosec // a test's
	os.Exit(1)
}

const objects = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: words, namespace: shop}
data: {greeting: hello}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      initContainers:
      - name: first
        image: shell
        command: [sh, -c, "test -d /etc/late && echo $GREETING from $(NAME) > /shared/said"]
        env:
        - {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
        - {name: GREETING, valueFrom: {configMapKeyRef: {name: words, key: greeting}}}
        volumeMounts: [{name: shared, mountPath: /shared}, {name: late, mountPath: /etc/late}]
      containers:
      - name: web
        image: example.com/server:v1@sha256:0
        env: [{name: WHO, value: web}]
        ports: [{name: http, containerPort: 80}]
        readinessProbe: {httpGet: {path: /etc/late/key, port: http}}
        volumeMounts: [{name: shared, mountPath: /shared}, {name: late, mountPath: /etc/late}]
      - name: other
        image: shell
        command: [sh, -c, "trap 'echo ends; exit' TERM; echo begins; while :; do sleep 0.1; done"]
        volumeMounts: [{name: shared, mountPath: /var/run/deep/shared}]
      volumes:
      - {name: shared, emptyDir: {}}
      - {name: late, secret: {secretName: late}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80}]}`

// world is a cluster with a machine.
type world struct {
	t       *testing.T
	cluster *kube.Cluster
	node    *node.Node
}

func newWorld(t *testing.T) *world {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, cluster: kube.Start(t)}
	w.cluster.Controllers(t)
	w.node = node.Start(t, w.cluster.Kubeconfig, map[string]node.Image{
		"example.com/server": {Entrypoint: []string{"/bin/server", serves}, Args: []string{":80"}, Files: map[string]string{"/bin/server": self}},
	})
	return w
}

// pod waits until there is one that fits, and returns it.
func (w *world) pod(what string, fits func(*corev1.Pod) bool) (is *corev1.Pod) {
	w.t.Helper()
	wait.For(w.t, what, func() error {
		all, err := w.cluster.Client(w.t).CoreV1().Pods("shop").List(w.t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range all.Items {
			if is = &all.Items[i]; fits(is) {
				return nil
			}
		}
		return fmt.Errorf("none of %d does: %+v", len(all.Items), all.Items)
	})
	return is
}

func ready(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && p.DeletionTimestamp == nil {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func get(t *testing.T, address, path string) (text string) {
	t.Helper()
	wait.For(t, address+" answers", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
		if err != nil {
			return err
		}
		answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
		if err != nil {
			return err
		}
		defer func() { _ = answer.Body.Close() }()
		b, err := io.ReadAll(answer.Body)
		text = string(b)
		return err
	})
	return text
}

func TestMachine(t *testing.T) {
	w := newWorld(t)
	w.cluster.Apply(t, objects)
	w.pod("the pod waits for its Secret", func(p *corev1.Pod) bool {
		return p.Status.PodIP != "" && len(p.Status.InitContainerStatuses) == 1 && p.Status.InitContainerStatuses[0].State.Waiting != nil
	})
	w.cluster.Apply(t, `{apiVersion: v1, kind: Secret, metadata: {name: late, namespace: shop}, stringData: {key: first}}`)
	p := w.pod("the pod is ready", ready)
	if said := get(t, p.Status.PodIP+":80", "/shared/said"); said != "hello from shop\n" {
		t.Errorf("the init container said %q", said)
	}
	w.exec(p)
	w.logs(p)
	w.ports(p)
	w.secret(p)
	w.balanced(p)
	w.forwarded(p)
	w.crash(p)
	w.deleted(w.pod("the pod is ready again", ready))
}

// exec runs programs in both containers, which share a folder and an address.
func (w *world) exec(p *corev1.Pod) {
	w.t.Helper()
	if out := w.cluster.Kubectl(w.t, "exec", "-n", "shop", p.Name, "-c", "other", "--", "cat", "/var/run/deep/shared/said"); out != "hello from shop\n" {
		w.t.Errorf("exec in the other container: %q", out)
	}
	if out := w.cluster.Kubectl(w.t, "exec", "-n", "shop", p.Name, "-c", "web", "--", "hostname"); out != p.Name+"\n" {
		w.t.Errorf("its host name is %q", out)
	}
	out, err := w.kubectl("exec", "-n", "shop", p.Name, "-c", "web", "--", "sh", "-c", "echo wrong >&2; exit 7").CombinedOutput()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != 7 || !strings.Contains(string(out), "wrong") {
		w.t.Errorf("a program that ends with 7: %v: %s", err, out)
	}
	cmd := w.kubectl("exec", "-i", "-n", "shop", p.Name, "-c", "web", "--", "cat")
	cmd.Stdin = strings.NewReader("said to it")
	if out, err := cmd.Output(); err != nil || string(out) != "said to it" {
		w.t.Errorf("what it is told: %q, %v", out, err)
	}
}

func (w *world) kubectl(args ...string) *exec.Cmd {
	return exec.Command(filepath.Join(kube.Programs(w.t), "kubectl"), append([]string{"--kubeconfig", w.cluster.Kubeconfig}, args...)...)
}

// logs are read whole, and since a time.
func (w *world) logs(p *corev1.Pod) {
	w.t.Helper()
	log := func(what string, good func(out string) bool, args ...string) {
		w.t.Helper()
		wait.For(w.t, what, func() error { // what a process writes is read a moment later
			if out := w.cluster.Kubectl(w.t, append([]string{"logs", "-n", "shop", p.Name}, args...)...); !good(out) {
				return fmt.Errorf("it is %q", out)
			}
			return nil
		})
	}
	log("the log is whole", func(out string) bool {
		return strings.HasPrefix(out, "serving as web\n") && strings.Contains(out, "asked for /shared/said\n")
	}, "-c", "web")
	since := time.Now()
	get(w.t, p.Status.PodIP+":80", "/etc/hostname")
	log("the log since a time has the last request alone", func(out string) bool {
		return strings.Contains(out, "asked for /etc/hostname\n") && !strings.Contains(out, "/shared/said")
	}, "-c", "web", "--since-time", since.UTC().Format(time.RFC3339Nano))
	log("the other's log has its last line", func(out string) bool { return out == "begins\n" }, "-c", "other", "--tail", "1")
}

// ports are forwarded.
func (w *world) ports(p *corev1.Pod) {
	w.t.Helper()
	_, port, err := net.SplitHostPort(wait.Address(w.t))
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := w.kubectl("port-forward", "-n", "shop", p.Name, port+":80")
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	for range 2 {
		if name := get(w.t, "127.0.0.1:"+port, "/etc/hostname"); name != p.Name+"\n" {
			w.t.Errorf("by port-forward: %q", name)
		}
	}
}

// secret changes under a pod.
func (w *world) secret(p *corev1.Pod) {
	w.t.Helper()
	w.cluster.Apply(w.t, `{apiVersion: v1, kind: Secret, metadata: {name: late, namespace: shop}, stringData: {key: second}}`)
	wait.For(w.t, "the volume has the new Secret", func() error {
		if text := get(w.t, p.Status.PodIP+":80", "/etc/late/key"); text != "second" {
			return fmt.Errorf("it has %q", text)
		}
		return nil
	})
}

// balanced waits for the Service's address.
func (w *world) balanced(p *corev1.Pod) {
	w.t.Helper()
	w.cluster.Apply(w.t, `
apiVersion: v1
kind: Service
metadata: {name: static, namespace: shop}
spec: {type: LoadBalancer, loadBalancerIP: `+node.Static+`7, selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: foreign, namespace: shop}
spec: {type: LoadBalancer, loadBalancerIP: 192.0.2.1, selector: {app: web}, ports: [{port: 80}]}`)
	for service, want := range map[string]string{"web": p.Status.PodIP, "static": node.Static + "7"} {
		var has string
		wait.For(w.t, service+" has an address", func() error {
			s, err := w.cluster.Client(w.t).CoreV1().Services("shop").Get(w.t.Context(), service, metav1.GetOptions{})
			if err != nil || len(s.Status.LoadBalancer.Ingress) != 1 {
				return fmt.Errorf("%v: %+v", err, s.Status)
			}
			has = s.Status.LoadBalancer.Ingress[0].IP
			return nil
		})
		if has != want {
			w.t.Errorf("%s is at %s, want %s", service, has, want)
		}
		if name := get(w.t, has+":80", "/etc/hostname"); name != p.Name+"\n" {
			w.t.Errorf("at %s is %q", has, name)
		}
	}
	s, err := w.cluster.Client(w.t).CoreV1().Services("shop").Get(w.t.Context(), "foreign", metav1.GetOptions{})
	if err != nil || len(s.Status.LoadBalancer.Ingress) > 0 {
		w.t.Errorf("who asks for an address that isn't there: %v, %+v", err, s.Status)
	}
}

// forwarded dials Services' ClusterIPs: one that has pods, one whose pods are not ready, the API
// server's own, and one that is gone.
func (w *world) forwarded(p *corev1.Pod) {
	w.t.Helper()
	w.node.Forward(w.t, kube.ClusterIPs, w.cluster.Address())
	services := w.cluster.Client(w.t).CoreV1().Services("shop")
	s, err := services.Get(w.t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	at := net.JoinHostPort(s.Spec.ClusterIP, "80")
	if name := get(w.t, at, "/etc/hostname"); name != p.Name+"\n" {
		w.t.Errorf("at the ClusterIP %s is %q", at, name)
	}
	if out := w.cluster.Kubectl(w.t, "exec", "-n", "shop", p.Name, "-c", "web", "--", "bash", "-c",
		"echo -e 'GET /etc/hostname HTTP/1.0\\n' > /dev/tcp/"+s.Spec.ClusterIP+"/80 && echo dialled"); out != "dialled\n" {
		w.t.Errorf("a pod dials it: %q", out)
	}
	refused := func(what, at string) {
		w.t.Helper()
		wait.For(w.t, what, func() error {
			answer, err := http.Get("http://" + at + "/")
			if err != nil {
				return nil
			}
			_ = answer.Body.Close()
			return errors.New(answer.Status)
		})
	}
	w.cluster.Apply(w.t, `{apiVersion: v1, kind: Service, metadata: {name: nobody, namespace: shop}, spec: {clusterIP: `+
		`10.96.7.7, selector: {app: nobody}, ports: [{port: 80, targetPort: http}]}}`)
	refused("nobody is behind a Service", "10.96.7.7:80")
	w.cluster.Apply(w.t, `{apiVersion: v1, kind: Service, metadata: {name: nobody, namespace: shop}, spec: {clusterIP: `+
		`10.96.7.7, selector: {app: web}, ports: [{port: 80, targetPort: http}]}}`)
	if name := get(w.t, "10.96.7.7:80", "/etc/hostname"); name != p.Name+"\n" {
		w.t.Errorf("by a port's name is %q", name)
	}
	w.cluster.Kubectl(w.t, "delete", "service", "-n", "shop", "nobody")
	refused("a Service is gone", "10.96.7.7:80")
	wait.For(w.t, "the API server answers at its ClusterIP", func() error {
		api := http.Client{
			Timeout:   5 * time.Second,
			Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
		}
		answer, err := api.Get("https://10.96.0.1/version")
		if err == nil {
			_ = answer.Body.Close()
		}
		return err
	})
}

// crash ends a container, which starts again.
func (w *world) crash(p *corev1.Pod) {
	w.t.Helper()
	if answer, err := http.Get("http://" + p.Status.PodIP + ":80/crash"); err == nil {
		_ = answer.Body.Close()
	}
	w.pod("the container has started again", func(p *corev1.Pod) bool {
		for _, c := range p.Status.ContainerStatuses {
			if c.Name == "web" && c.RestartCount == 1 && c.LastTerminationState.Terminated != nil {
				return c.LastTerminationState.Terminated.ExitCode == 3
			}
		}
		return false
	})
	if out := w.cluster.Kubectl(w.t, "logs", "-n", "shop", p.Name, "-c", "web", "--previous"); !strings.HasSuffix(out, "crashing\n") {
		w.t.Errorf("the log before: %q", out)
	}
}

// deleted lets a pod end by itself, and nothing of it is left.
func (w *world) deleted(p *corev1.Pod) {
	w.t.Helper()
	follow := w.kubectl("logs", "-n", "shop", p.Name, "-c", "other", "-f")
	out, err := follow.StdoutPipe()
	if err == nil {
		err = follow.Start()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	said := bufio.NewReader(out)
	begins, err := said.ReadString('\n') // it follows now
	if err != nil || begins != "begins\n" {
		w.t.Errorf("the other said %q first: %v", begins, err)
	}
	w.cluster.Kubectl(w.t, "delete", "deployment", "-n", "shop", "web")
	rest, err := io.ReadAll(said)
	if _ = follow.Wait(); err != nil || string(rest) != "ends\n" {
		w.t.Errorf("the other said %q until its end: %v", rest, err)
	}
	w.node.Stopped(w.t)
	wait.For(w.t, "the pod is gone", func() error {
		all, err := w.cluster.Client(w.t).CoreV1().Pods("shop").List(w.t.Context(), metav1.ListOptions{})
		if err != nil || len(all.Items) > 0 {
			return fmt.Errorf("%v: %d are there", err, len(all.Items))
		}
		return nil
	})
	wait.For(w.t, "the pod's devices are gone", func() error { // the kernel takes a namespace apart a moment after its last process
		if out, err := exec.Command("ip", "-brief", "link", "show", "master", "pods").CombinedOutput(); err != nil || len(out) > 0 {
			return fmt.Errorf("%s %v", out, err)
		}
		return nil
	})
}
