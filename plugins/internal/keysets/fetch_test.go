package keysets

import (
	"net/netip"
	"testing"
)

// An address is blocked however it is written.
func TestBlockedAddresses(t *testing.T) {
	blocked := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("fd00::/8")}
	for address, want := range map[string]bool{
		"127.0.0.1:80": true, "[::ffff:127.0.0.1]:80": true, "[::ffff:7f00:1]:80": true, "169.254.169.254:80": true, "[fd00::1]:443": true,
		"126.255.255.255:80": false, "128.0.0.1:80": false, "[::ffff:10.0.0.1]:80": false, "[fe80::1]:443": false, "10.0.0.1:80": false,
	} {
		if err := admits(blocked, address); (err != nil) != want {
			t.Errorf("%s: %v", address, err)
		}
	}
	if admits(nil, "127.0.0.1:80") != nil {
		t.Error("nothing is blocked, and yet it is refused")
	}
}
