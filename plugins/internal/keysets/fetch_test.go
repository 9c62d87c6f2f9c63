package keysets

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
)

// An address is blocked however it is written.
func TestBlockedAddresses(t *testing.T) {
	blocked := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fd00::/8")}
	for address, want := range map[string]bool{
		"127.0.0.1:80": true, "[::ffff:127.0.0.1]:80": true, "[::ffff:7f00:1]:80": true, "169.254.169.254:80": true, "[fd00::1]:443": true,
		"[::ffff:169.254.1.1]:80": true, "[64:ff9b::169.254.169.254]:80": true, "[::7f00:1]:80": true, "[fd00::1%eth0]:443": true,
		"126.255.255.255:80": false, "128.0.0.1:80": false, "[::ffff:10.0.0.1]:80": false, "[fe80::1]:443": false, "10.0.0.1:80": false,
	} {
		if err := (Bounds{Blocked: blocked, LinkLocal: true}).Admits(address); (err != nil) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
	if (Bounds{}).Admits("127.0.0.1:80") != nil {
		t.Error("nothing is blocked, and yet it is refused")
	}
}

// Addresses of the link itself are connected to only if that is said, however they are written.
func TestLinkLocalAddresses(t *testing.T) {
	for address, want := range map[string]bool{
		"169.254.169.254:80": true, "169.254.0.0:1": true, "169.254.255.255:1": true, "[::ffff:169.254.169.254]:80": true, "[::ffff:a9fe:a9fe]:80": true,
		"[64:ff9b::a9fe:a9fe]:80": true, "[::a9fe:a9fe]:80": true, "[fe80::1]:443": true, "[fe80::1%eth0]:443": true, "[febf::1]:443": true,
		"169.253.255.255:80": false, "169.255.0.0:80": false, "[fec0::1]:443": false, "127.0.0.1:80": false, "[::1]:80": false, "10.0.0.1:80": false,
	} {
		if err := (Bounds{}).Admits(address); (err != nil) != want {
			t.Errorf("%s: %v", address, err)
		}
		if err := (Bounds{LinkLocal: true}).Admits(address); err != nil {
			t.Errorf("%s, where it is allowed: %v", address, err)
		}
	}
}

// A server that sends on to such an address gets nobody there, and neither does one that says that
// its keys are there.
func TestNobodyIsSentToTheLinkItself(t *testing.T) {
	const metadata = "http://169.254.169.254/latest"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, metadata, http.StatusFound)
	}))
	t.Cleanup(s.Close)
	f, err := New(Bounds{MaxBytes: 1000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	for _, uri := range []string{metadata, s.URL, "http://[::ffff:169.254.169.254]/"} {
		if _, err := f.Set(t.Context(), uri); err == nil || !strings.Contains(err.Error(), "allowLinkLocal") {
			t.Errorf("%s: %v", uri, err)
		}
		if _, err := f.Discover(t.Context(), uri); err == nil || !strings.Contains(err.Error(), "allowLinkLocal") {
			t.Errorf("%s, asked for its keys: %v", uri, err)
		}
	}
}
