package rules

import (
	"strings"

	security "istio.io/api/security/v1beta1"
)

// attributes are the keys of conditions. Source: Istio, Authorization Policy Conditions.
var attributes = map[string]bool{
	"source.ip": true, "remote.ip": true, "source.namespace": true, "source.principal": true, "source.serviceAccount": true,
	"source.trustDomain": true, "request.auth.principal": true, "request.auth.audiences": true, "request.auth.presenter": true,
	"destination.ip": true, "destination.port": true, "connection.sni": true,
}

// attributeFamilies are keys with a name of one's own behind.
var attributeFamilies = []string{"request.headers[", "request.experimental.inline.headers[", "request.auth.claims[", "experimental.envoy.filters."}

func isAttribute(key string) bool {
	if attributes[key] {
		return true
	}
	for _, family := range attributeFamilies {
		if strings.HasPrefix(key, family) && (!strings.HasSuffix(family, "[") || strings.HasSuffix(key, "]") && len(key) > len(family)+1) {
			return true
		}
	}
	return false
}

func (c *checker) condition(at path, w *security.Condition, action security.AuthorizationPolicy_Action) {
	key := w.GetKey()
	switch {
	case key == "":
		c.fail(badCondition, at.field("key"), "`key` must not be empty")
		return
	case !isAttribute(key):
		c.fail(badCondition, at.field("key"), "unknown attribute: %s", quote(key)).hint(
			"write such as request.headers[x-token], source.ip or request.auth.claims[iss]",
		)
	case len(w.Values)+len(w.NotValues) == 0:
		c.fail(badCondition, at, "at least one of `values` or `notValues` must be set for key %s", quote(key))
	case action == security.AuthorizationPolicy_CUSTOM && onlyLater(key):
		c.fail(badCustom, at.field("key"), "%s is not supported with action CUSTOM", key).hint("the authorizer itself can look at identities")
	}
	for _, v := range []values{{"values", w.Values}, {"notValues", w.NotValues}} {
		for i, each := range v.list {
			c.conditionValue(at.field(v.field).index(i), key, each)
		}
	}
}

// onlyLater reports whether an attribute is known only after the external authorizer was asked.
func onlyLater(key string) bool {
	return strings.HasPrefix(key, "request.auth.") || key == "source.namespace" || key == "source.principal" || key == "source.serviceAccount"
}

func (c *checker) conditionValue(at path, key, value string) {
	if value == "" {
		c.fail(emptyValue, at, "a condition's value must not be empty")
		return
	}
	switch key {
	case "source.ip", "remote.ip", "destination.ip":
		c.subnet(at, value)
	case "destination.port":
		c.portText(at, value)
	case "source.serviceAccount":
		c.account(at, value)
	}
}
