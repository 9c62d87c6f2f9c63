package rules

import (
	"slices"
	"strconv"
	"strings"

	security "istio.io/api/security/v1beta1"
)

// Codes about authorization.
const (
	badAuthzAction = "COX2601"
	emptyRule      = "COX2602"
	emptyValue     = "COX2603"
	badCondition   = "COX2605"
	badTemplate    = "COX2606"
	badAccount     = "COX2607"
	httpOnTCP      = "COX2608"
	ambiguous      = "COX2613"
	badDryRun      = "COX2609"
	badCustom      = "COX2610"
	portlessHost   = "COX2614"
)

// dryRun is the annotation of a policy that is only tried out.
const dryRun = "istio.io/dry-run"

func (c *checker) authorizationPolicy(at path, p *security.AuthorizationPolicy) {
	c.selection(at, p.Selector, p.TargetRef, p.TargetRefs)
	c.dryRun(p.Action)
	c.authzAction(at, p)
	for i, r := range p.Rules {
		c.authzRule(at.field("rules").index(i), r, p.Action)
	}
}

func (c *checker) dryRun(action security.AuthorizationPolicy_Action) {
	value, ok := c.Annotations[dryRun]
	if !ok {
		return
	}
	here := path("metadata.annotations").key(dryRun)
	on, err := strconv.ParseBool(value)
	switch {
	case err != nil:
		c.fail(badDryRun, here, "dry-run must be true or false, not %s", quote(value))
	case on && action != security.AuthorizationPolicy_ALLOW && action != security.AuthorizationPolicy_DENY:
		c.fail(badDryRun, here, "the dry-run mode does not support action %s: only ALLOW and DENY", action)
	}
}

func (c *checker) authzAction(at path, p *security.AuthorizationPolicy) {
	custom := p.Action == security.AuthorizationPolicy_CUSTOM
	switch {
	case custom && p.GetProvider().GetName() == "":
		c.fail(badAuthzAction, at.field("provider"), "`provider.name` must not be empty with action CUSTOM").hint("name one of the mesh's extensionProviders")
	case !custom && p.GetProvider() != nil:
		c.fail(badAuthzAction, at.field("provider"), "`provider` must not be with non CUSTOM action, found %s", p.Action)
	}
	if len(p.Rules) == 0 && (custom || p.Action == security.AuthorizationPolicy_DENY) {
		c.fail(badAuthzAction, at.field("rules"), "%s action without `rules` is meaningless as it will never be triggered", p.Action).
			hint("add an empty rule `{}` for all requests")
	}
}

func (c *checker) authzRule(at path, r *security.Rule, action security.AuthorizationPolicy_Action) {
	web, ports := false, false
	for i, f := range r.GetFrom() {
		web = c.source(at.field("from").index(i).field("source"), f.GetSource(), action) || web
	}
	for i, t := range r.GetTo() {
		web = c.operation(at.field("to").index(i).field("operation"), t.GetOperation(), action) || web
		ports = ports || len(t.GetOperation().GetPorts()) > 0
	}
	for i, w := range r.GetWhen() {
		c.condition(at.field("when").index(i), w, action)
		web = web || strings.HasPrefix(w.GetKey(), "request.")
		ports = ports || w.GetKey() == "destination.port"
	}
	if action == security.AuthorizationPolicy_DENY && web && !ports {
		c.warn(httpOnTCP, at, "a DENY rule with HTTP attributes and without ports denies all traffic of TCP ports").
			hint("TCP has no such attributes, so they are taken to match; add to.operation.ports")
	}
}

// values is a list of a rule, by its field.
type values struct {
	field string
	list  []string
}

// source checks who calls, and reports whether it looks at HTTP.
func (c *checker) source(at path, s *security.Source, action security.AuthorizationPolicy_Action) (web bool) {
	identities := []values{
		{"principals", s.GetPrincipals()}, {"notPrincipals", s.GetNotPrincipals()},
		{"namespaces", s.GetNamespaces()}, {"notNamespaces", s.GetNotNamespaces()},
		{"requestPrincipals", s.GetRequestPrincipals()}, {"notRequestPrincipals", s.GetNotRequestPrincipals()},
		{"serviceAccounts", s.GetServiceAccounts()}, {"notServiceAccounts", s.GetNotServiceAccounts()},
		{"trustDomains", s.GetTrustDomains()}, {"notTrustDomains", s.GetNotTrustDomains()},
	}
	addresses := []values{
		{"ipBlocks", s.GetIpBlocks()}, {"notIpBlocks", s.GetNotIpBlocks()},
		{"remoteIpBlocks", s.GetRemoteIpBlocks()}, {"notRemoteIpBlocks", s.GetNotRemoteIpBlocks()},
	}
	all := slices.Concat(identities, addresses)
	c.listed(at, "source", all)
	for _, v := range addresses {
		for i, each := range v.list {
			c.ipBlock(at.field(v.field).index(i), each)
		}
	}
	for _, v := range identities[6:8] {
		for i, each := range v.list {
			c.account(at.field(v.field).index(i), each)
		}
	}
	for _, v := range identities[4:6] {
		for i, each := range v.list {
			if subject := strings.TrimPrefix(strings.TrimPrefix(each, "https://"), "http://"); strings.Count(subject, "/") > 1 {
				c.warn(ambiguous, at.field(v.field).index(i), "%s may be split into issuer and subject at several slashes", quote(each)).
					hint("a rule that denies matches each way, one that allows the last slash alone; match " +
						"request.auth.claims[iss] and [sub] under when, which say one thing")
			}
		}
	}
	if action == security.AuthorizationPolicy_CUSTOM {
		c.customSource(at, identities)
	}
	return len(s.GetRequestPrincipals())+len(s.GetNotRequestPrincipals())+len(s.GetRemoteIpBlocks())+len(s.GetNotRemoteIpBlocks()) > 0
}

// customSource refuses what is only known after the external authorizer was asked.
func (c *checker) customSource(at path, identities []values) {
	for _, v := range identities {
		if len(v.list) > 0 {
			c.fail(badCustom, at.field(v.field), "%s is not supported with action CUSTOM", v.field).hint("the authorizer itself can look at identities")
		}
	}
}

// listed checks that a part of a rule says something, and that no value is empty.
func (c *checker) listed(at path, what string, all []values) {
	given := false
	for _, v := range all {
		given = given || len(v.list) > 0
		for i, each := range v.list {
			if each == "" {
				c.fail(emptyValue, at.field(v.field).index(i), "`%s` must not be empty", v.field)
			}
		}
	}
	if !given {
		c.fail(emptyRule, at, "`%s` must have at least one field", what).hint("to match all, leave the whole entry out")
	}
}

func (c *checker) ipBlock(at path, text string) {
	if text != "" {
		c.subnet(at, text)
	}
}

// account checks NAME or NAMESPACE/NAME.
func (c *checker) account(at path, text string) {
	namespace, name, both := strings.Cut(text, "/")
	if text != "" && (strings.Contains(text, "*") || strings.Contains(name, "/") || both && (namespace == "" || name == "")) {
		c.fail(badAccount, at, "invalid service account %s", quote(text)).hint("write NAMESPACE/NAME or NAME, without wildcards")
	}
}

// hostsWithoutPorts warns of hosts that protect nothing from who names a port, too: clients may do
// so in any request. Source: Istio, AuthorizationPolicy, operation.hosts.
func (c *checker) hostsWithoutPorts(at path, hosts []string) {
	for i, h := range hosts {
		if h != "" && !strings.HasSuffix(h, "*") && !strings.Contains(h, ":") && !slices.Contains(hosts, h+":*") {
			c.warn(portlessHost, at.index(i), "%s is not the host of requests for %s", quote(h), quote(h+":8080")).
				hint("clients may name a port in any request: add %s", quote(h+":*"))
		}
	}
}

// operation checks what is called, and reports whether it looks at HTTP.
func (c *checker) operation(at path, o *security.Operation, action security.AuthorizationPolicy_Action) (web bool) {
	switch action {
	case security.AuthorizationPolicy_DENY, security.AuthorizationPolicy_CUSTOM:
		c.hostsWithoutPorts(at.field("hosts"), o.GetHosts())
	case security.AuthorizationPolicy_ALLOW:
		c.hostsWithoutPorts(at.field("notHosts"), o.GetNotHosts())
	}
	ports := []values{{"ports", o.GetPorts()}, {"notPorts", o.GetNotPorts()}}
	paths := []values{{"paths", o.GetPaths()}, {"notPaths", o.GetNotPaths()}}
	c.listed(at, "operation", slices.Concat(ports, paths, []values{
		{"hosts", o.GetHosts()}, {"notHosts", o.GetNotHosts()}, {"methods", o.GetMethods()}, {"notMethods", o.GetNotMethods()},
	}))
	for _, v := range ports {
		for i, each := range v.list {
			c.portText(at.field(v.field).index(i), each)
		}
	}
	for _, v := range paths {
		for i, each := range v.list {
			c.pathTemplate(at.field(v.field).index(i), each)
		}
	}
	return len(o.GetHosts())+len(o.GetNotHosts())+len(o.GetMethods())+len(o.GetNotMethods())+len(o.GetPaths())+len(o.GetNotPaths()) > 0
}

func (c *checker) portText(at path, text string) {
	if number, err := strconv.ParseUint(text, 10, 32); text != "" && (err != nil || number < 1 || number > maxPort) {
		c.fail(badPort, at, "invalid port %s: it must be a number in the range 1..65535", quote(text))
	}
}

// pathTemplate checks a path with {*} (one segment) or {**} (the rest). Source: Istio API,
// Operation.paths.
func (c *checker) pathTemplate(at path, text string) {
	if !strings.ContainsAny(text, "{}") {
		return
	}
	segments := strings.Split(text, "/")
	for i, s := range segments {
		switch {
		case s == "{**}" && slices.ContainsFunc(segments[i+1:], func(after string) bool { return after == "{**}" }):
			c.fail(badTemplate, at, "invalid or unsupported path %s: {**} can be there once", quote(text))
		case s == "{*}" || s == "{**}":
		case strings.ContainsAny(s, "{}*"):
			c.fail(badTemplate, at, "invalid or unsupported path %s: %s is neither {*}, {**} nor plain text", quote(text), quote(s)).
				hint("{*} stands for one whole segment, {**} for any number of them")
			return
		}
	}
}
