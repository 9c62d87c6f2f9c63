package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"istio.io/api/annotation"
	corev1 "k8s.io/api/core/v1"
)

// Keys of annotations about metrics, as Prometheus spells them: what is no letter or digit is _.
const (
	scrapeKey  = "prometheus_io_scrape"
	portKey    = "prometheus_io_port"
	pathKey    = "prometheus_io_path"
	targetsKey = "prometheus_istio_io_scrape_targets"
	secureKey  = "prometheus_istio_io_secure_port"
)

// reserved are ports of agent and proxy, which are no workload's.
var reserved = []int{15000, 15001, 15004, 15006, 15008, 15020, 15021, 15053, 15090}

// target is one of several places where a workload has metrics.
type target struct {
	Port string `json:"port"`
	Path string `json:"path"`
}

// scraping tells the agent where the workload's metrics are.
type scraping struct {
	Scrape  string   `json:"scrape"`
	Path    string   `json:"path"`
	Port    string   `json:"port"`
	Targets []target `json:"targets,omitempty"`
}

func spelled(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
}

// scraped returns the annotation of a key, however it is spelled.
func scraped(pod *corev1.Pod, key string) (value string, ok bool) {
	for _, name := range slices.Sorted(maps.Keys(pod.Annotations)) {
		if spelled(name) == key {
			return pod.Annotations[name], true
		}
	}
	return "", false
}

func unscrape(pod *corev1.Pod) {
	maps.DeleteFunc(pod.Annotations, func(name, _ string) bool {
		return slices.Contains([]string{scrapeKey, portKey, pathKey, targetsKey}, spelled(name))
	})
}

// merges reports whether the workload's metrics are to be had from the agent, besides the proxy's.
func (i *injection) merges() bool {
	if text, ok := scraped(i.pod, scrapeKey); ok {
		if yes, err := strconv.ParseBool(text); err == nil && !yes {
			return false
		}
	}
	if yes, err := strconv.ParseBool(i.pod.Annotations[annotation.PrometheusMergeMetrics.Name]); err == nil {
		return yes
	}
	return i.Mesh.GetEnablePrometheusMerge() == nil || i.Mesh.GetEnablePrometheusMerge().Value
}

// metrics has the agent asked for metrics in the workload's place.
func (i *injection) metrics() error {
	own := strconv.Itoa(int(i.statusPort()))
	if port, ok := scraped(i.pod, portKey); !i.merges() || ok && port == own {
		return nil
	}
	s := scraping{}
	s.Scrape, _ = scraped(i.pod, scrapeKey)
	s.Path, _ = scraped(i.pod, pathKey)
	s.Port, _ = scraped(i.pod, portKey)
	if text, ok := scraped(i.pod, targetsKey); ok {
		s.Targets = targets(text)
	}
	check := []string{s.Port}
	if len(s.Targets) > 0 {
		check, s.Port, s.Path = nil, s.Targets[0].Port, s.Targets[0].Path
		for _, t := range s.Targets {
			check = append(check, t.Port)
		}
	}
	for _, port := range check {
		if err := scrapable(port, i.statusPort()); err != nil {
			return err
		}
	}
	if proxy := proxyOf(i.pod); proxy != nil && (s.Scrape != "" || s.Path != "" || s.Port != "" || s.Targets != nil) {
		text, err := json.Marshal(s)
		if err != nil {
			return err
		}
		proxy.Env = append(proxy.Env, corev1.EnvVar{Name: "ISTIO_PROMETHEUS_ANNOTATIONS", Value: string(text)})
	}
	unscrape(i.pod)
	i.note("prometheus.io/port", own)
	i.note("prometheus.io/path", "/stats/prometheus")
	i.note("prometheus.io/scrape", "true")
	return nil
}

// targets reads PORT[:PATH], with commas between them; nil if one has no port.
func targets(text string) (all []target) {
	for entry := range strings.SplitSeq(text, ",") {
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		port, path, _ := strings.Cut(entry, ":")
		t := target{Port: strings.TrimSpace(port), Path: strings.TrimSpace(path)}
		if t.Port == "" {
			return nil
		}
		if t.Path == "" {
			t.Path = "/metrics"
		}
		all = append(all, t)
	}
	return all
}

// scrapable says what is wrong with a port of metrics; an empty one is none.
func scrapable(port string, agent int32) error {
	if port == "" {
		return nil
	}
	n, err := strconv.Atoi(port)
	switch {
	case err != nil || n < 1 || n > 65535:
		return fmt.Errorf("metrics: %q is no port", port)
	case n == int(agent) || slices.Contains(reserved, n):
		return fmt.Errorf("metrics: port %d is the agent's or the proxy's own, and has no metrics of the workload", n)
	}
	return nil
}

// secured says on which port the proxy has metrics by TLS.
func (i *injection) secured() {
	proxy := proxyOf(i.pod)
	if _, ok := scraped(i.pod, secureKey); ok || proxy == nil {
		return
	}
	for _, e := range proxy.Env {
		if e.Name == "ENVOY_SECURE_MERGED_METRICS_PORT" && e.Value != "" && e.Value != "0" {
			i.note("prometheus.istio.io/secure-port", e.Value)
			return
		}
	}
}
