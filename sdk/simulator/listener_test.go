package simulator

import (
	"encoding/json"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
)

// fields are the values of a JSON object.
func fields(t *testing.T, text string) map[string]json.RawMessage {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// listeners of a sidecar: what is intercepted comes to virtualOutbound, which hands it on.
const sidecar = `{
  "virtualOutbound": {"address": {"socketAddress": {"address": "0.0.0.0", "portValue": 15001}}, "useOriginalDst": true},
  "virtualInbound": {"address": {"socketAddress": {"address": "0.0.0.0", "portValue": 15006}}, "listenerFilters": [{"name": "envoy.filters.listener.original_dst"}]},
  "service": {"address": {"socketAddress": {"address": "10.96.0.10", "portValue": 80}}, "bindToPort": false},
  "all80": {"address": {"socketAddress": {"address": "0.0.0.0", "portValue": 80}}, "bindToPort": false},
  "all90": {"address": {"socketAddress": {"address": "::", "portValue": 90, "ipv4Compat": true}}, "bindToPort": false},
  "six": {"address": {"socketAddress": {"address": "::", "portValue": 91}}, "bindToPort": false},
  "more": {"address": {"socketAddress": {"address": "10.96.0.20", "portValue": 95}}, "additionalAddresses": [{"address": {"socketAddress": {"address": "10.96.0.21", "portValue": 95}}}], "bindToPort": false},
  "port": {"address": {"socketAddress": {"address": "10.1.1.1", "portValue": 8080}}}
}`

func TestListeners(t *testing.T) {
	c := &Config{}
	for name, text := range fields(t, sidecar) {
		l := &listenerv3.Listener{}
		if err := protojson.Unmarshal(text, l); err != nil {
			t.Fatal(err)
		}
		l.Name = name
		c.Listeners = append(c.Listeners, l)
	}
	for name, want := range map[string]struct {
		at          string
		intercepted uint16
		want        string
	}{
		"the service's address":                {"10.96.0.10:80", 15001, "service"},
		"another one with the same port":       {"10.96.0.11:80", 15001, "all80"},
		"all addresses, of IPv4 too":           {"10.96.0.11:90", 15001, "all90"},
		"all addresses, but not of IPv4":       {"10.96.0.11:91", 15001, "virtualOutbound"},
		"a further address":                    {"10.96.0.21:95", 15001, "more"},
		"nobody's":                             {"10.96.0.11:99", 15001, "virtualOutbound"},
		"inbound stays, though others have it": {"10.96.0.10:80", 15006, "virtualInbound"},
		"one that has a socket":                {"10.1.1.1:8080", 0, "port"},
		"one that has none":                    {"10.96.0.10:80", 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := c.Walk(Connection{Source: addr("10.1.2.3:40000"), Destination: addr(want.at), Intercepted: want.intercepted}, nil)
			if o.Way.Listener != want.want {
				t.Errorf("listener %q, want %q: %s", o.Way.Listener, want.want, o)
			}
		})
	}
}
