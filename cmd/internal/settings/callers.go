package settings

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	security "istio.io/api/security/v1beta1"
)

// theirs are variables of istiod's by which settings are given, too, where neither our own variable
// nor a flag says otherwise.
var theirs = map[string]string{
	"JWT_RULE": "jwtRule", "TOKEN_AUDIENCES": "tokenAudiences", "TRUSTED_GATEWAY_CIDR": "trustedGatewayCIDR",
	"ISTIOD_CUSTOM_HOST": "istiodCustomHost", "ENABLE_CA_SERVER": "enableCAServer",
	"EXTERNAL_CA": "externalCA", "K8S_SIGNER": "k8sSigner", "CERT_SIGNER_DOMAIN": "certSignerDomain", "PILOT_CERT_PROVIDER": "pilotCertProvider",
	"CA_TRUSTED_NODE_ACCOUNTS": "caTrustedNodeAccounts",
	"SPIFFE_BUNDLE_ENDPOINTS":  "spiffeBundleEndpoints", "ISTIO_MULTIROOT_MESH": "multiRootMesh",
	"ENABLE_CLUSTER_TRUST_BUNDLE_API": "enableClusterTrustBundleAPI", "PILOT_ENABLE_GATEWAY_API_DEPLOYMENT_CONTROLLER": "manageGateways",
	"PILOT_ENABLE_WORKLOAD_ENTRY_AUTOREGISTRATION": "autoRegistration", "PILOT_ENABLE_ANALYSIS": "enableAnalysis",
	"PILOT_ENABLE_NODE_UNTAINT_CONTROLLERS": "untaintNodes", "PILOT_NODE_UNTAINT_CONTROLLERS_TAINT_NAME": "nodeTaint",
}

// adopted is an environment in which istiod's variables stand as ours.
func adopted(environ []string) []string {
	out := slices.Clone(environ)
	for name, setting := range theirs {
		if value := lookup(environ, name); value != "" && lookup(environ, Variable(setting)) == "" {
			out = append(out, Variable(setting)+"="+value)
		}
	}
	return out
}

// Rule returns the rule of JWTRule; nil if there is none.
// Source: Istio, JWTRule.
func (c Callers) Rule() (*security.JWTRule, error) {
	if c.JWTRule == "" {
		return nil, nil
	}
	rule := &security.JWTRule{}
	if err := protojson.Unmarshal([]byte(c.JWTRule), rule); err != nil {
		return nil, fmt.Errorf("jwtRule: it is no JWTRule of Istio's API, such as {\"issuer\": \"https://accounts.example\", "+
			"\"audiences\": [\"istio-ca\"]}: %s", strings.ReplaceAll(err.Error(), "\u00a0", " "))
	}
	if rule.Issuer == "" || len(rule.Audiences) == 0 {
		return nil, fmt.Errorf("jwtRule: it must name the issuer and the audiences of the tokens that count")
	}
	return rule, nil
}

// Audiences returns the list of TokenAudiences.
func (c Callers) Audiences() []string { return list(c.TokenAudiences) }

// Gateways returns the list of TrustedGatewayCIDR.
func (c Callers) Gateways() []string { return list(c.TrustedGatewayCIDR) }

// Agents returns the list of NodeAccounts.
func (s Signing) Agents() []string { return list(s.NodeAccounts) }

// list reads texts that are joined by commas.
func list(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// Endpoints returns the trust domains and URLs of BundleEndpoints, in order.
func (s Signing) Endpoints() (all [][2]string, err error) {
	for _, pair := range strings.Split(s.BundleEndpoints, "||") {
		if pair == "" {
			continue
		}
		domain, url, ok := strings.Cut(pair, "|")
		if !ok || domain == "" || url == "" {
			return nil, fmt.Errorf("spiffeBundleEndpoints: %q is no DOMAIN|URL", pair)
		}
		all = append(all, [2]string{domain, url})
	}
	return all, nil
}
