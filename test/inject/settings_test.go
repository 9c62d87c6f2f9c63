package inject

// told is what both are told.
type told struct {
	name string
	// values are those of Istio's chart of istiod, in YAML.
	values string
	// kubelets are the versions of the cluster's nodes.
	kubelets []string
	// env is istiod's environment in addition, compliance our injector's compliancePolicy.
	env        []string
	compliance string
	// objects are in the cluster.
	objects string
}

const (
	young = "v1.35.2"
	old   = "v1.32.9"
)

// settings are what both are told, in turn.
var settings = []told{
	{name: "usual", kubelets: []string{young, young}},
	{name: "an older node", kubelets: []string{young, old}},
	{name: "CNI and networks", kubelets: []string{young}, values: `
pilot: {cni: {enabled: true}}
global: {network: network1, meshID: mesh7, multiCluster: {clusterName: Kubernetes}, trustDomain: example.org}
meshConfig: {trustDomain: example.org}
`},
	{name: "much of the proxy", kubelets: []string{old}, values: `
global:
  hub: example.com/istio
  tag: 1.31.0-debug
  variant: distroless
  imagePullPolicy: Always
  imagePullSecrets: [one, two]
  logAsJson: true
  mountMtlsCerts: true
  caAddress: "ca.example.com:443"
  sts: {servicePort: 15463}
  logging: {level: "all:debug"}
  proxy:
    privileged: true
    holdApplicationUntilProxyStarts: true
    logLevel: debug
    componentLogLevel: "http:trace"
    includeIPRanges: "10.0.0.0/8,192.168.0.0/16"
    excludeIPRanges: "10.1.0.0/16"
    excludeInboundPorts: "9000"
    includeOutboundPorts: "80"
    excludeOutboundPorts: "5432"
    statusPort: 15120
    readinessInitialDelaySeconds: 7
    readinessPeriodSeconds: 8
    readinessFailureThreshold: 9
    startupProbe: {enabled: false}
    outlierLogPath: /dev/stdout
    resources: {requests: {cpu: 10m}, limits: {memory: 1Gi}}
    lifecycle: {preStop: {exec: {command: [sleep, "3"]}}}
`},
	{name: "the mesh's proxy", kubelets: []string{young}, values: `
meshConfig:
  enablePrometheusMerge: false
  defaultConfig:
    interceptionMode: TPROXY
    holdApplicationUntilProxyStarts: true
    concurrency: 4
    drainDuration: 23s
    proxyMetadata: {ISTIO_META_DNS_CAPTURE: "true", OF_MESH: mesh}
    tracing: {sampling: 12.5, zipkin: {address: "zipkin.tracing:9411"}}
    image: {imageType: debug}
    gatewayTopology: {numTrustedProxies: 2}
  inboundTrafficPolicy: {mode: LOCALHOST}
  extensionProviders:
  - name: otel
    opentelemetry: {service: otel.observability.svc.cluster.local, port: 4317, serviceAttributeEnrichment: OTEL_SEMANTIC_CONVENTIONS}
`, objects: `
apiVersion: networking.istio.io/v1beta1
kind: ProxyConfig
metadata: {name: all, namespace: istio-system}
spec: {concurrency: 3, environmentVariables: {OF_ROOT: root, OF_MESH: root}}
---
apiVersion: networking.istio.io/v1beta1
kind: ProxyConfig
metadata: {name: all, namespace: shop}
spec: {environmentVariables: {OF_NAMESPACE: shop}}
---
apiVersion: networking.istio.io/v1beta1
kind: ProxyConfig
metadata: {name: hello, namespace: shop}
spec: {selector: {matchLabels: {app: hello}}, image: {imageType: distroless}, environmentVariables: {OF_HELLO: "yes"}}
`},
	{name: "policy off and selectors and templates of its own", kubelets: []string{young}, values: `
global: {proxy: {autoInject: disabled}}
sidecarInjectorWebhook:
  rewriteAppHTTPProbe: false
  alwaysInjectSelector: [{matchLabels: {app: hello}}, {matchExpressions: [{key: with, operator: Exists}]}]
  neverInjectSelector: [{matchExpressions: [{key: batch, operator: In, values: ["yes"]}]}]
  injectedAnnotations: {container.apparmor.security.beta.kubernetes.io/istio-proxy: runtime/default, example.com/from: "chart"}
  defaultTemplates: [sidecar, labelled]
  templates:
    labelled: |
      metadata:
        labels: {of: "{{ .DeploymentMeta.Name }}"}
        annotations: {kind: "{{ .TypeMeta.Kind }}", upper: "{{ .ObjectMeta.Namespace | upper }}"}
      spec:
        hostAliases: [{ip: 192.0.2.1, hostnames: [a.example]}]
        containers:
        - name: istio-proxy
          env: [{name: FROM_TEMPLATE, value: "{{ len .Spec.Containers }}"}]
    custom: |
      spec:
        containers: [{name: extra, image: "{{ .Values.global.hub }}/extra"}]
        volumes: [{name: extra, emptyDir: {}}]
`},
	{name: "OpenShift", kubelets: []string{young}, env: []string{"PLATFORM=openshift"}, values: `
global: {platform: openshift}
pilot: {cni: {enabled: true, provider: multus}}
`},
	{name: "nftables and seccomp", kubelets: []string{young}, env: []string{"COMPLIANCE_POLICY=fips-140-3"}, compliance: "fips-140-3", values: `
global: {nativeNftables: true, proxy: {seccompProfile: {type: RuntimeDefault}}}
gateways: {seccompProfile: {type: RuntimeDefault}}
`},
}
