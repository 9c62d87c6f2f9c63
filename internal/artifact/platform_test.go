package artifact

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coxswain-mesh/coxswain/internal/artifact/liar"
)

// elfFile is the header of a program.
func elfFile(t *testing.T, machine elf.Machine, order binary.ByteOrder) []byte {
	t.Helper()
	data := elf.ELFDATA2LSB
	if order == binary.BigEndian {
		data = elf.ELFDATA2MSB
	}
	h := elf.Header64{Type: uint16(elf.ET_EXEC), Machine: uint16(machine), Version: uint32(elf.EV_CURRENT), Ehsize: 64}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA], h.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(data), byte(elf.EV_CURRENT)
	out := &bytes.Buffer{}
	if err := binary.Write(out, order, h); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestPushes: what is pushed is what it is said to be, and not too large to be pulled.
func TestPushes(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	amd64 := file("amd64", elfFile(t, elf.EM_X86_64, binary.LittleEndian))
	ppc64, ppc64le := file("ppc64", elfFile(t, elf.EM_PPC64, binary.BigEndian)), file("ppc64le", elfFile(t, elf.EM_PPC64, binary.LittleEndian))
	other := file("other", elfFile(t, elf.EM_SPARCV9, binary.BigEndian))
	wasm, script := file("wasm", module), file("script", []byte("#!/bin/sh\n"))
	for _, c := range []struct {
		file File
		want string // empty: it is pushed
	}{
		{File{amd64, "linux", "amd64"}, ""},
		{File{amd64, "freebsd", "amd64"}, ""},
		{File{amd64, "linux", "arm64"}, "a program for amd64, not for linux/arm64"},
		{File{amd64, "windows", "amd64"}, "not for windows/amd64"},
		{File{ppc64, "linux", "ppc64"}, ""},
		{File{ppc64, "linux", "ppc64le"}, "a program for ppc64, not"},
		{File{ppc64le, "linux", "ppc64le"}, ""},
		{File{other, "linux", "amd64"}, "a machine that Go has no name for"},
		{File{amd64, "plan10", "amd64"}, `did you mean "plan9"`},
		{File{amd64, "linux", "foo"}, `no architecture "foo"`},
		{File{file("cut", []byte("\x7fELF and no more")), "linux", "amd64"}, "and is none"},
		{File{file("pe", []byte("MZ and no more")), "windows", "amd64"}, "and is none"},
		{File{wasm, "", ""}, ""},
		{File{wasm, "linux", "amd64"}, "leave linux/amd64= out"},
		{File{script, "linux", "amd64"}, ""},
		{File{script, "", ""}, "is no module"},
		{File{dir, "linux", "amd64"}, "is a folder"},
		{File{file("empty", nil), "linux", "amd64"}, "is empty"},
		{File{filepath.Join(dir, "absent"), "", ""}, "no such file"},
		{File{file("large", make([]byte, 101)), "linux", "amd64"}, "has 101 bytes, more than 100 (--bytes)"},
	} {
		err := checkFiles([]File{c.file}, 100)
		if c.want == "" && err != nil {
			t.Errorf("%+v: %v", c.file, err)
		}
		if c.want != "" {
			refused(t, err, c.want)
		}
	}
	_, err := Push(t.Context(), Source{Reference: "oci://localhost:1/x:1", Timeout: time.Minute, Bytes: 3}, []File{{Path: wasm}}, nil)
	refused(t, err, "--bytes")
}

// TestSearch: what finds nothing is an empty list, and what a registry refuses is said in words.
func TestSearch(t *testing.T) {
	_, l := noDocker(t), liar.New(t)
	l.Twist(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/v2/_catalog" {
			_, _ = w.Write([]byte(`{"repositories":["team/plugin"]}`))
		}
		return r.URL.Path == "/v2/_catalog"
	})
	src := source(l, "")
	src.Reference = ""
	if all, err := Search(t.Context(), src, l.Host(), "team"); err != nil || len(all) != 1 {
		t.Errorf("%q, %v", all, err)
	}
	if all, err := Search(t.Context(), src, l.Host(), "nobody"); err != nil || all == nil || len(all) != 0 {
		t.Errorf("%#v, %v", all, err)
	}
	_, err := Search(t.Context(), source(l, ""), "", "")
	if refused(t, err, "the registry has not got it (status 404; not found)"); strings.Contains(err.Error(), "GET") {
		t.Error(err)
	}
}
