// Package agent starts Istio's own pilot-agent, unpatched, for tests: what it can't do with us, we
// don't have.
package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/test/kit/envoy"
	"github.com/coxswain-mesh/coxswain/test/kit/page"
	"github.com/coxswain-mesh/coxswain/test/kit/program"
	"github.com/coxswain-mesh/coxswain/test/kit/wait"
)

// Agent is Istio's pilot-agent, unpatched, with a stock Envoy that it runs.
type Agent struct {
	*program.Process
	dir string
	// Admin is Envoy's.
	Admin string
}

// Workload is who an agent is for.
type Workload struct {
	// Name is the pod's, IP its address.
	Name, Namespace, IP, Account string
	Labels                       map[string]string
	// Token is shown to the control plane, at Discovery, which is believed by Roots in PEM.
	Token, Discovery string
	Roots            []byte
	// Env is added to the agent's environment.
	Env []string
	// Mesh is the file of the mesh's settings that a machine has; nil: there is none.
	Mesh []byte
}

// Port is an address's.
func Port(address string) int {
	_, text, _ := net.SplitHostPort(address)
	n, _ := strconv.Atoi(text)
	return n
}

// Start starts one. It ends, with its Envoy, with the test.
func Start(t testing.TB, of Workload) *Agent {
	t.Helper()
	bin := program.Built(t, "test/peer", "peer", "pilot-agent")
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "istio.io/istio")
	list.Dir = "../peer"
	module, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	a := &Agent{dir: t.TempDir(), Admin: wait.Address(t)}
	secrets := filepath.Join(a.dir, "var/run/secrets")
	for path, text := range map[string][]byte{"tokens/istio-token": []byte(of.Token), "istio/root-cert.pem": of.Roots} {
		path = filepath.Join(secrets, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, text, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if of.Mesh != nil {
		path := filepath.Join(a.dir, "etc/istio/config/mesh")
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, of.Mesh, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	config, err := json.Marshal(map[string]any{
		"discoveryAddress": "localhost:" + strconv.Itoa(Port(of.Discovery)), "binaryPath": envoy.Binary(t), "configPath": "./etc/istio/proxy",
		"proxyBootstrapTemplatePath": filepath.Join(strings.TrimSpace(string(module)), "tools/packaging/common/envoy_bootstrap.json"),
		"statusPort":                 Port(wait.Address(t)), "proxyAdminPort": Port(a.Admin),
	})
	if err != nil {
		t.Fatal(err)
	}
	labels, err := json.Marshal(of.Labels)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(bin, "pilot-agent"), "proxy", "sidecar", "--domain",
		of.Namespace+".svc.cluster.local", "--proxyLogLevel=warning", "--log_output_level=default:info")
	cmd.Dir = a.dir
	cmd.Env = append(os.Environ(), "PROXY_CONFIG="+string(config), "POD_NAME="+of.Name,
		"POD_NAMESPACE="+of.Namespace, "INSTANCE_IP="+of.IP, "SERVICE_ACCOUNT="+of.Account,
		"ISTIO_META_CLUSTER_ID=Kubernetes", "TRUST_DOMAIN=cluster.local", "ISTIO_METAJSON_LABELS="+string(labels),
		"ENVOY_STATUS_PORT="+strconv.Itoa(Port(wait.Address(t))),
		"ENVOY_PROMETHEUS_PORT="+strconv.Itoa(Port(wait.Address(t))), "EXIT_ON_ZERO_ACTIVE_CONNECTIONS=true")
	cmd.Env = append(cmd.Env, of.Env...)
	a.Process = program.Start(t, cmd)
	t.Cleanup(func() { // its Envoy would outlive an agent that is killed
		if r, err := http.Post("http://"+a.Admin+"/quitquitquit", "", nil); err == nil {
			_ = r.Body.Close()
		}
	})
	return a
}

// Certificate is one that Envoy has, as /certs shows it.
type Certificate struct {
	Serial string `json:"serial_number"`
	Names  []struct {
		URI string `json:"uri"`
	} `json:"subject_alt_names"`
}

// Certificates are those that Envoy has of its own, and the authorities that it believes.
func (a *Agent) Certificates() (own, believed []Certificate, err error) {
	text, err := page.Get(a.Admin, "/certs")
	if err != nil {
		return nil, nil, err
	}
	var all struct {
		Certificates []struct {
			CA    []Certificate `json:"ca_cert"`
			Chain []Certificate `json:"cert_chain"`
		}
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, nil, err
	}
	for _, c := range all.Certificates {
		own, believed = append(own, c.Chain...), append(believed, c.CA...)
	}
	return own, believed, nil
}

// Is waits until all of Envoy's own certificates are of an identity, and returns the serial number
// of the first.
func (a *Agent) Is(t testing.TB, identity, other string) (serial string) {
	t.Helper()
	wait.For(t, "its Envoy has a certificate of "+identity, func() error {
		own, _, err := a.Certificates()
		switch {
		case !a.Runs():
			t.Fatalf("the agent has ended: %s", a.Last())
		case err != nil:
			return err
		case len(own) == 0:
			return errors.New("it has none")
		}
		for _, c := range own {
			if len(c.Names) != 1 || c.Names[0].URI != identity || c.Serial == other {
				return fmt.Errorf("it has one of %v, number %s", c.Names, c.Serial)
			}
		}
		serial = own[0].Serial
		return nil
	})
	return serial
}
