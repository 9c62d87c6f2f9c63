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

// redirect answers that the request should go elsewhere; tls says that it came in TLS.
func redirect(in *networking.HTTPRedirect, listener uint32, tls bool) *routev3.Route_Redirect {
	out := &routev3.RedirectAction{
		HostRedirect:         in.Authority,
		PathRewriteSpecifier: &routev3.RedirectAction_PathRedirect{PathRedirect: in.Uri},
		ResponseCode:         redirectCode(in.RedirectCode),
	}
	if in.PrefixRewrite != "" {
		out.PathRewriteSpecifier = &routev3.RedirectAction_PrefixRewrite{PrefixRewrite: in.PrefixRewrite}
	}
	if in.Scheme != "" {
		out.SchemeRewriteSpecifier = &routev3.RedirectAction_SchemeRedirect{SchemeRedirect: in.Scheme}
	}
	switch p := in.RedirectPort.(type) {
	case *networking.HTTPRedirect_Port:
		out.PortRedirect = p.Port
	case *networking.HTTPRedirect_DerivePort:
		if p.DerivePort == networking.HTTPRedirect_FROM_REQUEST_PORT {
			out.PortRedirect = listener
		}
	}
	if out.PortRedirect == usualPort(in.Scheme, tls) {
		out.PortRedirect = 0
	}
	return &routev3.Route_Redirect{Redirect: out}
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
