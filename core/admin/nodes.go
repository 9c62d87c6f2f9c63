package admin

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/coxswain-mesh/coxswain/core/mask"
	"github.com/coxswain-mesh/coxswain/sdk/redact"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// Node is a connected client's.
type Node struct {
	// Node is an envoy.config.core.v3.Node as JSON, without its extensions, and without what its
	// metadata names as secret.
	Node json.RawMessage `json:"node"`
	// Extensions is which list of the page it has; empty: none.
	Extensions string `json:"extensions,omitempty"`
	// Subscribes has the names that it subscribes to, by type URL; * means all.
	Subscribes map[string][]string `json:"subscribes"`
}

// Nodes are the clients, and the names of the extensions that they know: long lists, which many
// have in common.
type Nodes struct {
	Extensions map[string][]string `json:"extensions,omitempty"`
	Proxies    []Node              `json:"proxies"`
}

// extensions notes the names of a node's extensions, and returns which list they are.
func (n *Nodes) extensions(of *corev3.Node) string {
	if len(of.GetExtensions()) == 0 {
		return ""
	}
	var names []string
	for _, e := range of.Extensions {
		names = append(names, e.Name)
	}
	slices.Sort(names)
	sum := sha256.Sum256([]byte(strings.Join(names, "\n")))
	const enough = 6 // bytes, to tell a few lists apart
	id := hex.EncodeToString(sum[:enough])
	n.Extensions[id] = names
	return id
}

// nodes returns the page of the nodes of connected clients in order of their ids, each once, with
// what all of its streams subscribe to.
func nodes(source Source) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		type client struct{ id, node, extensions string }
		page := &Nodes{Extensions: map[string][]string{}, Proxies: []Node{}}
		all := map[client]map[string]map[string]bool{}
		for _, st := range source.Streamed() {
			text, err := nodeJSON(st.Client)
			if err != nil {
				http.Error(w, st.Node+": "+err.Error(), http.StatusInternalServerError)
				return
			}
			at := client{st.Node, string(text), page.extensions(st.Client)}
			for _, t := range st.Types {
				if !t.Wildcard && len(st.Names[t.Type]) == 0 {
					continue // it has ended that
				}
				if all[at] == nil {
					all[at] = map[string]map[string]bool{}
				}
				if all[at][t.Type] == nil {
					all[at][t.Type] = map[string]bool{}
				}
				if t.Wildcard {
					all[at][t.Type]["*"] = true
				}
				for _, name := range st.Names[t.Type] {
					all[at][t.Type][name] = true
				}
			}
		}
		order := slices.SortedFunc(maps.Keys(all), func(a, b client) int {
			return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.node, b.node), cmp.Compare(a.extensions, b.extensions))
		})
		for _, c := range order {
			n := Node{Node: json.RawMessage(c.node), Extensions: c.extensions, Subscribes: map[string][]string{}}
			for typeURL, names := range all[c] {
				n.Subscribes[typeURL] = slices.Sorted(maps.Keys(names))
			}
			page.Proxies = append(page.Proxies, n)
		}
		write(w, page)
	}
}

// Served is a resource that is sent.
type Served struct {
	Type string `json:"type"`
	Name string `json:"name"`
	// Value is the encoded message, without what is secret in it; Version is that of the whole one.
	Value   []byte `json:"value"`
	Version string `json:"version"`
	// Masked: something is not in Value.
	Masked bool `json:"masked,omitempty"`
}

// served returns the page of what a proxy is to have.
func served(source Source) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		node := r.URL.Query().Get("proxyID")
		types, ok := source.Dump(node)
		if !ok {
			http.Error(w, fmt.Sprintf("proxy %q is not connected (/debug/nodes lists those that are)", node), http.StatusNotFound)
			return
		}
		all := []Served{}
		for _, t := range types {
			if t.Sensitive {
				continue
			}
			for _, b := range t.Bodies {
				value := redact.Message(t.Type, b.Value())
				all = append(all, Served{t.Type, b.Name(), value, b.Version(), !bytes.Equal(value, b.Value())})
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(all)
	}
}

// nodeJSON is a node as it may be shown, always with the same spaces.
func nodeJSON(n *corev3.Node) ([]byte, error) {
	n, _ = proto.Clone(n).(*corev3.Node)
	if n == nil {
		n = &corev3.Node{}
	}
	n.Extensions = nil
	hide(n.Metadata)
	for _, context := range n.DynamicParameters {
		for key := range context.Params {
			if mask.Telling(key) {
				context.Params[key] = redact.Word
			}
		}
	}
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(n)
	if err != nil {
		return nil, err
	}
	shown := &corev3.Node{}
	if err := proto.Unmarshal(redact.Message(string(n.ProtoReflect().Descriptor().FullName()), value), shown); err != nil {
		return nil, err
	}
	raw, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(shown)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err = json.Compact(&text, raw)
	return text.Bytes(), err
}

// hide takes out of metadata what has a name that says that it is secret, and private keys.
func hide(m *structpb.Struct) {
	for key, v := range m.GetFields() {
		if _, text := v.GetKind().(*structpb.Value_StringValue); text && mask.Telling(key) {
			m.Fields[key] = structpb.NewStringValue(redact.Word)
			continue
		}
		hideIn(v)
	}
}

func hideIn(v *structpb.Value) {
	switch k := v.GetKind().(type) {
	case *structpb.Value_StructValue:
		hide(k.StructValue)
	case *structpb.Value_ListValue:
		for _, v := range k.ListValue.GetValues() {
			hideIn(v)
		}
	case *structpb.Value_StringValue:
		if strings.Contains(k.StringValue, "PRIVATE KEY-----") {
			k.StringValue = redact.Word
		}
	}
}
