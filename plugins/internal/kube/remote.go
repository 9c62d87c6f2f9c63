package kube

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

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
		return nil, fmt.Errorf("its context %s names the cluster %q and the user %q; one of them is not there",
			loaded.CurrentContext, context.Cluster, context.AuthInfo)
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
			return nil, fmt.Errorf(
				"it has %s: only tokens and inline certificates (certificate-authority-data, client-certificate-data, client-key-data) are taken",
				what,
			)
		}
	}
	config, err := clientcmd.NewDefaultClientConfig(*loaded, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("it can't be used: its certificates or its address are not what they should be")
	}
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(float32(a.QPS), a.Burst)
	config.UserAgent = agent
	config.Wrap(foreign)
	config.Wrap(a.line().over)
	config.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second, Control: elsewhere}).DialContext
	config.Wrap(guarded)
	return config, nil
}

// mostAnswer is how large an answer of another cluster's API server may be, in bytes, that is no
// watch: whoever wrote the kubeconfig decides who answers.
const mostAnswer = 256 << 20

// foreign takes no redirection from an API server, for the client would go wherever it leads, and
// no answer that is too large.
func foreign(next http.RoundTripper) http.RoundTripper {
	return tripper(func(q *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(q)
		if err != nil {
			return nil, err
		}
		if answer.StatusCode >= 300 && answer.StatusCode < 400 && answer.Header.Get("Location") != "" {
			_ = answer.Body.Close()
			return nil, fmt.Errorf("the API server answers with a redirection (%d), which is not followed", answer.StatusCode)
		}
		if !q.URL.Query().Has("watch") {
			answer.Body = http.MaxBytesReader(nil, answer.Body, mostAnswer)
		}
		return answer, nil
	})
}

// elsewhere lets no connection be made to link-local addresses, where clouds tell machines their
// secrets.
func elsewhere(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if ip := at.Addr().Unmap(); ip.IsLinkLocalUnicast() || ip.IsLinkLocalMulticast() {
		return fmt.Errorf("%s is a link-local address, at which no other cluster's API server is looked for", ip)
	}
	return nil
}
