package node

import (
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
	meshv1 "istio.io/api/mesh/v1alpha1"
)

// Certificates are paths of files.
type Certificates struct{ Chain, Key, Root string }

func certificates(f map[string]*structpb.Value, side string) Certificates {
	return Certificates{
		Chain: f["TLS_"+side+"_CERT_CHAIN"].GetStringValue(),
		Key:   f["TLS_"+side+"_KEY"].GetStringValue(),
		Root:  f["TLS_"+side+"_ROOT_CERT"].GetStringValue(),
	}
}

// proxyConfig reads a ProxyConfig; nil where there is none, or where it can't be read.
func proxyConfig(v *structpb.Value) *meshv1.ProxyConfig {
	s := v.GetStructValue()
	if s == nil {
		return nil
	}
	text, err := protojson.Marshal(s)
	if err != nil {
		return nil
	}
	out := &meshv1.ProxyConfig{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(text, out); err != nil {
		return nil
	}
	return out
}

func duration(v *structpb.Value) time.Duration {
	d, err := time.ParseDuration(v.GetStringValue())
	if err != nil || d < 0 {
		return 0
	}
	return d
}
