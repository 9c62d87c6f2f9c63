package simulator

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// host is an endpoint as JSON.
func host(port int, more string) string {
	return fmt.Sprintf(`{"endpoint": {"address": {"socketAddress": {"address": "10.0.0.1", "portValue": %d}}}%s}`, port, more)
}

func TestBalance(t *testing.T) {
	const down, heavy = `, "healthStatus": "UNHEALTHY"`, `, "loadBalancingWeight": 3`
	of := func(more string, hosts ...string) string {
		return `{"lbEndpoints": [` + strings.Join(hosts, ",") + `]` + more + `}`
	}
	v1, v2 := `, "metadata": {"filterMetadata": {"envoy.lb": {"version": "v1"}}}`, `, "metadata": {"filterMetadata": {"envoy.lb": {"version": "v2"}}}`
	const subsets = `"lbSubsetConfig": {"subsetSelectors": [{"keys": ["version"]}]}`
	for name, c := range map[string]struct {
		cluster string
		places  []string
		subset  string
		want    string
	}{
		"all the same":        {``, []string{of("", host(1, ""), host(2, ""))}, "", "1: 50, 2: 50"},
		"weights":             {``, []string{of("", host(1, heavy), host(2, ""))}, "", "1: 75, 2: 25"},
		"one is down":         {``, []string{of("", host(1, down), host(2, ""))}, "", "2: 100"},
		"the first priority":  {``, []string{of("", host(1, "")), of(`, "priority": 1`, host(2, ""))}, "", "1: 100"},
		"the second priority": {``, []string{of("", host(1, down)), of(`, "priority": 1`, host(2, ""))}, "", "2: 100"},
		"some of both":        {``, []string{of("", host(1, ""), host(2, down)), of(`, "priority": 1`, host(3, ""))}, "", "1: 70, 3: 30"},
		"all are down":        {`"commonLbConfig": {"healthyPanicThreshold": {"value": 0}}`, []string{of("", host(1, down))}, "", noHealthy},
		"all are down, panic": {``, []string{of("", host(1, down), host(2, down))}, "", "1: 50, 2: 50"},
		"nobody":              {``, nil, "", noEndpoints},
		"places that weigh": {
			`"commonLbConfig": {"localityWeightedLbConfig": {}}`,
			[]string{of(`, "loadBalancingWeight": 30`, host(1, "")), of(`, "loadBalancingWeight": 70`, host(2, ""))},
			"", "1: 30, 2: 70",
		},
		"places that don't": {
			``,
			[]string{of(`, "loadBalancingWeight": 30`, host(1, "")), of(`, "loadBalancingWeight": 70`, host(2, ""))},
			"", "1: 50, 2: 50",
		},
		"a subset":       {subsets, []string{of("", host(1, v1), host(2, v2))}, `{"version": "v2"}`, "2: 100"},
		"no such subset": {subsets, []string{of("", host(1, v1))}, `{"version": "v3"}`, noSubset},
		"no such subset, anyone": {
			`"lbSubsetConfig": {"fallbackPolicy": "ANY_ENDPOINT", "subsetSelectors": [{"keys": ["version"]}]}`,
			[]string{of("", host(1, v1))}, `{"version": "v3"}`, "1: 100",
		},
		"no subset, the default": {
			`"lbSubsetConfig": {"fallbackPolicy": "DEFAULT_SUBSET", "defaultSubset": {"version": "v1"}, "subsetSelectors": [{"keys": ["version"]}]}`,
			[]string{of("", host(1, v1), host(2, v2))}, "", "1: 100",
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv3.Cluster{}
			more := c.cluster
			if more != "" {
				more = ", " + more
			}
			text := `{"name": "c", "type": "STATIC", "loadAssignment": {"clusterName": "c", "endpoints": [` + strings.Join(c.places, ",") + `]}` + more + `}`
			if err := protojson.Unmarshal([]byte(text), cluster); err != nil {
				t.Fatal(err)
			}
			var want *corev3.Metadata
			if c.subset != "" {
				want = &corev3.Metadata{}
				if err := protojson.Unmarshal([]byte(`{"filterMetadata": {"envoy.lb": `+c.subset+`}}`), want); err != nil {
					t.Fatal(err)
				}
			}
			w := &walk{Config: &Config{Clusters: []*clusterv3.Cluster{cluster}}, out: &Outcome{}}
			s := w.share("c", 100, want)
			got := s.Fault
			for i, e := range s.Endpoints {
				got += map[bool]string{true: ", "}[i > 0] + fmt.Sprintf("%s: %.0f", strings.TrimPrefix(e.Address, "10.0.0.1:"), e.Percent)
			}
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
