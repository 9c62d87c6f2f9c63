package node

import (
	"cmp"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
	meshv1 "istio.io/api/mesh/v1alpha1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/encode"
)

// certificates are where the metadata says; a proxy without an agent has none unless it says where.
func certificates(f map[string]*structpb.Value, side string) encode.Certificates {
	from := encode.Agent
	if truth(f["COXSWAIN_NO_AGENT"]) {
		from = encode.Secrets(cmp.Or(f["COXSWAIN_SECRETS"].GetStringValue(), string(encode.Nowhere)))
	} else if f["file-credential"].GetStringValue() == "true" {
		from = encode.Reader
	}
	out := encode.Certificates{
		From:  from,
		Chain: f["TLS_"+side+"_CERT_CHAIN"].GetStringValue(),
		Key:   f["TLS_"+side+"_KEY"].GetStringValue(),
		Root:  f["TLS_"+side+"_ROOT_CERT"].GetStringValue(),

		Socket: f["credential"].GetStringValue() == "true",
	}
	if side == "CLIENT" && out.Chain == "" {
		out.Root = "" // a client's roots count with its own certificate alone
	}
	return out
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

// duration reads a duration; nil where there is none, or one that Envoy refuses.
func duration(v *structpb.Value) *time.Duration {
	d, err := time.ParseDuration(v.GetStringValue())
	if err != nil || d < 0 {
		return nil
	}
	return &d
}
