package authz_test

import (
	"fmt"
	"testing"

	rbac "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	rbachttp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	rbactcp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	security "istio.io/api/security/v1beta1"

	"github.com/coxswain-mesh/coxswain/plugins/generator/istio/authz"
)

// TestEveryFieldOfARule: a field of a rule that connections of TCP have nothing of never lets one
// in, and never keeps a rule from refusing one; each other field narrows what the rule is about,
// for requests and for connections. Each field has a row: a new one of the API fails the test.
func TestEveryFieldOfARule(t *testing.T) {
	for _, table := range []struct {
		of proto.Message
		in string // a rule with the field
		// tcp are the fields that connections of TCP have something of.
		tcp map[string]string
		// http are those that they have nothing of.
		http map[string]string
	}{
		{
			&security.Source{}, `{"from": [{"source": {%s}}]}`,
			map[string]string{
				"principals": `["a"]`, "notPrincipals": `["a"]`, "namespaces": `["a"]`, "notNamespaces": `["a"]`, "ipBlocks": `["10.0.0.1"]`,
				"notIpBlocks": `["10.0.0.1"]`, "serviceAccounts": `["a/b"]`, "notServiceAccounts": `["a/b"]`,
				"remoteIpBlocks": `["10.0.0.1"]`, "notRemoteIpBlocks": `["10.0.0.1"]`, "trustDomains": `["a"]`, "notTrustDomains": `["a"]`,
			},
			map[string]string{"requestPrincipals": `["a/b"]`, "notRequestPrincipals": `["a/b"]`},
		},
		{
			&security.Operation{}, `{"to": [{"operation": {%s}}]}`,
			map[string]string{"ports": `["80"]`, "notPorts": `["80"]`},
			map[string]string{
				"hosts": `["a"]`, "notHosts": `["a"]`, "methods": `["GET"]`, "notMethods": `["GET"]`, "paths": `["/a"]`, "notPaths": `["/a"]`,
			},
		},
		{
			&security.Condition{}, `{"when": [{"key": "destination.port", %s}]}`,
			map[string]string{"key": "", "values": `["80"]`, "notValues": `["80"]`}, nil,
		},
	} {
		fields := table.of.ProtoReflect().Descriptor().Fields()
		for i := range fields.Len() {
			name := fields.Get(i).JSONName()
			value, both := table.tcp[name]
			if !both {
				value = table.http[name]
			}
			switch {
			case value == "" && name != "key":
				t.Errorf("nothing says what %s of a %s means", name, table.of.ProtoReflect().Descriptor().Name())
				continue
			case value == "":
				continue
			}
			fieldOfARule(t, fmt.Sprintf(table.in, fmt.Sprintf("%q: %s", name, value)), both)
		}
	}
}

// fieldOfARule tries a rule with one field alone, beside one that says nothing.
func fieldOfARule(t *testing.T, rule string, both bool) {
	t.Helper()
	const all = `{}`
	for action, is := range map[security.AuthorizationPolicy_Action]string{
		security.AuthorizationPolicy_ALLOW: "ALLOW", security.AuthorizationPolicy_DENY: "DENY",
	} {
		if proto.Equal(ofHTTP(t, action, rule), ofHTTP(t, action, all)) {
			t.Errorf("%s %s says nothing of requests", is, rule)
		}
		got := ofTCP(t, action, rule)
		switch {
		case both && (got == nil || proto.Equal(got, ofTCP(t, action, all))):
			t.Errorf("%s %s says nothing of connections", is, rule)
		case !both && action == security.AuthorizationPolicy_ALLOW && got != nil:
			t.Errorf("%s %s lets connections in: %v", is, rule, got)
		case !both && action == security.AuthorizationPolicy_DENY && !proto.Equal(got, ofTCP(t, action, all)):
			t.Errorf("%s %s does not refuse all connections: %v", is, rule, got)
		}
	}
}

// ofHTTP is what a policy of one rule says of requests.
func ofHTTP(t *testing.T, action security.AuthorizationPolicy_Action, rule string) *rbac.Policy {
	t.Helper()
	out := authz.BuildHTTP([]*authz.Policy{policyOf(t, action, rule)}, authz.Mesh{})
	r := &rbachttp.RBAC{}
	if err := out.Rest[0].GetTypedConfig().UnmarshalTo(r); err != nil {
		t.Fatal(err)
	}
	return r.Rules.Policies["ns[a]-policy[p]-rule[0]"]
}

// ofTCP is what it says of connections; nil: the rule isn't there.
func ofTCP(t *testing.T, action security.AuthorizationPolicy_Action, rule string) *rbac.Policy {
	t.Helper()
	out := authz.BuildTCP([]*authz.Policy{policyOf(t, action, rule)}, authz.Mesh{})
	r := &rbactcp.RBAC{}
	if err := out.Rest[0].GetTypedConfig().UnmarshalTo(r); err != nil {
		t.Fatal(err)
	}
	return r.Rules.Policies["ns[a]-policy[p]-rule[0]"]
}

func policyOf(t *testing.T, action security.AuthorizationPolicy_Action, rule string) *authz.Policy {
	t.Helper()
	r := &security.Rule{}
	if err := protojson.Unmarshal([]byte(rule), r); err != nil {
		t.Fatal(rule, err)
	}
	return &authz.Policy{Namespace: "a", Name: "p", Spec: &security.AuthorizationPolicy{Action: action, Rules: []*security.Rule{r}}}
}
