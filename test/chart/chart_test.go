// Package chart tries deploy/chart with Helm: what it renders, what it refuses, and how it lives on
// a real API server.
package chart_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/coxswain-mesh/coxswain/test/kit/mesh"
	"github.com/coxswain-mesh/coxswain/test/kit/program"
)

// binary is the path of the program under test.
var binary string

func TestMain(m *testing.M) { mesh.Plain(&binary, m.Run) }

const (
	source    = "../../deploy/chart"
	deployed  = "../../deploy/kubernetes"
	image     = "registry.example.com/coxswain@sha256:0000000000000000000000000000000000000000000000000000000000000000"
	namespace = "istio-system"
	version   = "1.37.0" // of Kubernetes, where no API server says it
)

// named names an image: none is published.
var named = []string{"--set", "image=" + image}

// helm runs Helm, with a home of its own.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	home := t.TempDir()
	cmd := exec.Command(filepath.Join(program.Built(t, "test/chart/helm", "helm", "helm"), "helm"), args...)
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("helm %s: %w: %s%s", strings.Join(args, " "), err, out, said.String())
	}
	return string(out), nil
}

// template renders the chart.
func template(t *testing.T, args ...string) (string, error) {
	t.Helper()
	return helm(t, slices.Concat([]string{"template", "istiod", source, "--namespace", namespace, "--kube-version", version}, named, args)...)
}

// objects are what the chart renders, by kind and name.
func objects(t *testing.T, args ...string) map[string]json.RawMessage {
	t.Helper()
	text, err := template(t, args...)
	if err != nil {
		t.Fatal(err)
	}
	return split(t, text)
}

func split(t *testing.T, text string) map[string]json.RawMessage {
	t.Helper()
	out := map[string]json.RawMessage{}
	for document := range strings.SplitSeq(text, "\n---\n") {
		var o struct {
			Kind     string
			Metadata struct{ Name string }
		}
		raw, err := yaml.YAMLToJSONStrict([]byte(document))
		if err == nil {
			err = json.Unmarshal(raw, &o)
		}
		if err != nil {
			t.Fatalf("%v in %s", err, document)
		}
		if o.Kind == "" {
			continue
		}
		id := o.Kind + "/" + o.Metadata.Name
		if out[id] != nil {
			t.Errorf("%s is rendered twice", id)
		}
		out[id] = raw
	}
	return out
}

func as[T any](t *testing.T, of map[string]json.RawMessage, id string) *T {
	t.Helper()
	v := new(T)
	if err := json.Unmarshal(of[id], v); err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	return v
}

func TestLint(t *testing.T) {
	t.Parallel()
	if out, err := helm(t, slices.Concat([]string{"lint", "--strict", source, "--kube-version", version}, named)...); err != nil || !strings.Contains(out, "0 chart(s) failed") {
		t.Error(out, err)
	}
}

// TestNames: it has istiod's names, ports and labels, with a revision those of that.
func TestNames(t *testing.T) {
	t.Parallel()
	for revision, name := range map[string]string{"": "istiod", "canary": "istiod-canary"} {
		of := objects(t, "--set", "revision="+revision)
		reader := strings.Replace(name, "istiod", "istio-reader-clusterrole", 1) + "-istio-system"
		wide, mesh := strings.Replace(name, "istiod", "istiod-clusterrole", 1)+"-istio-system", strings.Replace(name, "istiod", "istio", 1)
		injector, validator := strings.Replace(name, "istiod", "coxswain-injector", 1), strings.Replace(name, "istiod", "coxswain-validator", 1)
		var ids []string
		for id := range of {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		want := []string{
			"ClusterRole/" + reader, "ClusterRole/" + wide, "ClusterRoleBinding/" + reader, "ClusterRoleBinding/" + wide, "ConfigMap/" + mesh, "ConfigMap/" + strings.Replace(name, "istiod", "istio-sidecar-injector", 1), "Deployment/" + name,
			"HorizontalPodAutoscaler/" + name, "MutatingWebhookConfiguration/" + injector, "PodDisruptionBudget/" + name, "Role/" + name, "RoleBinding/" + name, "Service/" + name, "ServiceAccount/" + name, "ValidatingWebhookConfiguration/" + validator,
		}
		slices.Sort(want)
		if !slices.Equal(ids, want) {
			t.Errorf("with the revision %q there are %q, not %q", revision, ids, want)
		}
		s, d := as[corev1.Service](t, of, "Service/"+name), as[appsv1.Deployment](t, of, "Deployment/"+name)
		var ports []string
		for _, p := range s.Spec.Ports {
			ports = append(ports, fmt.Sprintf("%s %d", p.Name, p.Port))
		}
		if !slices.Equal(ports, []string{"grpc-xds 15010", "https-dns 15012", "https-webhook 443", "http-monitoring 15014"}) {
			t.Errorf("the Service has %q", ports)
		}
		for what, selector := range map[string]map[string]string{"Service": s.Spec.Selector, "Deployment": d.Spec.Selector.MatchLabels} {
			for k, v := range selector {
				if d.Spec.Template.Labels[k] != v {
					t.Errorf("the %s selects %s=%s, and pods have %q", what, k, v, d.Spec.Template.Labels[k])
				}
			}
		}
		if got := as[corev1.ConfigMap](t, of, "ConfigMap/"+mesh).Data["mesh"]; !strings.Contains(got, "discoveryAddress: "+name+".istio-system.svc:15012\n") {
			t.Errorf("the mesh's settings are %s", got)
		}
	}
}

// TestPods: they may do no more than they need.
func TestPods(t *testing.T) {
	t.Parallel()
	of := as[appsv1.Deployment](t, objects(t), "Deployment/istiod").Spec.Template.Spec
	c := of.Containers[0]
	if s := of.SecurityContext; !*s.RunAsNonRoot || *s.RunAsUser == 0 || s.SeccompProfile.Type != "RuntimeDefault" {
		t.Errorf("pods have %+v", s)
	}
	if s := c.SecurityContext; *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 {
		t.Errorf("the container has %+v", s)
	}
	if len(of.TopologySpreadConstraints) != 2 || c.ReadinessProbe.HTTPGet.Path != "/ready" || c.LivenessProbe.HTTPGet.Path != "/version" || c.Image != image {
		t.Errorf("pods are spread by %v, probed by %v and %v, and run %s", of.TopologySpreadConstraints, c.ReadinessProbe, c.LivenessProbe, c.Image)
	}
}

// TestRightsAreOnes: rights are those of deploy/kubernetes, where TestRights of test/kube sees that
// each is used.
func TestRightsAreOnes(t *testing.T) {
	t.Parallel()
	want := map[string][]rbacv1.PolicyRule{}
	for _, file := range []string{
		"rights.yaml", "signers.yaml", "trustbundles.yaml", "gateways.yaml", "registration.yaml", "analysis.yaml",
		"untaint.yaml", "exports.yaml", "webhooks.yaml",
	} {
		text, err := os.ReadFile(filepath.Join(deployed, file))
		if err != nil {
			t.Fatal(err)
		}
		for id, raw := range split(t, string(text)) {
			var role rbacv1.ClusterRole
			if err := json.Unmarshal(raw, &role); err != nil {
				t.Fatal(err)
			}
			kind, _, _ := strings.Cut(id, "/")
			if strings.HasSuffix(kind, "Role") {
				want[file+" "+kind] = role.Rules
			}
		}
	}
	wide, own := "ClusterRole/istiod-clusterrole-istio-system", "Role/istiod"
	is := func(of map[string]json.RawMessage, id string, rules ...rbacv1.PolicyRule) {
		t.Helper()
		got := as[rbacv1.ClusterRole](t, of, id).Rules
		a, _ := yaml.Marshal(got)
		b, _ := yaml.Marshal(rules)
		if len(rules) == 0 || !bytes.Equal(a, b) {
			t.Errorf("%s has\n%s, not\n%s", id, a, b)
		}
	}
	of := objects(t)
	is(of, wide, slices.Concat(want["rights.yaml ClusterRole"], want["webhooks.yaml ClusterRole"])...)
	is(of, own, slices.Concat(want["rights.yaml Role"], want["webhooks.yaml Role"])...)
	without := objects(t, "--set", "webhooks.enabled=false")
	is(without, wide, want["rights.yaml ClusterRole"]...)
	is(without, own, want["rights.yaml Role"]...)
	// Another cluster's control plane reads what is read of other clusters, and writes nothing.
	remote := slices.DeleteFunc(slices.Clone(want["rights.yaml ClusterRole"]), func(r rbacv1.PolicyRule) bool {
		return len(r.ResourceNames) > 0 || !slices.Contains([]string{"services", "endpointslices", "gateways", "tokenreviews", "secrets", "subjectaccessreviews"}, r.Resources[0])
	})
	is(of, "ClusterRole/istio-reader-clusterrole-istio-system", remote...)
	of = objects(t, "--set", "global.certSigners={issuers.example.com/*}", "--set", "env.ENABLE_CLUSTER_TRUST_BUNDLE_API=true")
	is(of, wide, slices.Concat(want["rights.yaml ClusterRole"], want["signers.yaml ClusterRole"], want["trustbundles.yaml ClusterRole"], want["webhooks.yaml ClusterRole"])...)
	of = objects(t, "--set", "coxswain.settings.manageGateways=true")
	is(of, wide, slices.Concat(want["rights.yaml ClusterRole"], want["gateways.yaml ClusterRole"], want["webhooks.yaml ClusterRole"])...)
	is(of, own, slices.Concat(want["rights.yaml Role"], want["gateways.yaml Role"], want["webhooks.yaml Role"])...)
	is(objects(t, "--set", "coxswain.modules.enabled=true"), wide, slices.Concat(want["rights.yaml ClusterRole"],
		want["webhooks.yaml ClusterRole"])...)
	of = objects(t, "--set", "coxswain.settings.autoRegistration=true")
	is(of, wide, slices.Concat(want["rights.yaml ClusterRole"], want["registration.yaml ClusterRole"], want["webhooks.yaml ClusterRole"])...)
	is(of, own, slices.Concat(want["rights.yaml Role"], want["registration.yaml Role"], want["webhooks.yaml Role"])...)
	for _, asked := range []string{"coxswain.settings.enableAnalysis=true", "env.PILOT_ENABLE_ANALYSIS=true"} {
		of = objects(t, "--set", asked)
		is(of, wide, slices.Concat(want["rights.yaml ClusterRole"], want["analysis.yaml ClusterRole"],
			want["webhooks.yaml ClusterRole"])...)
		is(of, own, slices.Concat(want["rights.yaml Role"], want["analysis.yaml Role"], want["webhooks.yaml Role"])...)
	}
	for _, asked := range []string{"taint.enabled=true", "pilot.taint.enabled=true", "coxswain.settings.untaintNodes=true"} {
		of = objects(t, "--set", asked)
		is(of, wide, slices.Concat(want["rights.yaml ClusterRole"], want["untaint.yaml ClusterRole"], want["webhooks.yaml ClusterRole"])...)
		is(of, own, slices.Concat(want["rights.yaml Role"], want["untaint.yaml Role"], want["webhooks.yaml Role"])...)
	}
	of = objects(t, "--set", "webhooks.enabled=false", "--set", "coxswain.plugins=plugins: [{builtin: controller/exports}]")
	is(of, wide, slices.Concat(want["rights.yaml ClusterRole"], want["exports.yaml ClusterRole"])...)
	is(of, own, slices.Concat(want["rights.yaml Role"], want["exports.yaml Role"])...)
	is(objects(t, "--set", "webhooks.enabled=false", "--set", "coxswain.plugins=null"), own, want["rights.yaml Role"]...)
	lease, _ := yaml.Marshal(as[rbacv1.Role](t, objects(t, "--set", "revision=canary", "--set", "env.PILOT_ENABLE_GATEWAY_API_DEPLOYMENT_CONTROLLER=true"), "Role/istiod-canary").Rules)
	if !strings.Contains(string(lease), "- istio-gateway-deployment-canary\n") {
		t.Errorf("with a revision it may have another Lease: %s", lease)
	}
	text, _ := yaml.Marshal(as[rbacv1.Role](t, objects(t, "--set", "revision=canary"), "Role/istiod-canary").Rules)
	for _, name := range []string{"istio", "istio-sidecar-injector", "coxswain-injector", "coxswain-validator"} {
		if !strings.Contains(string(text), "- "+name+"-canary\n") || strings.Contains(string(text), "- "+name+"\n") {
			t.Errorf("with a revision it may read another ConfigMap, or hold another Lease: %s", text)
		}
	}
}

// TestValues: what is said in istiod's words arrives, at the top or below pilot, and what is said
// in ours.
func TestValues(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ set, id, has string }{
		{"pilot.resources.requests.cpu=7", "Deployment/istiod", `"cpu":7`},
		{"resources.requests.cpu=7", "Deployment/istiod", `"cpu":7`},
		{"pilot.env.EXTERNAL_CA=x,global.certSigners={a.example/b}", "Deployment/istiod", `"name":"EXTERNAL_CA","value":"x"`},
		{"pilot.autoscaleEnabled=false,pilot.replicaCount=3", "Deployment/istiod", `"replicas":3`},
		{"pilot.autoscaleMin=3", "HorizontalPodAutoscaler/istiod", `"minReplicas":3`},
		{"memory.targetAverageUtilization=60", "HorizontalPodAutoscaler/istiod", `"name":"memory"`},
		{"pdb.maxUnavailable=1", "PodDisruptionBudget/istiod", `"maxUnavailable":1`},
		{"global.priorityClassName=system-cluster-critical", "Deployment/istiod", `"priorityClassName":"system-cluster-critical"`},
		{"global.logging.level=default:warn", "Deployment/istiod", `"--logLevel=warn"`},
		{"global.logAsJson=true", "Deployment/istiod", `"--logFormat=json"`},
		{"global.multiCluster.clusterName=east", "Deployment/istiod", `"--clusterID=east"`},
		{"global.multiCluster.clusterName=east", "Deployment/istiod", `{"name":"CLUSTER_ID","value":"east"}`},
		{"global.imagePullSecrets={a}", "ServiceAccount/istiod", `"imagePullSecrets":[{"name":"a"}]`},
		{"global.networkPolicy.enabled=true", "NetworkPolicy/istiod", `"port":15012`},
		{"global.meshID=one", "ConfigMap/istio", `meshId: one`},
		{"global.meshNetworks.one.endpoints[0].fromRegistry=east", "ConfigMap/istio", `"fromRegistry\":\"east\"`},
		{"meshConfig.accessLogFile=/dev/stdout", "ConfigMap/istio", `accessLogFile: /dev/stdout`},
		{"meshConfig.trustDomain=example.org", "ConfigMap/istio", `trustDomain: example.org`},
		{"meshConfig.defaultConfig.concurrency=2", "ConfigMap/istio", `discoveryAddress: istiod.istio-system.svc:15012`},
		{"ipFamilyPolicy=PreferDualStack", "Service/istiod", `"ipFamilyPolicy":"PreferDualStack"`},
		{"coxswain.settings.debounceAfter=50ms", "ConfigMap/coxswain", `debounceAfter: 50ms`},
		{"coxswain.settings.debounceAfter=50ms", "Deployment/istiod", `"--settings=/etc/coxswain/settings.yaml"`},
		{"global.proxy.includeIPRanges=10.0.0.0/8", "ConfigMap/istio-sidecar-injector", `\"includeIPRanges\": \"10.0.0.0/8\"`},
		{"global.proxy.autoInject=disabled", "ConfigMap/istio-sidecar-injector", `policy: disabled`},
		{"sidecarInjectorWebhook.defaultTemplates={sidecar,mine}", "ConfigMap/istio-sidecar-injector", `defaultTemplates: [\"sidecar\",\"mine\"]`},
		{"pilot.cni.enabled=true", "ConfigMap/istio-sidecar-injector", `\"cni\": {\n      \"enabled\": true`},
		{"coxswain.proxyTag=1.30.0", "ConfigMap/istio-sidecar-injector", `\"tag\": \"1.30.0\"`},
		{"sidecarInjectorWebhookAnnotations.a=b", "MutatingWebhookConfiguration/coxswain-injector", `"a":"b"`},
		{"global.networkPolicy.enabled=true", "NetworkPolicy/istiod", `"port":15017`},
		{"coxswain.settings.dnsAddr=0.0.0.0:15053", "Service/istiod", `{"name":"dns","port":53,"protocol":"UDP","targetPort":15053}`},
		{"coxswain.settings.dnsAddr=0.0.0.0:15053", "Deployment/istiod", `{"containerPort":15053,"name":"dns-tcp","protocol":"TCP"}`},
		{"coxswain.settings.dnsAddr=0.0.0.0:15053", "ConfigMap/coxswain", `dnsAddr: 0.0.0.0:15053`},
		{"coxswain.settings.dnsAddr=0.0.0.0:15053,global.networkPolicy.enabled=true", "NetworkPolicy/istiod", `{"port":15053,"protocol":"UDP"}`},
		{"coxswain.settings.enableAnalysis=true", "ConfigMap/coxswain", `enableAnalysis: true`},
		{"pilot.taint.enabled=true", "Deployment/istiod", `"--untaintNodes","--nodeTaint=cni.istio.io/not-ready"`},
		{"taint.namespace=kube-system", "Deployment/istiod", `"--cniNamespace=kube-system"`},
		{"pilot.env.PILOT_ENABLE_ANALYSIS=true", "Deployment/istiod", `{"name":"PILOT_ENABLE_ANALYSIS","value":"true"}`},
		{"coxswain.modules.enabled=true", "Deployment/istiod", `"--modulesDir=/var/lib/coxswain/modules"`},
		{"coxswain.modules.enabled=true", "Deployment/istiod", `"emptyDir":{"sizeLimit":"1Gi"},"name":"modules"`},
		{"coxswain.modules.enabled=true,coxswain.modules.blockedCIDRs={10.96.0.0/12,fd00::/8}", "Deployment/istiod",
			`"--modulesBlocked=10.96.0.0/12,fd00::/8"`},
		{"coxswain.pluginImages[0].name=a,coxswain.pluginImages[0].image=" + image, "Deployment/istiod", `"mountPath":"/plugins/a"`},
		{"pilot.autoscaleMax=1", "HorizontalPodAutoscaler/istiod", `"maxReplicas":1,"metrics"`},
		{"pilot.autoscaleMax=1", "HorizontalPodAutoscaler/istiod", `"minReplicas":1`},
		{"pilot.meshConfig.accessLogFile=/dev/stdout", "ConfigMap/istio", `accessLogFile: /dev/stdout`},
		{"pilot.global.meshID=one", "ConfigMap/istio", `meshId: one`},
		{"pilot.revision=canary", "Service/istiod-canary", `"istio.io/rev":"canary"`},
		{"pilot.sidecarInjectorWebhook.rewriteAppHTTPProbe=false", "ConfigMap/istio-sidecar-injector", `\"rewriteAppHTTPProbe\": false`},
		{"global.proxy.capNetBindService=true", "ConfigMap/istio-sidecar-injector", `\"capNetBindService\": true`},
		{"global.istiod.enableAnalysis=true", "Deployment/istiod", `{"name":"PILOT_ENABLE_ANALYSIS","value":"true"}`},
		{"global.istiod.enableAnalysis=true,env.PILOT_ENABLE_ANALYSIS=false", "Deployment/istiod",
			`{"name":"PILOT_ENABLE_ANALYSIS","value":"false"}`},
		{"trustedZtunnelNamespace=kube-system", "Deployment/istiod", `{"name":"CA_TRUSTED_NODE_ACCOUNTS","value":"kube-system/ztunnel"}`},
		{"pilot.trustedZtunnelName=tunnel", "Deployment/istiod", `{"name":"CA_TRUSTED_NODE_ACCOUNTS","value":"istio-system/tunnel"}`},
		{"trustedZtunnelName=tunnel,env.CA_TRUSTED_NODE_ACCOUNTS=a/b", "Deployment/istiod", `{"name":"CA_TRUSTED_NODE_ACCOUNTS","value":"a/b"}`},
		{"jwksResolverExtraRootCA=PEM", "ConfigMap/pilot-jwks-extra-cacerts", `"extra.pem":"PEM"`},
		{"jwksResolverExtraRootCA=PEM", "Deployment/istiod", `{"mountPath":"/cacerts","name":"extracacerts","readOnly":true}`},
		{"jwksResolverExtraRootCA=PEM,revision=canary", "Deployment/istiod-canary", `{"configMap":{"name":"pilot-jwks-extra-cacerts-canary"}`},
		{"jwksResolverExtraRootCA=PEM,env.SSL_CERT_DIR=/mine", "Deployment/istiod", `{"name":"SSL_CERT_DIR","value":"/mine:/cacerts"}`},
		{"pilot.traceSampling=50.5", "ConfigMap/istio", "tracing:\\n    sampling: 50.5"},
		{"traceSampling=50,meshConfig.defaultConfig.tracing.sampling=7", "ConfigMap/istio", "tracing:\\n    sampling: 7"},
		{"gatewayClasses.istio.deployment.spec.replicas=2", "ConfigMap/istio-default-gatewayclass-istio",
			`"gateway.istio.io/defaults-for-class":"istio"`},
		{"gatewayClasses.istio.deployment.spec.replicas=2,revision=canary", "ConfigMap/istio-canary-gatewayclass-istio",
			`"deployment":"spec:\n  replicas: 2"`},
	} {
		if got := string(objects(t, "--set", c.set)[c.id]); !strings.Contains(got, c.has) {
			t.Errorf("with %s %s is %s, without %s", c.set, c.id, got, c.has)
		}
	}
}

// TestProxyImage: the injector's ConfigMap says which image proxies get though no value names it,
// which is that of the injector: istioctl analyze compares it with those of pods.
func TestProxyImage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../plugins/shared/render/config.go")
	if err != nil {
		t.Fatal(err)
	}
	usual := regexp.MustCompile(`(?m)^  hub: (\S+)\n  tag: (\S+)$`).FindStringSubmatch(string(text))
	var is struct {
		Global struct {
			Hub, Tag string
			Proxy    struct{ Image string }
		}
	}
	values := as[corev1.ConfigMap](t, objects(t), "ConfigMap/istio-sidecar-injector").Data["values"]
	if err := json.Unmarshal([]byte(values), &is); err != nil || len(usual) != 3 {
		t.Fatal(err, usual, values)
	}
	if g := is.Global; g.Hub != usual[1] || g.Tag != usual[2] || g.Proxy.Image != "proxyv2" {
		t.Errorf("it says %+v, and the injector %q", g, usual[1:])
	}
}

// TestTaken: the program takes the command line, environment, settings and plugins that pods get,
// whatever the values ask for.
func TestTaken(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		nil,
		{"--set-file", "coxswain.plugins=" + deployed + "/plugins.yaml"},
		{"--set", "revision=canary,coxswain.settings.debounceAfter=50ms,coxswain.settings.dnsAddr=0.0.0.0:15053"},
		{"--set", "coxswain.modules.enabled=true,coxswain.modules.blockedCIDRs={10.96.0.0/12,fd00::/8}"},
		{"--set", "coxswain.settings.manageGateways=true,coxswain.settings.autoRegistration=true", "--set",
			"coxswain.settings.enableAnalysis=true,taint.enabled=true,taint.namespace=kube-system,webhooks.enabled=false,global.logAsJson=true"},
		{"--set", "global.multiCluster.clusterName=east,env.PILOT_ENABLE_STATUS=true,global.proxy.clusterDomain=example.org"},
	} {
		text, err := template(t, args...)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(binary, "upgrade", "check", "-f", "-")
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "they are taken") {
			t.Errorf("with %q: %v: %s", args, err, out)
		}
	}
}

// TestRefused: values of istiod's chart that mean nothing are refused with a hint, unknown ones by
// the schema, and so are those that contradict another.
func TestRefused(t *testing.T) {
	t.Parallel()
	var refused map[string]string
	text, err := os.ReadFile(source + "/files/refused.yaml")
	if err == nil {
		err = yaml.UnmarshalStrict(text, &refused)
	}
	if err != nil || len(refused) < 30 {
		t.Fatal(err, refused)
	}
	schema, err := jsonschema.NewCompiler().Compile(source + "/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	for path, hint := range refused { // with what the schema refuses itself, the hint would not be seen
		if err := schema.Validate(nested(path)); err != nil || hint == "" {
			t.Errorf("%s: %v, %q", path, err, hint)
		}
	}
	for _, path := range []string{"profile", "global.proxy.tracer", "defaultRevision", "telemetry.v2.stackdriver"} {
		if _, err := template(t, "--set", path+".x=1"); err == nil || !strings.Contains(err.Error(), path+" is a value of istiod's chart that means nothing here: "+refused[path]) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for set, want := range map[string]string{
		"pilot.variant=debug":                       "pilot.variant is a value of istiod's chart",
		"pilot.variant=debug,profile=ambient":       "pilot.variant is a value of istiod's chart",
		"profile=ambient,pilot.variant=debug":       "profile is a value of istiod's chart",
		"_internal_defaults_do_not_set.tag=1":       "_internal_defaults_do_not_set.tag: istiod's chart has another value there",
		"base.enableIstioConfigCRDs=false":          "leave them out with --skip-crds",
		"global.resourceScope=namespace":            "everything is one release",
		"traceSampling=many":                        "does not match pattern",
		"pilot.pilot.tag=1":                         "below pilot once",
		"autoscaleMin=7":                            "autoscaleMax: 5 is less than autoscaleMin, which is 7",
		"keepaliveMaxServerConnectionAge=..s":       "does not match pattern",
		"image=coxswain,global.hub=docker.io/istio": "no image is published",
		"unknown=1":                               "additional properties 'unknown' not allowed",
		"pilot.unknown=1":                         "additional properties 'unknown' not allowed",
		"global.proxy.unknown=1":                  "additional properties 'unknown' not allowed",
		"replicaCount=many":                       "got string, want null or integer",
		"revision=Not_A_Label":                    "does not match pattern",
		"image=coxswain":                          "no image is published",
		"global.logging.level=ads:debug":          "coxswain log set",
		"coxswain.plugins=a":                      "has no controller/injector",
		"revisionTags={a},revision=a":             "is the revision itself",
		"revisionTags={a},webhooks.enabled=false": "they are webhooks",
		"sidecarInjectorWebhook.unknown=1":        "additional properties 'unknown' not allowed",
		"coxswain.settings.httpsAddr=x":           "it is said by webhooks.enabled",
		"coxswain.settings.modulesDir=/x":         "it is said by coxswain.modules",
		"coxswain.settings.clusterID=east":        "it is said by global.multiCluster.clusterName",
		"env.EXTERNAL_CA=x":                       "name them in global.certSigners",
		"coxswain.pluginImages[0].name=a,coxswain.pluginImages[0].image=registry.example.com/a:1": "name it by its digest",
	} {
		if _, err := template(t, "--set", set); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, not %q", set, err, want)
		}
	}
}

// nested is a value at a path.
func nested(path string) any {
	first, rest, more := strings.Cut(path, ".")
	if !more {
		return map[string]any{first: map[string]any{"x": true}}
	}
	return map[string]any{first: nested(rest)}
}
