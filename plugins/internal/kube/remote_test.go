package kube

import (
	"strings"
	"testing"
)

func TestSecretKey(t *testing.T) {
	if k, err := ParseSecretKey("a/b/c.d"); err != nil || k != (SecretKey{"a", "b", "c.d"}) || k.String() != "a/b/c.d" {
		t.Error(k, err)
	}
	for _, text := range []string{"", "a/b", "a/b/c/d", "/b/c", "a//c", "a/b/"} {
		if k, err := ParseSecretKey(text); err == nil {
			t.Errorf("%q is %v", text, k)
		}
	}
}

// TestRemote: tokens and inline certificates are taken, for servers that show one; all else is
// refused, and no reason has what is secret.
func TestRemote(t *testing.T) {
	text := func(cluster, user string) string {
		return "{current-context: a, clusters: [{name: c, cluster: {" + cluster +
			"}}, {name: other, cluster: {server: 'http://x'}}], users: [{name: u, user: {" + user +
			"}}], contexts: [{name: a, context: {cluster: c, user: u}}, {name: b, context: {cluster: other, user: none}}]}"
	}
	a := DefaultAccess()
	config, err := a.Other([]byte(text("server: 'https://127.0.0.1:6443', tls-server-name: east", "token: secret")), "agent")
	if err != nil || config.Host != "https://127.0.0.1:6443" || config.BearerToken != "secret" ||
		config.UserAgent != "agent" || config.ServerName != "east" || config.RateLimiter == nil {
		t.Fatalf("%+v, %v", config, err)
	}
	const server, token = "server: 'https://127.0.0.1:6443'", "token: secret"
	for name, c := range map[string]struct{ text, want string }{
		"nonsense":        {"secret: [", "no kubeconfig"},
		"empty":           {"", "current-context"},
		"no context":      {strings.Replace(text(server, token), "current-context: a", "current-context: x", 1), `no context "x"`},
		"no user":         {strings.Replace(text(server, token), "current-context: a", "current-context: b", 1), "one of them is not there"},
		"plain text":      {text("server: 'http://127.0.0.1'", token), "https://"},
		"a socket":        {text("server: 'unix:///run/x'", token), "https://"},
		"no server":       {text("", token), "https://"},
		"anybody":         {text(server+", insecure-skip-tls-verify: true", token), "insecure-skip-tls-verify"},
		"a file":          {text(server+", certificate-authority: /etc/ca", token), "certificate-authority"},
		"a proxy":         {text(server+", proxy-url: 'http://secret'", token), "proxy-url"},
		"a program":       {text(server, "exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, interactiveMode: Never}"), "exec"},
		"a provider":      {text(server, "auth-provider: {name: gcp}"), "auth-provider"},
		"a token's file":  {text(server, "tokenFile: /etc/passwd"), "tokenFile"},
		"a key's file":    {text(server, "client-key: /etc/key"), "client-key"},
		"a cert's file":   {text(server, "client-certificate: /etc/cert"), "client-certificate"},
		"a password":      {text(server, "username: me, password: secret"), "password"},
		"no certificates": {text(server, "client-certificate-data: c2VjcmV0, client-key-data: '!secret'"), "kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := a.Other([]byte(c.text), "")
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}
