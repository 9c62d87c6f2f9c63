package main

import (
	"github.com/coxswain-mesh/coxswain/plugins/authenticator/certificate"
	"github.com/coxswain-mesh/coxswain/plugins/authenticator/jwt"
	accounts "github.com/coxswain-mesh/coxswain/plugins/authenticator/kubernetes"
	"github.com/coxswain-mesh/coxswain/plugins/authenticator/token"
	"github.com/coxswain-mesh/coxswain/plugins/authenticator/xfcc"
	configetcd "github.com/coxswain-mesh/coxswain/plugins/config/etcd"
	configfile "github.com/coxswain-mesh/coxswain/plugins/config/file"
	configgatewayapi "github.com/coxswain-mesh/coxswain/plugins/config/gatewayapi"
	configgit "github.com/coxswain-mesh/coxswain/plugins/config/git"
	configingress "github.com/coxswain-mesh/coxswain/plugins/config/ingress"
	configjwks "github.com/coxswain-mesh/coxswain/plugins/config/jwks"
	configkubernetes "github.com/coxswain-mesh/coxswain/plugins/config/kubernetes"
	configmesh "github.com/coxswain-mesh/coxswain/plugins/config/mesh"
	configmodules "github.com/coxswain-mesh/coxswain/plugins/config/modules"
	configpem "github.com/coxswain-mesh/coxswain/plugins/config/pem"
	configsecrets "github.com/coxswain-mesh/coxswain/plugins/config/secrets"
	configspiffe "github.com/coxswain-mesh/coxswain/plugins/config/spiffe"
	configvault "github.com/coxswain-mesh/coxswain/plugins/config/vault"
	configxds "github.com/coxswain-mesh/coxswain/plugins/config/xds"
	"github.com/coxswain-mesh/coxswain/plugins/controller/addresses"
	controlleranalysis "github.com/coxswain-mesh/coxswain/plugins/controller/analysis"
	"github.com/coxswain-mesh/coxswain/plugins/controller/ca"
	"github.com/coxswain-mesh/coxswain/plugins/controller/dns"
	"github.com/coxswain-mesh/coxswain/plugins/controller/exports"
	deployer "github.com/coxswain-mesh/coxswain/plugins/controller/gateway"
	controlleringress "github.com/coxswain-mesh/coxswain/plugins/controller/ingress"
	"github.com/coxswain-mesh/coxswain/plugins/controller/injector"
	"github.com/coxswain-mesh/coxswain/plugins/controller/registration"
	"github.com/coxswain-mesh/coxswain/plugins/controller/status"
	"github.com/coxswain-mesh/coxswain/plugins/controller/untaint"
	"github.com/coxswain-mesh/coxswain/plugins/controller/validator"
	"github.com/coxswain-mesh/coxswain/plugins/generator/api"
	"github.com/coxswain-mesh/coxswain/plugins/generator/grpc"
	"github.com/coxswain-mesh/coxswain/plugins/generator/istio"
	"github.com/coxswain-mesh/coxswain/plugins/generator/pcds"
	"github.com/coxswain-mesh/coxswain/plugins/generator/sds"
	"github.com/coxswain-mesh/coxswain/plugins/generator/static"
	"github.com/coxswain-mesh/coxswain/plugins/patch/mosn"
	"github.com/coxswain-mesh/coxswain/plugins/registry/clusters"
	"github.com/coxswain-mesh/coxswain/plugins/registry/consul"
	registryetcd "github.com/coxswain-mesh/coxswain/plugins/registry/etcd"
	"github.com/coxswain-mesh/coxswain/plugins/registry/eureka"
	"github.com/coxswain-mesh/coxswain/plugins/registry/kubernetes"
	"github.com/coxswain-mesh/coxswain/plugins/registry/mcs"
	"github.com/coxswain-mesh/coxswain/plugins/registry/memory"
	"github.com/coxswain-mesh/coxswain/plugins/registry/nacos"
	"github.com/coxswain-mesh/coxswain/plugins/registry/serviceentry"
	"github.com/coxswain-mesh/coxswain/plugins/registry/zookeeper"
	"github.com/coxswain-mesh/coxswain/sdk"
)

// builtins are the plugins that this binary can run, each in a process of its own. This is the only
// place that links them.
func builtins() map[string]sdk.Declaration {
	return map[string]sdk.Declaration{
		"authenticator/certificate": certificate.Plugin(),
		"authenticator/jwt":         jwt.Plugin(),
		"authenticator/kubernetes":  accounts.Plugin(),
		"authenticator/token":       token.Plugin(),
		"authenticator/xfcc":        xfcc.Plugin(),
		"config/etcd":               configetcd.Plugin(),
		"config/file":               configfile.Plugin(),
		"config/gatewayapi":         configgatewayapi.Plugin(),
		"config/git":                configgit.Plugin(),
		"config/ingress":            configingress.Plugin(),
		"config/jwks":               configjwks.Plugin(),
		"config/kubernetes":         configkubernetes.Plugin(),
		"config/mesh":               configmesh.Plugin(),
		"config/modules":            configmodules.Plugin(),
		"config/pem":                configpem.Plugin(),
		"config/vault":              configvault.Plugin(),
		"config/secrets":            configsecrets.Plugin(),
		"config/spiffe":             configspiffe.Plugin(),
		"config/xds":                configxds.Plugin(),
		"controller/addresses":      addresses.Plugin(),
		"controller/analysis":       controlleranalysis.Plugin(),
		"controller/ca":             ca.Plugin(),
		"controller/dns":            dns.Plugin(),
		"controller/exports":        exports.Plugin(),
		"controller/gateway":        deployer.Plugin(),
		"controller/registration":   registration.Plugin(),
		"controller/ingress":        controlleringress.Plugin(),
		"controller/injector":       injector.Plugin(),
		"controller/status":         status.Plugin(),
		"controller/untaint":        untaint.Plugin(),
		"controller/validator":      validator.Plugin(),
		"generator/api":             api.Plugin(),
		"generator/grpc":            grpc.Plugin(),
		"generator/istio":           istio.Plugin(),
		"generator/pcds":            pcds.Plugin(),
		"generator/sds":             sds.Plugin(),
		"generator/static":          static.Plugin(),
		"patch/mosn":                mosn.Plugin(),
		"registry/clusters":         clusters.Plugin(),
		"registry/consul":           consul.Plugin(),
		"registry/eureka":           eureka.Plugin(),
		"registry/etcd":             registryetcd.Plugin(),
		"registry/kubernetes":       kubernetes.Plugin(),
		"registry/mcs":              mcs.Plugin(),
		"registry/memory":           memory.Plugin(),
		"registry/nacos":            nacos.Plugin(),
		"registry/serviceentry":     serviceentry.Plugin(),
		"registry/zookeeper":        zookeeper.Plugin(),
	}
}
