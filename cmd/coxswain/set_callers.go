package main

import (
	"strings"

	"github.com/coxswain-mesh/coxswain/cmd/internal/settings"
	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// callersOf are what settings say of whose credentials count.
func callersOf(c settings.Callers) (given []shorthand, err error) {
	rule, err := c.Rule()
	if rule != nil {
		issuer := map[string]any{"issuer": rule.Issuer, "audiences": rule.Audiences}
		if rule.Jwks != "" {
			issuer["jwks"] = rule.Jwks
		} else if rule.JwksUri != "" {
			issuer["jwksUri"] = rule.JwksUri
		}
		given = append(given, shorthand{"jwtRule", []any{issuer}, []string{"authenticator/jwt"}, "issuers", false})
	}
	if audiences := c.Audiences(); len(audiences) > 0 {
		given = append(given, shorthand{"tokenAudiences", audiences, []string{"authenticator/kubernetes"}, "audiences", false})
	}
	if gateways := c.Gateways(); len(gateways) > 0 {
		given = append(given, shorthand{"trustedGatewayCIDR", gateways, []string{"authenticator/xfcc"}, "trustedCIDRs", false})
	}
	return given, err
}

// signersOf is what settings say of who signs.
func signersOf(s settings.Signing) (given []shorthand) {
	external := map[string]any{}
	name := "externalCA"
	if s.ExternalCA != "" {
		external["by"], external["signer"], external["domain"] = "kubernetes", s.K8sSigner, s.SignerDomain
	}
	if signer := s.PortSigner(); signer != "" {
		external["portSigner"], name = signer, "pilotCertProvider"
	}
	if agents := s.Agents(); len(agents) > 0 {
		external["agents"], name = agents, "caTrustedNodeAccounts"
	}
	if len(external) > 0 {
		given = append(given, shorthand{name, external, []string{"controller/ca"}, "external", false})
	}
	if replaced := s.Replaced(); len(replaced) > 0 {
		given = append(given, shorthand{"replaceRoot", replaced, []string{"controller/ca"}, "replaceRoots", false})
	}
	if s.TrustBundle {
		given = append(given, shorthand{"enableClusterTrustBundleAPI", "cluster", []string{"controller/ca"}, "distribute", false})
	}
	return given
}

// trustOf is what settings say of whom other trust domains are believed by. A set of one's own says
// itself whether the mesh's settings are asked.
func trustOf(in settings.Inputs) (given []shorthand, err error) {
	s := in.Callers.Signing
	pairs, err := s.Endpoints()
	endpoints := []any{}
	for _, p := range pairs {
		endpoints = append(endpoints, map[string]any{"trustDomain": p[0], "url": p[1]})
	}
	name := "spiffeBundleEndpoints"
	if len(endpoints) == 0 {
		name = "multiRootMesh"
	}
	if len(endpoints) > 0 || s.MultiRoot && in.Plugins == "" {
		given = append(given, shorthand{name, endpoints, []string{"config/spiffe"}, "endpoints", false})
	}
	return given, err
}

// enable has plugins run that a built-in set disables until they are told whose credentials, or
// authorities, count, that there is a port for webhooks, or where modules are to be kept.
func (h shorthand) enable(s *manifest.Set) {
	for _, b := range h.builtins {
		for _, e := range s.Builtins(b) {
			e.Disabled = e.Disabled && !strings.HasPrefix(b, "authenticator/") &&
				b != "config/spiffe" && h.setting != "httpsAddr" && h.setting != "modulesDir"
		}
	}
}
