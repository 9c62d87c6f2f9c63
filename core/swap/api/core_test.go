package api

import "testing"

// TestCoreAt: an address that a user writes names the core that listens there, on all addresses
// too, and no other.
func TestCoreAt(t *testing.T) {
	one := Core{Ports: map[string]string{"http": "127.0.0.1:8080", "monitoring": "[::]:15014", "grpc": "[::1]:15010"}}
	for address, want := range map[string]bool{
		"127.0.0.1:8080": true, "localhost:8080": true, ":8080": true, "[::ffff:127.0.0.1]:8080": true, "127.0.0.2:8080": false, "127.0.0.1:8081": false,
		"127.0.0.1:15014": true, "127.9.9.9:15014": true, "[::1]:15014": true, "[::1]:15010": true, "127.0.0.1:15010": false, "127.0.0.1": false, "": false,
	} {
		if got := one.At(t.Context(), address); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
	for want, c := range map[string]Core{
		"127.0.0.1:8080":  one,
		"127.0.0.1:15014": {Ports: map[string]string{"monitoring": "[::]:15014"}},
		"127.0.0.1:15010": {Ports: map[string]string{"grpc": "0.0.0.0:15010"}},
		"":                {},
	} {
		if got := c.Address(); got != want {
			t.Errorf("%v is at %q, want %q", c.Ports, got, want)
		}
	}
}
