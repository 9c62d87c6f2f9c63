//lint:file-ignore SA1019 deprecated fields are read to say so, and to check them all the same

package rules

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

const (
	badRewrite  = "COX2107"
	badRedirect = "COX2108"
	badResponse = "COX2109"
	badMirror   = "COX2112"
)

func (c *checker) httpRoute(at path, r *networking.HTTPRoute, b binding) {
	if r == nil {
		c.fail(badAction, at, "a route must not be empty")
		return
	}
	for i, m := range r.Match {
		c.httpMatch(at.field("match").index(i), m, b)
	}
	if r.Delegate != nil {
		c.rootRoute(at, r, b)
	} else {
		c.action(at, r)
	}
	c.httpDestinations(at.field("route"), r)
	c.redirect(at.field("redirect"), r.Redirect)
	c.redirectedPaths(at, r)
	c.directResponse(at.field("directResponse"), r.DirectResponse)
	c.rewrite(at.field("rewrite"), r.Rewrite)
	c.mirrors(at, r)
	c.duration(at.field("timeout"), r.Timeout, true)
	c.retries(at.field("retries"), r.Retries)
	c.fault(at.field("fault"), r.Fault)
	c.cors(at.field("corsPolicy"), r.CorsPolicy)
	c.headers(at.field("headers"), r.Headers)
	if r.GetRewrite().GetAuthority() != "" && setsAuthority(r.Headers) {
		c.fail(badRewrite, at.field("rewrite").field("authority"), "the authority is set twice: by rewrite and by headers").hint("keep one")
	}
}

// rootRoute checks a route that another VirtualService completes.
func (c *checker) rootRoute(at path, r *networking.HTTPRoute, b binding) {
	if b.delegate {
		c.fail(badDelegate, at.field("delegate"), "delegate virtual service must not delegate further").hint("only one level of delegation is possible")
	}
	if len(r.Route) > 0 || r.Redirect != nil || r.DirectResponse != nil {
		c.fail(badDelegate, at, "a route with delegate must have no route, redirect or directResponse").hint("the delegate has them")
	}
}

// action checks that a route does one thing.
func (c *checker) action(at path, r *networking.HTTPRoute) {
	var does []string
	for _, a := range []struct {
		name  string
		given bool
	}{{"route", len(r.Route) > 0}, {"redirect", r.Redirect != nil}, {"direct_response", r.DirectResponse != nil}} {
		if a.given {
			does = append(does, a.name)
		}
	}
	switch {
	case len(does) == 0:
		c.fail(badAction, at, "HTTP route, redirect or direct_response is required")
		return
	case len(does) > 1:
		c.fail(badAction, at, "HTTP route cannot contain both %s", strings.Join(does, " and ")).hint("keep one")
		return
	case does[0] == "route":
		return
	}
	if r.Fault != nil {
		c.fail(badAction, at.field("fault"), "HTTP route cannot contain both fault and %s", does[0])
	}
	if r.Rewrite != nil {
		c.fail(badAction, at.field("rewrite"), "HTTP route rule cannot contain both rewrite and %s", does[0])
	}
}

func (c *checker) httpDestinations(at path, r *networking.HTTPRoute) {
	weights := make([]int32, 0, len(r.Route))
	for i, d := range r.Route {
		here := at.index(i)
		c.destination(here.field("destination"), d.GetDestination())
		c.headers(here.field("headers"), d.GetHeaders())
		if r.GetRewrite().GetAuthority() != "" && setsAuthority(d.GetHeaders()) {
			c.fail(badRewrite, here.field("headers"), "the authority is set twice: by rewrite and by headers").hint("keep one")
		}
		weights = append(weights, d.GetWeight())
	}
	c.weights(at, weights)
}

func (c *checker) redirect(at path, r *networking.HTTPRedirect) {
	if r == nil {
		return
	}
	if r.Uri+r.Authority+r.Scheme+r.PrefixRewrite == "" && r.RedirectPort == nil {
		c.fail(badRedirect, at, "redirect must specify URI, authority, scheme, or port")
	}
	if r.Scheme != "" && r.Scheme != "http" && r.Scheme != "https" {
		c.fail(badRedirect, at.field("scheme"), `redirect scheme must be either "http" or "https", not %s`, quote(r.Scheme))
	}
	if r.RedirectCode != 0 && (r.RedirectCode < 300 || r.RedirectCode > 399) {
		c.fail(badRedirect, at.field("redirectCode"), "redirect code %d is not in range 300..399", r.RedirectCode)
	}
	if p, ok := r.RedirectPort.(*networking.HTTPRedirect_Port); ok {
		c.port(at.field("port"), p.Port)
	}
}

// redirectedPaths checks that a redirect changes a path in one way, and knows what it changes.
func (c *checker) redirectedPaths(at path, r *networking.HTTPRoute) {
	if r.Redirect.GetPrefixRewrite() == "" {
		return
	}
	here := at.field("redirect").field("prefixRewrite")
	if r.Redirect.Uri != "" {
		c.fail(badRedirect, here, "redirect may only specify one of uri or prefixRewrite")
	}
	for i, m := range r.Match {
		if _, ok := m.GetUri().GetMatchType().(*networking.StringMatch_Prefix); m.GetUri() != nil && !ok {
			c.fail(badRedirect, here, "redirect prefixRewrite requires all URI matches to be by prefix: match[%d] is not", i).
				hint("write uri for another path as a whole")
		}
	}
}

// Sizes of a response's body: proxies get it with every route that has it.
const (
	largeBody = 100 << 10
	maxBody   = 1 << 20
)

func (c *checker) directResponse(at path, r *networking.HTTPDirectResponse) {
	if r == nil {
		return
	}
	if r.Status < 200 || r.Status > 600 {
		c.fail(badResponse, at.field("status"), "HTTP status %d is not in range 200..599", r.Status)
	}
	switch size := max(len(r.GetBody().GetString_()), len(r.GetBody().GetBytes())); {
	case size > maxBody:
		c.fail(badResponse, at.field("body"), "direct response body of %d bytes is larger than 1 MiB", size).hint("let a service answer")
	case size > largeBody:
		c.warn(badResponse, at.field("body"), "large direct response body of %d bytes: each proxy holds it in memory", size).hint("let a service answer")
	}
}

func (c *checker) rewrite(at path, r *networking.HTTPRewrite) {
	if r == nil {
		return
	}
	switch {
	case r.Uri != "" && r.UriRegexRewrite != nil:
		c.fail(badRewrite, at, "rewrite may only contain one of URI or uriRegexRewrite")
	case r.Uri == "" && r.UriRegexRewrite == nil && r.Authority == "":
		c.fail(badRewrite, at, "rewrite must specify at least one of URI, authority, or uriRegexRewrite")
	}
	if x := r.UriRegexRewrite; x != nil {
		here := at.field("uriRegexRewrite")
		if x.Match == "" || x.Rewrite == "" {
			c.fail(badRewrite, here, "uriRegexRewrite requires both a rewrite value and a match value")
		}
		c.regex(here.field("match"), x.Match)
	}
}

func (c *checker) mirrors(at path, r *networking.HTTPRoute) {
	if r.Mirror != nil && len(r.Mirrors) > 0 {
		c.fail(badMirror, at.field("mirrors"), "HTTP route rule cannot have both mirror and mirrors configured").hint("keep mirrors")
	}
	if r.Mirror != nil {
		c.destination(at.field("mirror"), r.Mirror)
	}
	if old := r.GetMirrorPercent(); old != nil {
		c.obsolete(at.field("mirrorPercent"), "use mirrorPercentage instead")
		c.percent(at.field("mirrorPercent"), float64(old.Value))
	}
	c.percent(at.field("mirrorPercentage").field("value"), r.GetMirrorPercentage().GetValue())
	for i, m := range r.Mirrors {
		here := at.field("mirrors").index(i)
		c.destination(here.field("destination"), m.GetDestination())
		c.percent(here.field("percentage").field("value"), m.GetPercentage().GetValue())
	}
}
