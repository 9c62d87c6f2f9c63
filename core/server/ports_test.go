package server

import (
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/coxswain-mesh/coxswain/core/manifest"
)

// Before each xDS port is open, and the admin socket, the control plane is not ready.
func TestReadyWithOpenPorts(t *testing.T) {
	set, err := manifest.Parse("plugins.yaml", []byte("plugins: [{name: certificates, kind: authenticator, builtin: authenticator/certificate}]"))
	if err != nil {
		t.Fatal(err)
	}
	secured := &Config{Set: set, SecureGRPCAddr: "127.0.0.1:0"}
	p := newPorts(&Config{Set: set, GRPCAddr: "127.0.0.1:0", SecureGRPCAddr: "127.0.0.1:0", TLS: TLS{CertFile: "cert.pem"}}, nil)
	for _, port := range []string{"grpc", "secureGRPC"} {
		if !slices.Contains(p.ready(), "port "+port+" is not open yet") {
			t.Errorf("%s is closed, and the reasons are %q", port, p.ready())
		}
		p.listening(port, &net.TCPAddr{})
	}
	if why := p.ready(); len(why) != 1 || why[0] != "the admin socket is not open yet" {
		t.Errorf("the admin socket is missing, and the reasons are %q", why)
	}
	p.opened()
	if why := p.ready(); len(why) > 0 {
		t.Errorf("all are open, and the reasons are %q", why)
	}
	made, why := false, "it is being made"
	p = newPorts(secured, nil)
	p.opened()
	p.pending = func() (bool, string) { return made, why }
	for _, step := range []struct {
		change func()
		want   string
	}{
		{func() {}, why}, {func() { made, why = true, "" }, "port secureGRPC is not open yet"}, {func() { p.listening("secureGRPC", &net.TCPAddr{}) }, ""},
		{func() {
			p = newPorts(secured, nil)
			p.opened()
			made, p.pending = false, func() (bool, string) { return made, why }
		}, ""}, // nobody makes one
		{func() {
			p = newPorts(&Config{Set: &manifest.Set{}, SecureGRPCAddr: "127.0.0.1:0", TLS: TLS{Webhooks: Webhooks{Address: "127.0.0.1:0"}}}, nil)
			p.opened()
			made, p.pending = true, func() (bool, string) { return made, why }
			p.listening("https", &net.TCPAddr{})
		}, ""}, // it is for webhooks alone: nobody says who is calling
	} {
		step.change()
		if got := strings.Join(p.ready(), ", "); got != step.want {
			t.Errorf("it says %q, not %q", got, step.want)
		}
	}
	for _, c := range []struct {
		Config
		waits bool
	}{
		{Config{}, false}, {Config{GRPCAddr: None}, false}, {Config{GRPCAddr: None, HTTPAddr: "127.0.0.1:0"}, false},
		{Config{HTTPAddr: "127.0.0.1:0"}, true},
	} {
		p := newPorts(&c.Config, nil)
		p.opened()
		if why := p.ready(); (len(why) > 0) != c.waits {
			t.Errorf("of %q and %q, the reasons are %q", c.GRPCAddr, c.HTTPAddr, why)
		}
	}
}
