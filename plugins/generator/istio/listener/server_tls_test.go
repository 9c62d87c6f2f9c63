package listener

import (
	"slices"
	"testing"
)

func TestCiphersOfServers(t *testing.T) {
	given := []string{"AES128-SHA", "AES128-SHA", "nothing", "A-", "Z-", "a-", "z-", "0-", "9-", "-ALL", "[AES128-SHA|AES256-SHA]", "ALL", "HIGH"}
	if got, want := knownCiphers(given), []string{"AES128-SHA", "-ALL", "[AES128-SHA|AES256-SHA]", "ALL"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
