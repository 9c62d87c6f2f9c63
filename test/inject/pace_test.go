package inject

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/test/bench/usage"
	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/need"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
	"github.com/coxswain-mesh/coxswain/test/kube"
)

var (
	pace    = flag.Duration("pace", 2*time.Second, "how long both are asked, in a round")
	rounds  = flag.Int("pace-rounds", 1, "how often both take turns")
	pods    = flag.Int("pods", 200, "how many pods there are in a second")
	objects = flag.Int("objects", 20, "how many objects are to be validated in a second")
)

// keptAlive is how many connections an API server keeps to a webhook that has nothing to do: it
// speaks HTTP/1.1 with webhooks.
const keptAlive = 25

// TestPace: a living istiod and ours answer each review; then both are asked about so many pods and
// objects a second, in turns, by HTTPS, whether they answer or not; how long answers take, and the
// CPU of each, is logged (make bench-webhooks).
func TestPace(t *testing.T) {
	need.All(t)
	of := load{pods: podBodies(t), objects: objectBodies(t)}
	c := kube.Start(t)
	c.Apply(t, kube.Definitions(t))
	c.Kubectl(t, "wait", "--for", "condition=Established", "crd", "--all", "--timeout", "60s")
	usual := settings[0]
	nodes(t, c, usual.kubelets)
	c.Apply(t, system+"---\n"+shop+"---\n"+usual.render(t))
	servers := []server{paceIstiod(t, c), paceOurs(t, c)}
	for i := range servers {
		servers[i].client = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
			TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, MaxIdleConnsPerHost: keptAlive,
		}}
		defer servers[i].client.CloseIdleConnections()
		servers[i].warm(t, of)
	}
	for range *rounds {
		for _, s := range servers {
			t.Log(s.measure(t, of))
		}
		slices.Reverse(servers)
	}
}

// load are bodies of reviews.
type load struct{ pods, objects []question }

// question is a review and where it goes to.
type question struct {
	path string
	body []byte
}

// server is a control plane that answers reviews.
type server struct {
	name, url string
	pid       int
	client    *http.Client
}

func podBodies(t *testing.T) (all []question) {
	for _, r := range reviews(t) {
		all = append(all, question{"/inject" + r.path, r.body(t)})
	}
	return all
}

// objectBodies are reviews of Istio's own examples of resources, good and bad.
func objectBodies(t *testing.T) (all []question) {
	files, _ := filepath.Glob(filepath.Join(os.Getenv("COXSWAIN_SHARED"), "fixtures/crd-validation/*.yaml"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range bytes.Split(text, []byte("\n---")) {
			var o map[string]any
			if yaml.Unmarshal(document, &o) != nil || o["kind"] == nil {
				continue
			}
			delete(o, "_err")
			body, err := json.Marshal(map[string]any{
				"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
				"request": map[string]any{"uid": "1df28fbd-5f5f-11e8-bc74-36e6bb280816", "operation": "CREATE",
					"namespace": "shop", "object": o},
			})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, question{"/validate", body})
		}
	}
	if len(all) < 50 {
		need.Missing(t, "Istio's examples of resources (COXSWAIN_SHARED/fixtures/crd-validation)")
	}
	return all
}

// paceIstiod starts istiod with webhooks over TLS, by a certificate of its own CA.
func paceIstiod(t *testing.T, c *kube.Cluster) server {
	t.Helper()
	address := wait.Address(t)
	istiod := kube.StartIstiodWith(t, c, []string{"--httpsAddr", address, "--secureGRPCAddr", wait.Address(t)},
		"ISTIOD_CUSTOM_HOST=localhost", "ENABLE_CA_SERVER=true", "PILOT_CERT_PROVIDER=istiod")
	return server{name: "istiod", url: "https://" + address, pid: istiod.PID()}
}

func paceOurs(t *testing.T, c *kube.Cluster) server {
	t.Helper()
	address := wait.Address(t)
	p := mesh.Start(t, binary, "", "--registries", "Kubernetes", "--kubeconfig", c.Kubeconfig, "--httpsAddr",
		address, "--istiodCustomHost", "localhost")
	p.Ready(t)
	return server{name: "coxswain", url: "https://" + address, pid: p.PID()}
}

// warm asks everything once.
func (s server) warm(t *testing.T, of load) {
	t.Helper()
	wait.For(t, s.name+" answers", func() error { return s.ask(of.pods[0]) })
	for _, q := range slices.Concat(of.pods, of.objects) {
		if err := s.ask(q); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
	}
}

// ask asks once; an answer that allows nothing is one, too.
func (s server) ask(q question) error {
	said, err := s.client.Post(s.url+q.path+"?timeout=10s", "application/json", bytes.NewReader(q.body))
	if err != nil {
		return err
	}
	defer func() { _ = said.Body.Close() }()
	text, err := io.ReadAll(said.Body)
	if err == nil && (said.StatusCode != http.StatusOK || !bytes.Contains(text, []byte(`"allowed":`))) {
		err = fmt.Errorf("%s: %.300s", said.Status, text)
	}
	return err
}

// measure asks at a pace, and says how long answers took, counted from when each question was due.
func (s server) measure(t *testing.T, of load) string {
	t.Helper()
	var (
		mu     sync.Mutex
		took   = map[string][]time.Duration{}
		failed []error
		asking sync.WaitGroup
	)
	chance := rand.New(rand.NewPCG(1, 2)) // both are asked the same
	rate := *pods + *objects
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	began, before := time.Now(), usage.CPU(s.pid)
	for n, all := 0, int(pace.Seconds()*float64(rate)); n < all; <-ticker.C {
		for ; n < all; n++ {
			due := began.Add(time.Duration(n) * time.Second / time.Duration(rate))
			if time.Now().Before(due) {
				break
			}
			what, list := "pods", of.pods
			if n*(*objects)%rate < *objects {
				what, list = "objects", of.objects
			}
			q := list[chance.IntN(len(list))]
			asking.Go(func() {
				err := s.ask(q)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					failed = append(failed, err)
					return
				}
				took[what] = append(took[what], time.Since(due))
			})
		}
	}
	asking.Wait()
	cpu, whole := usage.CPU(s.pid)-before, time.Since(began)
	each := 1000 * cpu / float64(len(took["pods"])+len(took["objects"]))
	text := fmt.Sprintf("%-8s  %.1f s of CPU in %.0f s, %.2f ms a review that is answered", s.name, cpu,
		whole.Seconds(), each)
	if len(failed) > 0 {
		text += fmt.Sprintf("; %d are not, the first: %v", len(failed), failed[0])
	}
	for _, what := range []string{"pods", "objects"} {
		of := took[what]
		if len(of) == 0 {
			continue
		}
		slices.Sort(of)
		part := func(p float64) string { return of[int(p*float64(len(of)-1))].Round(100 * time.Microsecond).String() }
		text += fmt.Sprintf("; %d %s: p50 %s, p90 %s, p99 %s, the longest %s", len(of), what, part(0.5), part(0.9),
			part(0.99), part(1))
	}
	return text
}
