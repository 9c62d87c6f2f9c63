package bootstrap

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// certificates are written for SDS where a folder for that is given.
func certificates(t *testing.T, sds string) Certificates {
	t.Helper()
	c := Certificates{Files: t.TempDir(), SDS: sds}
	if sds != "" {
		if err := WriteSecrets(c); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func TestSecrets(t *testing.T) {
	folder := t.TempDir()
	for source, certs := range map[string]Certificates{"bootstrap": certificates(t, ""), folder: certificates(t, folder)} {
		c := good()
		c.Certificates = certs
		raw, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(raw), `"COXSWAIN_SECRETS": "`+source+`"`) {
			t.Errorf("%s stands nowhere in %s", source, raw)
		}
		chain := filepath.Join(certs.Files, "cert-chain.pem")
		if static := strings.Contains(string(raw), chain); static != (certs.SDS == "") {
			t.Errorf("%s: static secrets %v", source, static)
		}
	}
	for name, wants := range map[string][]string{"default.json": {"cert-chain.pem", "key.pem"}, "ROOTCA.json": {"root-cert.pem"}} {
		b, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range append(wants, "watched_directory") {
			if !strings.Contains(string(b), want) {
				t.Errorf("%s has no %s: %s", name, want, b)
			}
		}
	}
}
