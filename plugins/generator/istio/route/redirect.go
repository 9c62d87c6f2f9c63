package route

import (
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	networking "istio.io/api/networking/v1alpha3"
)

// redirectCode translates a status; Istio's default is 301.
func redirectCode(status uint32) routev3.RedirectAction_RedirectResponseCode {
	switch status {
	case 302:
		return routev3.RedirectAction_FOUND
	case 303:
		return routev3.RedirectAction_SEE_OTHER
	case 307:
		return routev3.RedirectAction_TEMPORARY_REDIRECT
	case 308:
		return routev3.RedirectAction_PERMANENT_REDIRECT
	}
	return routev3.RedirectAction_MOVED_PERMANENTLY
}

// redirect answers that the request should go elsewhere.
func (b *builder) redirect(match *routev3.RouteMatch) *routev3.Route_Redirect {
	in := b.in.Redirect
	out := &routev3.RedirectAction{
		HostRedirect:         in.Authority,
		PathRewriteSpecifier: &routev3.RedirectAction_PathRedirect{PathRedirect: in.Uri},
		ResponseCode:         redirectCode(in.RedirectCode),
	}
	if in.PrefixRewrite != "" {
		prefix, expression := b.prefix(match, in.PrefixRewrite)
		out.PathRewriteSpecifier = &routev3.RedirectAction_PrefixRewrite{PrefixRewrite: prefix}
		if expression != nil {
			out.PathRewriteSpecifier = &routev3.RedirectAction_RegexRewrite{RegexRewrite: expression}
		}
	}
	if in.Scheme != "" {
		out.SchemeRewriteSpecifier = &routev3.RedirectAction_SchemeRedirect{SchemeRedirect: in.Scheme}
	}
	out.PortRedirect = redirectPort(in, b.Port, b.TLS)
	return &routev3.Route_Redirect{Redirect: out}
}

// redirectPort is the port that clients are told; 0: that of the request's host, or none; tls: the
// request came in TLS to the port of a listener. The port that goes without saying is said where
// the listener has another one: the request's host names that, and Envoy would keep it.
func redirectPort(in *networking.HTTPRedirect, listener uint32, tls bool) uint32 {
	usual := usualPort(in.Scheme, tls)
	port := listener
	switch p := in.RedirectPort.(type) {
	case *networking.HTTPRedirect_Port:
		port = p.Port
	case *networking.HTTPRedirect_DerivePort:
		if p.DerivePort == networking.HTTPRedirect_FROM_PROTOCOL_DEFAULT {
			port = usual
		}
	default:
		return 0
	}
	if port == usual && (in.Authority != "" || listener == usualPort("", tls)) {
		return 0
	}
	return port
}

// usualPort is the port that goes without saying in a URL of a scheme; empty: that of the request.
func usualPort(scheme string, tls bool) uint32 {
	switch {
	case scheme == "https" || scheme == "" && tls:
		return 443
	case scheme == "http" || scheme == "":
		return 80
	}
	return 0
}

func directResponse(in *networking.HTTPDirectResponse) *routev3.Route_DirectResponse {
	out := &routev3.DirectResponseAction{Status: in.Status}
	switch b := in.GetBody().GetSpecifier().(type) {
	case *networking.HTTPBody_String_:
		out.Body = &core.DataSource{Specifier: &core.DataSource_InlineString{InlineString: b.String_}}
	case *networking.HTTPBody_Bytes:
		out.Body = &core.DataSource{Specifier: &core.DataSource_InlineBytes{InlineBytes: b.Bytes}}
	}
	return &routev3.Route_DirectResponse{DirectResponse: out}
}
