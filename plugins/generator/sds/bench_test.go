package sds_test

import (
	"crypto/elliptic"
	"fmt"
	"testing"

	networking "istio.io/api/networking/v1alpha3"

	"github.com/coxswain-mesh/coxswain/plugins/generator/sds"
	"github.com/coxswain-mesh/coxswain/plugins/internal/kinds"
	"github.com/coxswain-mesh/coxswain/sdk"
	"github.com/coxswain-mesh/coxswain/sdk/plugintest"
)

// rules are 10,000 DestinationRules of 100 namespaces, each with one of so many credentials.
func rules(b *testing.B, credentials int) []*sdk.Row {
	b.Helper()
	all := make([]*sdk.Row, 10_000)
	for i := range all {
		payload, err := kinds.Encode(&networking.DestinationRule{
			Host: fmt.Sprintf("host-%d.example", i),
			TrafficPolicy: &networking.TrafficPolicy{Tls: &networking.ClientTLSSettings{
				Mode: networking.ClientTLSSettings_MUTUAL, CredentialName: fmt.Sprintf("web-%d", i%credentials),
			}},
		})
		if err != nil {
			b.Fatal(err)
		}
		all[i] = &sdk.Row{Key: fmt.Sprintf("team-%d/rule-%d", i%100, i), Payload: payload}
	}
	return all
}

// asked starts the plugin with the rules, and with a proxy in each namespace that has a secret.
func asked(b *testing.B, all []*sdk.Row) *plugintest.Harness {
	b.Helper()
	h := plugintest.Start(b, sds.Plugin(), nil)
	chain, key := pair(b, ec(b, elliptic.P256()))
	secrets := make([]*sdk.Row, 100)
	for i := range secrets {
		secrets[i] = row(fmt.Sprintf("team-%d/web-0", i), map[string][]byte{"tls.crt": chain, "tls.key": key})
	}
	h.Update("v1/Secret", secrets)
	h.Update("clusters", []*sdk.Row{{Key: "east"}})
	h.Update(kinds.DestinationRule, all)
	for i := range secrets {
		if ask(b, h, proxy(b, fmt.Sprintf("team-%d", i), "web"), "kubernetes://web-0") == nil {
			b.Fatal("a secret isn't served")
		}
	}
	return h
}

// BenchmarkRule: one of 10,000 DestinationRules changes, which name 1,000 credentials or one.
func BenchmarkRule(b *testing.B) {
	for _, credentials := range []int{1000, 1} {
		b.Run(fmt.Sprintf("credentials=%d", credentials), func(b *testing.B) {
			all := rules(b, credentials)
			h := asked(b, all)
			for i := 0; b.Loop(); i++ {
				h.Update(kinds.DestinationRule, all[i%len(all):i%len(all)+1])
			}
		})
	}
}

// BenchmarkRules: all 10,000 are read.
func BenchmarkRules(b *testing.B) {
	for _, credentials := range []int{1000, 1} {
		b.Run(fmt.Sprintf("credentials=%d", credentials), func(b *testing.B) {
			all := rules(b, credentials)
			h := asked(b, all)
			for b.Loop() {
				h.Update(kinds.DestinationRule, all)
			}
		})
	}
}

// BenchmarkSecret: one secret changes, which one proxy of 100 has, beside 10,000 DestinationRules.
func BenchmarkSecret(b *testing.B) {
	h := asked(b, rules(b, 1000))
	chain, key := pair(b, ec(b, elliptic.P256()))
	next, nextKey := pair(b, ec(b, elliptic.P256()))
	bodies := h.Bodies()
	for b.Loop() {
		h.Update("v1/Secret", []*sdk.Row{row("team-7/web-0", map[string][]byte{"tls.crt": chain, "tls.key": key})})
		chain, key, next, nextKey = next, nextKey, chain, key
	}
	if got := h.Bodies() - bodies; got < 1 || got > 2 { // two certificates take turns
		b.Errorf("%d bodies were sent", got)
	}
}
