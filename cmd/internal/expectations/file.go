package expectations

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
	kubeyaml "sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/internal/strict"
)

// What a file may have at most.
const (
	mostBytes        = 4 << 20
	mostWorkloads    = 1000
	mostExpectations = 10_000
)

// Suffix is that of the names of files with expectations, which may be the whole name.
const Suffix = "expectations.yaml"

// File is one with expectations.
type File struct {
	Config         string `json:"config" doc:"directory with the resources, relative to the file's"`
	MeshConfig     string `json:"meshConfig" doc:"file with the mesh's settings (MeshConfig), relative to the file's directory"`
	NetworksConfig string `json:"networksConfig" doc:"file with the mesh's networks, relative to the file's directory"`
	Plugins        string `json:"plugins" doc:"plugins.yaml to run instead of the built-in set for files"`
	TrustDomain    string `json:"trustDomain" doc:"trust domain of the workloads' identities"`

	Workloads    map[string]*Workload `json:"workloads" required:"true" doc:"proxies, by the names that expectations have for them"`
	Expectations []*Expectation       `json:"expectations" required:"true" doc:"requests, and what is expected of them"`

	// Path of the file, as it was named.
	Path string
}

// Workload is a proxy with what runs beside it.
type Workload struct {
	Type           string            `json:"type" enum:"sidecar,router" doc:"sidecar, or router: a gateway"`
	Namespace      string            `json:"namespace" doc:"its namespace"`
	IP             string            `json:"ip" doc:"its address: endpoints with it are its own; of a control plane that runs it is the proxy's"`
	Labels         map[string]string `json:"labels" doc:"its labels"`
	ServiceAccount string            `json:"serviceAccount" doc:"its service account, which its identity names"`
	ClusterID      string            `json:"clusterID" doc:"the cluster that it is in"`
	Network        string            `json:"network" doc:"the network that it is in"`
	Locality       string            `json:"locality" doc:"REGION/ZONE/SUBZONE"`
	Metadata       json.RawMessage   `json:"metadata" doc:"more metadata of its node"`
}

// Expectation is a request, and what is expected of it.
type Expectation struct {
	Name    string  `json:"name" required:"true" doc:"what it is called in reports"`
	Request Request `json:"request"`
	Expect  Expect  `json:"expect"`

	line int
}

// Request is one that a workload makes, or that comes to a proxy from somebody else.
type Request struct {
	From    string            `json:"from" doc:"the workload that makes it"`
	At      string            `json:"at" doc:"instead of from: the workload at whose proxy it comes in"`
	Method  string            `json:"method" doc:"its method"`
	URL     string            `json:"url" required:"true" doc:"http://HOST[:PORT]/PATH, https://…, or tcp://IP:PORT"`
	Headers map[string]string `json:"headers" doc:"its headers"`
	To      string            `json:"to" doc:"IP:PORT that the client connects to, where that isn't what the URL makes likely"`
	Source  string            `json:"source" doc:"IP or IP:PORT of a client that is no workload of the file"`
	Peer    string            `json:"peer" doc:"with at: the client opens TLS as a sidecar does, and its certificate names this URI"`
	SNI     string            `json:"sni" doc:"the client opens TLS and asks for this server"`
}

// Expect is what is expected: one of To, Refused, Answer and Closed.
type Expect struct {
	To      []Destination `json:"to" doc:"where it goes"`
	Mirrors []Destination `json:"mirrors" doc:"with to: who gets a copy"`
	Timeout string        `json:"timeout" doc:"with to: how long the whole may take, such as 2s; none: without end"`
	Retries *int          `json:"retries" doc:"with to: how often it is tried again at most"`
	Refused *Refused      `json:"refused" doc:"an authorization policy refuses it"`
	Answer  *Answer       `json:"answer" doc:"a proxy answers it"`
	Closed  bool          `json:"closed" doc:"a proxy closes the connection"`
}

// Destination is where a request goes. What is empty is not looked at.
type Destination struct {
	Host      string            `json:"host" doc:"host of the service, as a VirtualService's destination has it"`
	Subset    *string           `json:"subset" doc:"the subset; an empty text: none"`
	Port      int               `json:"port" min:"0" max:"65535" doc:"the service's port"`
	Cluster   string            `json:"cluster" doc:"instead of host: the cluster's whole name, such as PassthroughCluster"`
	Percent   *float64          `json:"percent" min:"0" max:"100" doc:"how many of the requests go there"`
	Endpoints []string          `json:"endpoints" doc:"all its addresses, IP:PORT"`
	Path      string            `json:"path" doc:"the path as it arrives there"`
	Authority string            `json:"authority" doc:"the host as it arrives there"`
	Headers   map[string]string `json:"headers" doc:"headers as they arrive there; an empty value: the header doesn't"`
}

// Refused is a refusal.
type Refused struct {
	Policy string `json:"policy" doc:"NAMESPACE/NAME of the policy that denies it, or of one that could allow it and does not"`
	By     string `json:"by" doc:"the workload whose proxy refuses it"`
}

// Answer is a proxy's own. What is empty is not looked at.
type Answer struct {
	Status   int               `json:"status" min:"0" max:"599" doc:"its status"`
	Location string            `json:"location" doc:"where it redirects to"`
	Body     string            `json:"body" doc:"its body"`
	Headers  map[string]string `json:"headers" doc:"its headers"`
	By       string            `json:"by" doc:"the workload whose proxy answers"`
}

// Find returns the files with expectations in a directory, in order; of a file itself, that one.
func Find(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), Suffix) && !e.IsDir() {
			found = append(found, filepath.Join(path, e.Name()))
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s has no file that is named %s, or ends so", path, Suffix)
	}
	return found, nil
}

// Read reads a file. An error has its place in it.
func Read(path string) (*File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > mostBytes {
		return nil, fmt.Errorf("%s has %d bytes, more than %d", path, info.Size(), mostBytes)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f.Path = path
	return f, nil
}

func parse(text []byte) (*File, error) {
	inner, err := kubeyaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, err
	}
	f := &File{Config: "config", TrustDomain: "cluster.local"}
	if err := strict.Decode(inner, f); err != nil {
		return nil, err
	}
	if len(f.Workloads) > mostWorkloads || len(f.Expectations) > mostExpectations {
		return nil, fmt.Errorf("it has %d workloads and %d expectations; it may have %d and %d",
			len(f.Workloads), len(f.Expectations), mostWorkloads, mostExpectations)
	}
	var places struct{ Expectations []yaml.Node }
	if err := yaml.Unmarshal(text, &places); err != nil {
		return nil, err
	}
	for i, e := range f.Expectations {
		if e == nil {
			return nil, fmt.Errorf("expectations[%d] is empty", i)
		}
		e.line = places.Expectations[i].Line
	}
	return f, f.check()
}

// beside is a path that the file has relative to its own directory; empty stays so.
func (f *File) beside(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(f.Path), path)
}
