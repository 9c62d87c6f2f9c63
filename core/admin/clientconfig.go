package admin

import (
	"cmp"
	"slices"

	"github.com/coxswain-mesh/coxswain/core/view"
	"github.com/coxswain-mesh/coxswain/core/xds"
	adminv3 "github.com/envoyproxy/go-control-plane/envoy/admin/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	statusv3 "github.com/envoyproxy/go-control-plane/envoy/service/status/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// clients answers with what proxies, by their short names, have acknowledged of the types that they
// ask for, as CSDS does. Streams that asked for none that Envoys know are no proxies.
func (q *Questions) clients(who asker) ([]*view.Body, error) {
	var out []*view.Body
	for _, s := range q.server.cfg.Source.Streamed() {
		c := clientConfig(s, q.tools.Metadata)
		if short := q.naming.Short; c != nil && short != nil {
			c.Node.Id = cmp.Or(short(s.Client), s.Node)
		}
		if c == nil || !q.server.cfg.shown(who, s) {
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

// envoys are the types by which a stream is an Envoy's: it asks for one of them.
var envoys = []string{"lds", "rds", "eds", "cds", "ecds"}

// clientConfig is what is known of a proxy, with these keys of its metadata: how far it is with
// each type that it asks for, when it was sent, and why it was refused; nil for what is none.
func clientConfig(s xds.StreamStatus, keys []string) *statusv3.ClientConfig {
	c := &statusv3.ClientConfig{Node: &corev3.Node{Id: s.Node, Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{}}}}
	for _, key := range keys {
		if v := s.Client.GetMetadata().GetFields()[key]; v != nil {
			c.Node.Metadata.Fields[key] = v
		}
	}
	known := false
	for _, t := range s.Types {
		known = known || slices.ContainsFunc(envoys, func(name string) bool { return t.Type == typeURL(name) })
		is := &statusv3.ClientConfig_GenericXdsConfig{TypeUrl: t.Type, ConfigStatus: synced(t), VersionInfo: t.AckedVersion}
		if !t.SentAt.IsZero() {
			is.LastUpdated = timestamppb.New(t.SentAt)
		}
		if t.Refused != "" {
			is.ErrorState = &adminv3.UpdateFailureState{LastUpdateAttempt: is.LastUpdated, Details: t.Refused, VersionInfo: t.SentVersion}
		}
		c.GenericXdsConfigs = append(c.GenericXdsConfigs, is)
	}
	if !known {
		return nil
	}
	slices.SortFunc(c.GenericXdsConfigs, func(a, b *statusv3.ClientConfig_GenericXdsConfig) int { return cmp.Compare(a.TypeUrl, b.TypeUrl) })
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
