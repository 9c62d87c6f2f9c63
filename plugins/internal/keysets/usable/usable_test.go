package usable

import (
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"os"
	"strconv"
	"strings"
	"testing"
)

// The key that nobody has is made as its comment says: whoever doubts it can make it anew.
func TestNobodysKeyIsMadeByHashing(t *testing.T) {
	var set struct {
		Keys []struct{ X, Y string }
	}
	if err := json.Unmarshal([]byte(Nobodys), &set); err != nil || len(set.Keys) != 1 {
		t.Fatal(err, set)
	}
	curve := elliptic.P256()
	for try := 0; ; try++ {
		hash := sha256.Sum256([]byte(Phrase + strconv.Itoa(try)))
		x, y := elliptic.UnmarshalCompressed(curve, append([]byte{2}, hash[:]...)) // 2: y is even
		if x == nil {
			continue
		}
		for name, c := range map[string]struct {
			want *big.Int
			got  string
		}{"x": {x, set.Keys[0].X}, "y": {y, set.Keys[0].Y}} {
			if want := base64.RawURLEncoding.EncodeToString(c.want.FillBytes(make([]byte, 32))); c.got != want {
				t.Errorf("%s is %s, want %s", name, c.got, want)
			}
		}
		return
	}
}

// set is a text, and whether Envoy takes it as a key set: test/traffic asks one.
type set struct {
	Name, Text string
	OK         bool
}

func sets(t *testing.T) (all []set) {
	t.Helper()
	b, err := os.ReadFile("testdata/sets.json")
	if err == nil {
		err = json.Unmarshal(b, &all)
	}
	if err != nil || len(all) == 0 {
		t.Fatal(len(all), err)
	}
	return append(all, set{"nobody's", Nobodys, true})
}

func TestCheck(t *testing.T) {
	for _, c := range sets(t) {
		if err := Check(c.Text); (err == nil) != c.OK {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
	if Check("") == nil {
		t.Error("no text is a set")
	}
	large := `{"keys":[{"kty":"oct","k":"AQAB","a":"` + strings.Repeat("x", MaxBytes) + `"}]}`
	if err := Check(large); err == nil || !strings.Contains(err.Error(), "bytes") {
		t.Errorf("too large: %v", err)
	}
}
