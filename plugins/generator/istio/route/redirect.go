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

func redirect(in *networking.HTTPRedirect, listener uint32) *routev3.Route_Redirect {
	out := &routev3.RedirectAction{
		HostRedirect:         in.Authority,
		PathRewriteSpecifier: &routev3.RedirectAction_PathRedirect{PathRedirect: in.Uri},
		ResponseCode:         redirectCode(in.RedirectCode),
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
	return &routev3.Route_Redirect{Redirect: out}
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
