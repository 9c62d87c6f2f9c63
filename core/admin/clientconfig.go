package admin

import (
	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/core/xds"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// syncz answers with what proxies have acknowledged of the types that Envoys know, as CSDS does.
// Streams that asked for none of them are no proxies.
func (q *Questions) syncz(who asker) ([]*view.Body, error) {
	var out []*view.Body
	for _, s := range q.Clients() {
		c := clientConfig(s, q.Tools.Metadata)
		if c == nil || !who.sees(q.Naming.NamespaceOf(s.Client)) {
			continue
		}
		body, err := proto.MarshalOptions{Deterministic: true}.Marshal(c)
		if err != nil {
			return nil, err
		}
		out = append(out, view.NewBody(prefix+"envoy.service.status.v3.ClientConfig", s.Node, body, 0))
	}
	return out, nil
}

// clientConfig is what is known of a proxy, with these keys of its metadata; nil for what is none.
func clientConfig(s xds.StreamStatus, keys []string) *statusv3.ClientConfig {
	c := &statusv3.ClientConfig{Node: &corev3.Node{Id: s.Node, Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{}}}}
	for _, key := range keys {
		if v := s.Client.GetMetadata().GetFields()[key]; v != nil {
			c.Node.Metadata.Fields[key] = v
		}
	}
	found := false
	for _, name := range []string{"lds", "rds", "eds", "cds", "ecds"} {
		x := &statusv3.ClientConfig_GenericXdsConfig{TypeUrl: typeURL(name), ConfigStatus: statusv3.ConfigStatus_NOT_SENT}
		for _, t := range s.Types {
			if t.Type == x.TypeUrl {
				found = true
				x.ConfigStatus, x.VersionInfo = synced(t), t.AckedVersion
			}
		}
		c.GenericXdsConfigs = append(c.GenericXdsConfigs, x)
	}
	if !found {
		return nil
	}
	return c
}

// synced says how far a proxy is with a type.
func synced(t xds.TypeStatus) statusv3.ConfigStatus {
	switch {
	case t.Sent == "":
		return statusv3.ConfigStatus_NOT_SENT
	case t.Refused != "":
		return statusv3.ConfigStatus_ERROR
	case t.Sent == t.Acked:
		return statusv3.ConfigStatus_SYNCED
	}
	return statusv3.ConfigStatus_STALE
}
