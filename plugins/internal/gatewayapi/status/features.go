package status

import (
	"slices"

	"sigs.k8s.io/gateway-api/pkg/features"
)

// gatewayInfrastructure is what the API up to v1.6.0 calls GatewayInfrastructure.
const gatewayInfrastructure = features.FeatureName("GatewayInfrastructurePropagation")

// Served are the features of the Gateway API that are served, in order of their names; beyond: with
// those that istiod doesn't have. Package derive reads what each is about.
// Source: Gateway API, "Supported features".
func Served(beyond bool) []features.FeatureName {
	if !beyond {
		return asIstiod()
	}
	all := append(asIstiod(), features.SupportGatewayBackendClientCertificate, features.SupportGatewayHTTPSListenerDetectMisdirectedRequests,
		features.SupportUDPRoute)
	slices.Sort(all)
	return all
}

// asIstiod are those that istiod has, too.
func asIstiod() []features.FeatureName {
	return []features.FeatureName{
		features.SupportBackendTLSPolicy,
		features.SupportBackendTLSPolicySANValidation,
		features.SupportGRPCRoute,
		features.SupportGRPCRouteNamedRouteRule,
		features.SupportGateway,
		features.SupportGatewayAddressEmpty,
		features.SupportGatewayFrontendClientCertificateValidation,
		features.SupportGatewayFrontendClientCertificateValidationInsecureFallback,
		features.SupportGatewayHTTPListenerIsolation,
		gatewayInfrastructure,
		features.SupportGatewayPort8080,
		features.SupportGatewayStaticAddresses,
		features.SupportHTTPRoute,
		features.SupportHTTPRoute303RedirectStatusCode,
		features.SupportHTTPRoute307RedirectStatusCode,
		features.SupportHTTPRoute308RedirectStatusCode,
		features.SupportHTTPRouteBackendProtocolH2C,
		features.SupportHTTPRouteBackendProtocolWebSocket,
		features.SupportHTTPRouteBackendRequestHeaderModification,
		features.SupportHTTPRouteBackendTimeout,
		features.SupportHTTPRouteCORS,
		features.SupportHTTPRouteDestinationPortMatching,
		features.SupportHTTPRouteHostRewrite,
		features.SupportHTTPRouteMethodMatching,
		features.SupportHTTPRouteNamedRouteRule,
		features.SupportHTTPRouteParentRefPort,
		features.SupportHTTPRoutePathRedirect,
		features.SupportHTTPRoutePathRewrite,
		features.SupportHTTPRoutePortRedirect,
		features.SupportHTTPRouteQueryParamMatching,
		features.SupportHTTPRouteRequestMirror,
		features.SupportHTTPRouteRequestMultipleMirrors,
		features.SupportHTTPRouteRequestPercentageMirror,
		features.SupportHTTPRouteRequestTimeout,
		features.SupportHTTPRouteResponseHeaderModification,
		features.SupportHTTPRouteRetry,
		features.SupportHTTPRouteRetryBackendTimeout,
		features.SupportHTTPRouteRetryConnectionError,
		features.SupportHTTPRouteSchemeRedirect,
		features.SupportListenerSet,
		features.SupportMesh,
		features.SupportMeshConsumerRoute,
		features.SupportMeshHTTPRouteBackendRequestHeaderModification,
		features.SupportMeshHTTPRouteNamedRouteRule,
		features.SupportMeshHTTPRouteQueryParamMatching,
		features.SupportMeshHTTPRouteRedirectPath,
		features.SupportMeshHTTPRouteRedirectPort,
		features.SupportMeshHTTPRouteRewritePath,
		features.SupportMeshHTTPRouteSchemeRedirect,
		features.SupportReferenceGrant,
		features.SupportTCPRoute,
		features.SupportTLSRoute,
		features.SupportTLSRouteModeMixed,
		features.SupportTLSRouteModeTerminate,
	}
}
