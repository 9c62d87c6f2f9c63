package kube

import (
	"fmt"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/flowcontrol"
)

// SecretKey names a value of a Secret, as NAMESPACE/NAME/KEY.
type SecretKey struct{ Namespace, Name, Key string }

// ParseSecretKey reads NAMESPACE/NAME/KEY; an error says that it is something else.
func ParseSecretKey(text string) (SecretKey, error) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 || parts[0] == "" || parts[1] == "" || parts[2] == "" {
		return SecretKey{}, fmt.Errorf("%q is not NAMESPACE/NAME/KEY of a Secret", text)
	}
	return SecretKey{parts[0], parts[1], parts[2]}, nil
}

// String returns the key as NAMESPACE/NAME/KEY.
func (k SecretKey) String() string { return k.Namespace + "/" + k.Name + "/" + k.Key }

// ClusterOf returns the name that a kubeconfig's current context has for its cluster. An error
// never has what is secret in it.
func ClusterOf(kubeconfig []byte) (string, error) {
	loaded, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return "", fmt.Errorf("it is no kubeconfig") // the reason may quote it
	}
	context := loaded.Contexts[loaded.CurrentContext]
	if context == nil || context.Cluster == "" {
		return "", fmt.Errorf("it has no context %q (current-context) with a cluster", loaded.CurrentContext)
	}
	return context.Cluster, nil
}

// Other returns the settings of a client of another cluster, from a kubeconfig that came over the
// network. It asks nothing of the API server. What would run a program, read a file or trust
// anybody is an error, which never has what is secret in it: whoever may write the kubeconfig is
// not to have the rights of this process.
func (a *Access) Other(kubeconfig []byte, agent string) (*rest.Config, error) {
	loaded, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("it is no kubeconfig") // the reason may quote it
	}
	context := loaded.Contexts[loaded.CurrentContext]
	if context == nil {
		return nil, fmt.Errorf("it has no context %q (current-context)", loaded.CurrentContext)
	}
	cluster, user := loaded.Clusters[context.Cluster], loaded.AuthInfos[context.AuthInfo]
	if cluster == nil || user == nil {
		return nil, fmt.Errorf("its context %s names the cluster %q and the user %q; one of them is not there", loaded.CurrentContext, context.Cluster, context.AuthInfo)
	}
	server, err := url.Parse(cluster.Server)
	for what, is := range map[string]bool{
		"server, which does not begin with https://": err != nil || server.Scheme != "https" || server.Host == "",
		"exec":                     user.Exec != nil,
		"auth-provider":            user.AuthProvider != nil,
		"tokenFile":                user.TokenFile != "",
		"client-certificate":       user.ClientCertificate != "",
		"client-key":               user.ClientKey != "",
		"username or password":     user.Username != "" || user.Password != "",
		"certificate-authority":    cluster.CertificateAuthority != "",
		"insecure-skip-tls-verify": cluster.InsecureSkipTLSVerify,
		"proxy-url":                cluster.ProxyURL != "",
	} {
		if is {
			return nil, fmt.Errorf("it has %s: only tokens and inline certificates (certificate-authority-data, client-certificate-data, client-key-data) are taken", what)
		}
	}
	config, err := clientcmd.NewDefaultClientConfig(*loaded, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("it can't be used: its certificates or its address are not what they should be")
	}
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(float32(a.QPS), a.Burst)
	config.UserAgent = agent
	config.Wrap(a.line().over)
	return config, nil
}
