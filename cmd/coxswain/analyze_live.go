package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/coxswain-mesh/coxswain/core/admin"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/node"
	"github.com/coxswain-mesh/coxswain/plugins/shared/expressions"
	"github.com/coxswain-mesh/coxswain/plugins/validation/analysis"
	"github.com/coxswain-mesh/coxswain/plugins/validation/finding"
	"github.com/coxswain-mesh/coxswain/plugins/validation/report"
	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
	"github.com/coxswain-mesh/coxswain/sdk/state"
)

// readLive takes resources, settings, services and endpoints from a running control plane.
func readLive(ctx context.Context, r *analysis.Reader, addr string) error {
	var tables []admin.Table
	if err := getInto(ctx, addr, "/debug/tables", &tables); err != nil {
		return err
	}
	for _, t := range tables {
		if !strings.Contains(t.Name, "/") && t.Name != state.Mesh || t.Secret {
			continue
		}
		if err := liveTable(ctx, r, addr, t.Name); err != nil {
			return err
		}
	}
	if err := liveServices(ctx, r, addr); err != nil {
		return err
	}
	if err := liveEndpoints(ctx, r, addr); err != nil {
		return err
	}
	if err := liveProxies(ctx, r, addr); err != nil {
		return err
	}
	return liveSecrets(ctx, r, addr)
}

// liveProxies reads what nodes of connected proxies say of their bootstraps, and of what selects
// them. What is no node of Istio's is selected by nothing.
func liveProxies(ctx context.Context, r *analysis.Reader, addr string) error {
	var list []admin.ProxyStatus
	if err := getInto(ctx, addr, "/debug/ledger", &list); err != nil {
		return err
	}
	r.Input.Proxies = []analysis.Proxy{}
	for _, p := range list {
		_, says := p.Metadata["COXSWAIN_REGEX_PROGRAM"]
		proxy := analysis.Proxy{Name: p.Node, Stock: expressions.IsStock(p.Metadata["COXSWAIN_NO_AGENT"] == "true", says)}
		metadata, err := structpb.NewStruct(p.Metadata)
		if err != nil {
			return fmt.Errorf("the metadata of %s: %w", p.Node, err)
		}
		if n, err := node.From(&corev3.Node{Id: p.Node, Metadata: metadata}, nil); err == nil {
			proxy.Namespace, proxy.Labels = n.Namespace, n.Labels
		}
		r.Input.Proxies = append(r.Input.Proxies, proxy)
	}
	return nil
}

// liveSecrets reads what proxies are not served of what Gateways and DestinationRules name, and the
// names of Secrets and ConfigMaps, if all are known: those of Kubernetes are read when proxies ask
// for them.
func liveSecrets(ctx context.Context, r *analysis.Reader, addr string) error {
	var plugins []admin.Plugin
	if err := getInto(ctx, addr, "/debug/plugins", &plugins); err != nil {
		return err
	}
	entries := map[string][]string{}
	for _, p := range plugins {
		entries[p.Plugin] = append(entries[p.Plugin], p.Name)
	}
	serving := entries["generator/sds"]
	if len(serving) == 0 {
		return nil
	}
	var objects []admin.Object
	if err := getInto(ctx, addr, "/debug/configs", &objects); err != nil {
		return err
	}
	for _, o := range objects {
		for _, f := range o.Faults {
			if slices.Contains(serving, f.Plugin) {
				r.AddUnusable(o.Kind, o.Key, o.Source, f.Message)
			}
		}
	}
	if len(entries["config/secrets"]) > 0 {
		return nil
	}
	r.Input.Secrets, r.Input.ConfigMaps = analysis.Credentials{}, analysis.Credentials{}
	for kind, known := range map[string]analysis.Credentials{"Secret": r.Input.Secrets, "ConfigMap": r.Input.ConfigMaps} {
		for _, o := range objects {
			if o.Kind == kind && o.Served {
				known[o.Key] = analysis.Credential{}
			}
		}
	}
	return nil
}

func getInto(ctx context.Context, addr, page string, into any) error {
	raw, err := get(ctx, addr, page)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("http://%s%s: %w; is it a control plane of this version?", addr, page, err)
	}
	return nil
}

func liveTable(ctx context.Context, r *analysis.Reader, addr, table string) error {
	var rows []admin.Row
	if err := getInto(ctx, addr, "/debug/rowz?table="+url.QueryEscape(table), &rows); err != nil {
		return err
	}
	for _, row := range rows {
		if err := r.AddRow(table, &pb.Row{Key: row.Key, Source: row.Source, Labels: row.Labels,
			Annotations: row.Annotations, Payload: row.Payload}); err != nil {
			return err
		}
	}
	return nil
}

func liveServices(ctx context.Context, r *analysis.Reader, addr string) error {
	var list []struct{ Service *pb.Service }
	if err := getInto(ctx, addr, "/debug/services", &list); err != nil {
		return err
	}
	for _, each := range list {
		if each.Service != nil {
			r.AddService(each.Service)
		}
	}
	return nil
}

func liveEndpoints(ctx context.Context, r *analysis.Reader, addr string) error {
	var hosts map[string]map[string]struct{ Shards map[string][]*pb.Endpoint }
	if err := getInto(ctx, addr, "/debug/endpoints", &hosts); err != nil {
		return err
	}
	for _, namespaces := range hosts {
		for namespace, of := range namespaces {
			for _, endpoints := range of.Shards {
				for _, e := range endpoints {
					r.Input.Workloads = append(r.Input.Workloads, analysis.Workload{Namespace: namespace, Labels: e.Labels, Name: e.Address})
				}
			}
		}
	}
	return nil
}

// gatewayGroup is the Gateway API's.
const gatewayGroup = "gateway.networking.k8s.io"

// liveLeftOut returns what sources say of objects that nobody serves, and what statuses say of
// objects of the Gateway API.
func liveLeftOut(ctx context.Context, addr string) (found []report.Fault, err error) {
	var objects []struct {
		Group  string
		Faults []report.Fault
	}
	if err := getInto(ctx, addr, "/debug/configs", &objects); err != nil {
		return nil, err
	}
	for _, o := range objects {
		for _, f := range o.Faults {
			switch {
			case report.IsUnserved(f.Code):
			case o.Group == gatewayGroup && f.Code == "" && f.Severity == finding.Warning:
				f.Code = analysis.StatusProblem
			default:
				continue
			}
			found = append(found, f)
		}
	}
	return found, nil
}
