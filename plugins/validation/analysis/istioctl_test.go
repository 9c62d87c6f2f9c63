package analysis

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/plugins/validation"
)

// TestIstiosCodes: what the check of a single resource finds has istioctl's code, with ours beside
// it, and either one suppresses it.
func TestIstiosCodes(t *testing.T) {
	const (
		gateway = "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {name: web, annotations: {%s}}\nspec:\n" +
			"  servers: [{port: {number: 80, name: a, protocol: HTTP}, hosts: [a.b]}, {port: {number: 81, name: a, protocol: HTTP}, hosts: [a.b]}]\n"
		entry = "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {name: web, annotations: {%s}}\nspec:\n" +
			"  {hosts: [a.b], ports: [{number: 80, name: a, protocol: TCP}], resolution: DNS}\n"
		route = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: web, annotations: {%s}}\nspec: {hostnames: [_]}\n"
	)
	suppress := func(codes string) string { return suppression + `: "` + codes + `"` }
	for _, c := range []struct{ text, annotation, want string }{
		{gateway, "", "IST0106 COX2012"},
		{gateway, suppress("IST0106"), ""},
		{gateway, suppress("COX2012"), ""},
		{gateway, suppress("*"), ""},
		{gateway, suppress("IST0133"), "IST0106 COX2012"},
		{entry, "", "IST0133 , IST0134 "},
		{entry, suppress("IST0133"), "IST0134 "},
		{entry, suppress("IST0134"), "IST0133 "},
		{entry, suppress("*"), ""},
		{route, "", "COX1102 "}, // istioctl checks none of the Gateway API's
	} {
		r := Reader{Check: validation.New().Check}
		r.Add("f.yaml", fmt.Appendf(nil, c.text, c.annotation))
		var got []string
		for _, f := range r.single() {
			got = append(got, f.Code+" "+f.Own)
		}
		if slices.Sort(got); strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %q, want %q", c.annotation, got, c.want)
		}
	}
}

// TestSuppressionOfOwnCodes: the flag takes either code of a fault.
func TestSuppressionOfOwnCodes(t *testing.T) {
	f := kinds.Fault{Kind: "Gateway", Namespace: "shop", Name: "web", Code: "IST0106", Own: "COX2012"}
	for text, want := range map[string]bool{"IST0106=Gateway *": true, "COX2012=Gateway web.shop": true, "COX2013=Gateway *": false} {
		s, err := ParseSuppression(text)
		if err != nil || s.Covers(f) != want {
			t.Errorf("%s covers: %v %v, want %v", text, s.Covers(f), err, want)
		}
	}
}
